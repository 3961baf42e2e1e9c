import json
import math
from typing import Any

from inferwatch.errors import SourceError
from inferwatch.spec import PartialData
from inferwatch.web.api import to_json
from support_web import FakeAgent, fetch, serving, value_family, web_spec

VALUE = value_family("x")


async def document(agent: FakeAgent) -> Any:  # noqa: ANN401 - JSON can be anything
    async with serving(agent) as url:
        await agent.run()
        agent.clock.advance(3.0)
        answer = await fetch(url, "/api/v1/samplers")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.body)


async def test_every_sampler_is_listed_whatever_its_state() -> None:
    agent = FakeAgent(
        [web_spec("works", [VALUE(1, "a")]), web_spec("off"), web_spec("idle", keys=(), idle_reason="no [[engines]]")],
        disabled=["off"],
        problems=("theirs (a.b:c): can't be loaded",),
    )
    page = await document(agent)

    assert [(item["name"], item["enabled"], item["idle_reason"]) for item in page["samplers"]] == [
        ("idle", True, "no [[engines]]"),
        ("off", False, None),
        ("works", True, None),
    ]
    assert page["problems"] == ["theirs (a.b:c): can't be loaded"]
    assert page["ready"] is True


async def test_instance_says_how_it_is_doing() -> None:
    page = await document(FakeAgent([web_spec("works", [VALUE(1, "a")])]))

    assert page["samplers"][0] == {
        "name": "works",
        "dimension": "cpu",
        "summary": "A test.",
        "enabled": True,
        "idle_reason": None,
        "families": 1,
        "instances": [
            {
                "instance": "",
                "state": "ok",
                "interval_seconds": 5.0,
                "timeout_seconds": 4.0,
                "age_seconds": 3.0,
                "duration_seconds": 0.0,
                "runs": 1,
                "skipped": 0,
                "failures": {},
                "problems": {},
            }
        ],
    }


async def test_failing_instance_gives_its_reason_and_has_no_age() -> None:
    page = await document(FakeAgent([web_spec("broken", SourceError("refused", reason="network"), keys=["b", "a"])]))
    first, second = page["samplers"][0]["instances"]

    assert (first["instance"], second["instance"]) == ("a", "b")
    assert first["state"] == "failing"
    assert first["age_seconds"] is None
    assert first["failures"] == {"network": 1}
    assert first["problems"] == {"network": "refused"}


async def test_hostile_text_still_makes_valid_json() -> None:
    problems = {"odd": 'quote " and \udc80 and \x00'}
    page = await document(FakeAgent([web_spec("odd", PartialData([VALUE(1, "a")], problems), keys=["\ud800"])]))

    assert page["samplers"][0]["instances"][0]["instance"] == "\ufffd"
    assert page["samplers"][0]["instances"][0]["problems"] == {"odd": 'quote " and \ufffd and \x00'}


def test_values_that_json_does_not_have_become_null() -> None:
    assert json.loads(to_json({"a": [math.nan, math.inf, 1.5, True, None, object]})) == {
        "a": [None, None, 1.5, True, None, "<class 'object'>"]
    }
