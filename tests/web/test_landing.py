import base64
import hashlib
import re
from html.parser import HTMLParser

from inferwatch import __version__
from inferwatch.errors import SourceError
from inferwatch.targets.model import Target, TargetTable
from inferwatch.targets.probe import DiscoveredEngine
from inferwatch.targets.probe import Discovery as EnginesFound
from support_targets import process
from support_web import FakeAgent, fetch, serving, web_spec

HOSTILE = "<script>alert(1)</script>\"'&\u202e\udc80"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;\ufffd\ufffd"


class Tags(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


async def landing(agent: FakeAgent) -> tuple[str, str]:
    """Return the page and its policy."""
    async with serving(agent) as url:
        await agent.run()
        answer = await fetch(url, "/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.body.decode(), answer.headers["content-security-policy"]


async def test_page_says_what_this_is_and_links_to_the_rest() -> None:
    page, _ = await landing(FakeAgent())
    links = [attributes["href"] for tag, attributes in Tags(page).seen if tag == "a"]

    assert f"Version {__version__}" in page
    assert links == ["/metrics", "/-/healthy", "/-/ready", "/api/v1/samplers", "/api/v1/targets"]


async def test_samplers_are_listed_with_their_states() -> None:
    broken = SourceError("connection refused", reason="network")
    specs = [
        web_spec("works"),
        web_spec("off"),
        web_spec("idle", keys=(), idle_reason="no [[engines]] configured"),
        web_spec("broken", broken, keys=["a", "b"]),
    ]
    page, _ = await landing(FakeAgent(specs, disabled=["off"]))
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="(.*?)">', page)

    assert rows == [
        ("broken[a]", "failing"),
        ("broken[b]", "failing"),
        ("idle", "idle"),
        ("off", "disabled"),
        ("works", "ok"),
    ]
    assert page.count("connection refused") == 2
    assert "no [[engines]] configured" in page


async def test_text_from_outside_is_escaped() -> None:
    spec = web_spec("hostile", OSError(HOSTILE), keys=[HOSTILE], summary=HOSTILE)
    page, _ = await landing(FakeAgent([spec], problems=(HOSTILE,)))

    assert "<script" not in page
    assert page.count(ESCAPED) == 4


async def test_targets_are_listed_with_their_metrics_page_or_why_there_is_none() -> None:
    agent = FakeAgent()
    workers = (process(7, "api_server"), process(8, "worker"), process(9, "worker"))
    agent.targets.table = TargetTable((Target("a", "vllm", "m/x", workers), Target("b", "tgi", "", (process(10),))))
    agent.engines_found = EnginesFound((DiscoveredEngine("a", "http://h:8000/metrics", "vllm"),), {"b": "HTTP 404"})
    page, _ = await landing(agent)

    assert "<td>vllm<br>" in page
    assert "m/x" in page
    assert "1 api_server, 2 worker" in page
    assert "http://h:8000/metrics" in page
    assert "HTTP 404" in page
    assert "No serving process" not in page


async def test_targets_are_escaped_too() -> None:
    agent = FakeAgent()
    agent.targets.table = TargetTable((Target(HOSTILE, HOSTILE, HOSTILE, (process(7, HOSTILE),)),))
    agent.engines_found = EnginesFound((), {HOSTILE: HOSTILE})
    page, _ = await landing(agent)

    assert "<script" not in page
    assert page.count(ESCAPED) == 5


async def test_page_without_targets_says_how_to_name_one() -> None:
    page, _ = await landing(FakeAgent())

    assert "No serving process was found; a [[targets]] rule" in page


async def test_page_needs_nothing_else_and_its_policy_allows_nothing_else() -> None:
    page, policy = await landing(FakeAgent())
    tags = Tags(page).seen
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert {"script", "link", "img", "iframe"}.isdisjoint(tag for tag, _ in tags)
    assert all("style" not in attributes and "src" not in attributes for _, attributes in tags)
    assert "url(" not in style
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "frame-ancestors 'none'" in policy
