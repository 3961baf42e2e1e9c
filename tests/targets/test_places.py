import asyncio
import os
import socket
import threading
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest

from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.targets.places import LOOPBACK, NAMES_LIMIT, HostNames, places
from support import FakeClock

OWN = frozenset({ip_address("192.0.2.2"), ip_address("2001:db8::2")})
NODE = os.uname().nodename


class Resolver:
    """Answers that the test sets; a name that has none can't be resolved."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, name: str, _port: object, **_options: object) -> list[tuple[Any, ...]]:
        self.asked.append(name)
        if name.startswith("hang"):
            self.go.wait(30)
        if name not in self.answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [(2, 1, 6, "", (address, 0)) for address in self.answers[name].split()]


def names(resolver: Resolver, clock: FakeClock | None = None) -> HostNames:
    return HostNames(clock or FakeClock(), Lane(BlockingPool()), resolver)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://x/metrics", ("x", 80)),
        ("https://X./metrics", ("x", 443)),
        ("http://localhost:1/", (LOOPBACK, 1)),
        ("http://[::1]:1/", (LOOPBACK, 1)),
        ("http://0.0.0.0:1/", (LOOPBACK, 1)),
        ("http://[::ffff:192.0.2.2]:1/", (LOOPBACK, 1)),
        ("http://[2001:db8::2]:1/", (LOOPBACK, 1)),
        ("http://192.0.2.9:1/", ("192.0.2.9", 1)),
        (f"http://{NODE.upper()}:1/", (LOOPBACK, 1)),
    ],
)
def test_the_many_names_of_the_agents_host_are_one(url: str, place: tuple[str, int]) -> None:
    assert places(url, OWN) == {place}


def test_a_host_name_is_at_all_its_addresses() -> None:
    hosts = {"pair": frozenset({ip_address("192.0.2.2"), ip_address("192.0.2.9")})}

    assert places("http://pair:1/", OWN, hosts) == {(LOOPBACK, 1), ("192.0.2.9", 1)}
    assert places("http://other:1/", OWN, hosts) == {("other", 1)}


async def test_names_are_resolved_and_numbers_are_not() -> None:
    resolver = Resolver(node="192.0.2.2 fe80::1%eth0", twice="127.0.1.1")
    urls = ["http://Node.:1/", "http://10.0.0.1/", "http://[::1]:2/", "http://twice/a", "http://twice/b", "http://no/"]

    assert await names(resolver).of(urls) == {
        "node": {ip_address("192.0.2.2"), ip_address("fe80::1")},
        "twice": {ip_address("127.0.1.1")},
    }
    assert resolver.asked == ["node", "twice", "no"]


async def test_names_are_asked_for_once_a_minute_and_kept_when_that_fails() -> None:
    resolver, clock = Resolver(node="192.0.2.2"), FakeClock()
    hosts = names(resolver, clock)
    before = await hosts.of(["http://node/"])
    clock.advance(59)
    await hosts.of(["http://node/"])
    assert resolver.asked == ["node"]

    resolver.answers.clear()
    clock.advance(2)
    assert await hosts.of(["http://node/"]) == before
    assert resolver.asked == ["node", "node"]

    resolver.answers["node"] = "192.0.2.3"
    clock.advance(61)
    assert await hosts.of(["http://node/"]) == {"node": {ip_address("192.0.2.3")}}


async def test_a_resolver_that_hangs_holds_up_nobody_and_is_not_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferwatch.targets.places.WAIT_SECONDS", 0.05)
    resolver, clock = Resolver(node="192.0.2.2", hang="192.0.2.3"), FakeClock()
    hosts, urls = names(resolver, clock), ["http://node/", "http://hang/"]
    resolver.go.clear()
    try:
        async with asyncio.timeout(20):
            assert await until(lambda: hosts.of(urls)) == {"node": {ip_address("192.0.2.2")}}
            for _ in range(3):
                clock.advance(61)
                assert [*await hosts.of(urls)] == ["node"]
        assert resolver.asked == ["node", "hang"]
    finally:
        resolver.go.set()

    async with asyncio.timeout(20):
        while len(await hosts.of(urls)) < 2:
            clock.advance(61)
            await asyncio.sleep(0.01)


async def until(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
    """Return the first answer that is not empty."""
    while not (answer := await call()):
        await asyncio.sleep(0.01)
    return answer


async def test_the_number_of_names_is_limited_and_odd_ones_raise_nothing() -> None:
    resolver = Resolver()
    hosts = names(resolver)

    assert await hosts.of([f"http://n{number}/" for number in range(NAMES_LIMIT + 50)]) == {}
    assert len(resolver.asked) == NAMES_LIMIT
    real = HostNames(FakeClock(), Lane(BlockingPool()))
    assert await real.of([f"http://{'a' * 70}.x/", "http:///", "http://a..b/"]) == {}
