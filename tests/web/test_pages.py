import pytest

from support_web import Answer, FakeAgent, fetch, serving, web_spec


async def test_healthy_says_so() -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, "/-/healthy")

    assert (answer.status, answer.body) == (200, b"healthy\n")


async def test_not_ready_before_the_first_round_and_names_what_is_missing() -> None:
    agent = FakeAgent([web_spec("slow", None, keys=["http://a", "bad\nkey"])])
    async with serving(agent) as url:
        await agent.run(first_round=False)
        answer = await fetch(url, "/-/ready")

    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.body.decode() == "not ready: the first run is not over yet of slow[bad\ufffdkey], slow[http://a]\n"


async def test_ready_after_the_first_round_even_when_it_failed() -> None:
    agent = FakeAgent([web_spec("broken", OSError("no"))])
    async with serving(agent) as url:
        await agent.run()
        answer = await fetch(url, "/-/ready")

    assert (answer.status, answer.body) == (200, b"ready\n")


async def test_ready_answers_head() -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, "/-/ready", method="HEAD")

    assert (answer.status, answer.body) == (503, b"")


async def reload(agent: FakeAgent, method: str = "POST", **headers: str) -> Answer:
    async with serving(agent) as url:
        return await fetch(
            url, "/-/reload", {name.replace("_", "-"): text for name, text in headers.items()}, method=method
        )


async def test_reload_is_refused_unless_enabled() -> None:
    agent = FakeAgent()
    answer = await reload(agent)

    assert answer.status == 403
    assert b"enable_reload = true" in answer.body
    assert agent.reloads == 0


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_reload_reads_the_configuration_again(method: str) -> None:
    agent = FakeAgent(enable_reload=True)
    answer = await reload(agent, method)

    assert (answer.status, answer.body) == (200, b"reloaded\n")
    assert agent.reloads == 1


async def test_invalid_configuration_is_told_one_line_a_mistake() -> None:
    agent = FakeAgent(enable_reload=True)
    agent.reload_problems = ["agent.intervall: unknown option", "web: two\nlines"]
    answer = await reload(agent)

    assert answer.status == 400
    assert answer.body.decode() == "agent.intervall: unknown option\nweb: two\ufffdlines\n"


async def test_reload_by_get_is_a_wrong_method() -> None:
    answer = await reload(FakeAgent(enable_reload=True), "GET")

    assert answer.status == 405
    assert answer.headers["allow"] == "POST, PUT"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:3000", "Host": "localhost:10940"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
async def test_reload_from_another_sites_page_is_refused(headers: dict[str, str]) -> None:
    agent = FakeAgent(enable_reload=True)
    answer = await reload(agent, **headers)

    assert answer.status == 403
    assert agent.reloads == 0


async def test_reload_from_our_own_page_works() -> None:
    agent = FakeAgent(enable_reload=True)
    answer = await reload(agent, Origin="http://host:1", Host="HOST:1", Sec_Fetch_Site="same-origin")

    assert answer.status == 200
