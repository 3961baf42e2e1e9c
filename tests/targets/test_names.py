import pytest

from inferwatch.targets import names as module
from inferwatch.targets.names import Named, Places, assign_names


def vllm(started: int, port: int | None = None, place: str = "") -> Named:
    return Named("vllm", "", (started, started), port, port is not None, place)


def names(*targets: Named, remembered: Places | None = None) -> list[str]:
    assign_names(targets, remembered)
    return [target.name for target in targets]


def test_port_engine_and_the_users_name() -> None:
    assert names(vllm(1, 8000), vllm(2), Named("vllm", "mine", port=9)) == ["vllm-8000", "vllm", "mine"]


def test_those_that_do_not_listen_are_numbered_by_age() -> None:
    assert names(vllm(3), vllm(1), vllm(2)) == ["vllm-3", "vllm", "vllm-2"]


def test_numbers_stay_when_an_older_one_ends() -> None:
    first, second = vllm(1), vllm(2)
    names(first, second)

    assert names(second) == ["vllm-2"]


def test_one_port_in_several_namespaces_is_told_apart_by_the_container() -> None:
    assert names(vllm(1, 80), vllm(2, 80, "c0ffee"), vllm(3, 80, "f00")) == ["vllm-80", "vllm-80-c0ffee", "vllm-80-f00"]


def test_a_name_does_not_change_when_an_older_target_is_found_later() -> None:
    young = vllm(5, 80, "c0ffee")
    names(young)

    assert names(vllm(1, 80), young) == ["vllm-80-2", "vllm-80"]


def test_who_listens_takes_the_name_from_what_is_left_of_the_old_server() -> None:
    old = vllm(1, 8000)
    names(old)
    old.listening = False

    assert names(old) == ["vllm-8000"]
    assert names(old, vllm(9, 8000)) == ["vllm", "vllm-8000"]


def test_a_built_in_name_never_takes_a_users() -> None:
    assert names(vllm(1), Named("custom", "vllm", (5, 5))) == ["vllm-2", "vllm"]


def test_name_follows_once_it_listens() -> None:
    target = vllm(1)
    names(target)
    target.port, target.listening = 8000, True

    assert names(target) == ["vllm-8000"]


def test_name_comes_from_the_port_that_is_expected_before_it_listens() -> None:
    target = Named("vllm", "", (1, 1), 8203)

    assert names(target) == ["vllm-8203"]
    target.listening = True
    assert names(target) == ["vllm-8203"]


def test_a_server_that_starts_takes_the_name_from_what_is_left_of_the_old_one() -> None:
    old = vllm(1, 8203)
    names(old)
    old.listening, old.orphan = False, True

    assert names(old) == ["vllm-8203"]
    new = Named("vllm", "", (9, 9), 8203)
    assert names(old, new) == ["vllm-8203-orphan", "vllm-8203"]
    new.listening = True
    assert names(old, new) == ["vllm-8203-orphan", "vllm-8203"]
    assert names(new) == ["vllm-8203"]


def test_strays_of_servers_that_were_never_seen_are_told_apart() -> None:
    strays = [Named("vllm", "", (started, started), orphan=True, stray=True) for started in (1, 2)]
    assert names(*strays) == ["vllm-orphan", "vllm-orphan-2"]

    strays[0].stray = False
    assert names(*strays, Named("vllm", "", (3, 3))) == ["vllm-orphan", "vllm-orphan-2", "vllm"]


def test_who_can_be_reached_has_the_plain_name() -> None:
    hidden = vllm(1, 80, "pod-a")
    hidden.unreachable = True

    assert names(hidden, vllm(2, 80, "pod-b")) == ["vllm-80-pod-a", "vllm-80"]


def test_servers_of_several_pods_have_their_names_again_in_whatever_order_they_come_back() -> None:
    remembered: Places = {}
    assert names(vllm(1, 80, "a"), vllm(2, 80, "b"), remembered=remembered) == ["vllm-80", "vllm-80-b"]
    assert names(remembered=remembered) == []

    second = Named("vllm", "", (3, 3), 80, place="b")
    assert names(second, remembered=remembered) == ["vllm-80-b"]
    second.listening = True
    assert names(second, vllm(4, 80, "c"), vllm(5, 80, "a"), remembered=remembered) == [
        "vllm-80-b",
        "vllm-80-c",
        "vllm-80",
    ]


def test_a_pod_has_its_own_name_before_its_server_listens_too() -> None:
    starting = Named("vllm", "", (9, 9), 80, place="b")

    assert names(vllm(1, 80, "a"), starting) == ["vllm-80", "vllm-80-b"]
    starting.listening = True
    assert names(starting, vllm(1, 80, "a")) == ["vllm-80-b", "vllm-80"]


def test_a_makeshift_name_is_given_up_once_it_listens_where_another_did() -> None:
    old, new = vllm(1, 8000), Named("vllm", "", (9, 9), 8000)
    assert names(old, new) == ["vllm-8000", "vllm"]

    new.listening = True
    assert names(new) == ["vllm-8000"]


def test_what_is_remembered_of_places_is_limited_to_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    remembered: Places = {}
    for place in ("a", "b", "a", "c"):
        names(vllm(1, 80, place), remembered=remembered)

    assert [*remembered] == [("vllm-80", "a"), ("vllm-80", "c")]
