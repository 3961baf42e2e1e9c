"""Engines in a network namespace of their own, as in a pod: a real one, joined to this machine's by a pair of veths."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inferwatch.targets.model import Target, Unreachable
from inferwatch.targets.probe import EngineProbe
from inferwatch.targets.tracker import TargetTracker
from support import FakeClock
from support_process import free_port
from support_serving import engine, of, tracker

NAMESPACE = f"iwtest{os.getpid()}"
NEAR, FAR = f"iwn{os.getpid()}", f"iwf{os.getpid()}"
FAR_ADDRESS = "198.51.100.2"

pytestmark = [
    pytest.mark.real("netns"),
    pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root"),
]


async def ip(*arguments: str, check: bool = True) -> None:
    process = await asyncio.create_subprocess_exec("ip", *arguments, stdout=DEVNULL, stderr=PIPE)
    _, errors = await process.communicate()
    assert not check or process.returncode == 0, f"ip {' '.join(arguments)}: {errors.decode()}"


@pytest.fixture
async def namespace() -> AsyncIterator[tuple[str, ...]]:
    """Make the namespace; return what begins a command in it."""
    inside = ("-n", NAMESPACE)
    try:
        await ip("netns", "add", NAMESPACE)
        await ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", NAMESPACE)
        await ip("addr", "add", "198.51.100.1/30", "dev", NEAR)
        await ip("link", "set", NEAR, "up")
        await ip(*inside, "addr", "add", f"{FAR_ADDRESS}/30", "dev", FAR)
        await ip(*inside, "link", "set", "lo", "up")
        await ip(*inside, "link", "set", FAR, "up")
        yield ("ip", "netns", "exec", NAMESPACE)
    finally:
        await ip("link", "del", NEAR, check=False)
        await ip("netns", "del", NAMESPACE, check=False)


def namespace_of(pid: int) -> str:
    return Path(f"/proc/{pid}/ns/net").readlink().name.strip("net:[]")


async def found_in(table: TargetTracker, pid: int) -> Target:
    target = of(table, pid)
    assert target is not None
    return target


async def test_an_engine_is_reached_at_its_namespaces_own_address(namespace: tuple[str, ...], tmp_path: Path) -> None:
    port = free_port()
    found = tracker()
    async with engine(tmp_path, port=port, host="0.0.0.0", before=namespace) as process:
        target = await found_in(found, process.pid)
        pages = await EngineProbe(FakeClock()).discover(found.current(), (), found.own_addresses)

    assert (target.name, target.endpoints[0].url) == (f"vllm-{port}", f"http://{FAR_ADDRESS}:{port}")
    page = next(page for page in pages.engines if page.target == target.name)
    assert (page.url, page.engine, page.model) == (f"http://{FAR_ADDRESS}:{port}/metrics", "vllm", "served")


async def test_an_engine_on_its_loopback_is_unreachable_and_says_why(
    namespace: tuple[str, ...], tmp_path: Path
) -> None:
    port = free_port()
    async with engine(tmp_path, port=port, host="127.0.0.1", before=namespace) as process:
        target = await found_in(tracker(), process.pid)

    (endpoint,) = target.endpoints
    assert (endpoint.url, endpoint.port, endpoint.unreachable) == ("", port, Unreachable.LOOPBACK)
    assert "listens only on 127.0.0.1 of another network namespace" in endpoint.unreachable_reason


async def test_the_same_port_in_two_namespaces_is_two_names(namespace: tuple[str, ...], tmp_path: Path) -> None:
    port = free_port()
    found = tracker()
    async with (
        engine(tmp_path, port=port) as here,
        engine(tmp_path, port=port, host="0.0.0.0", before=namespace) as there,
    ):
        first = await found_in(found, here.pid)
        second = await found_in(found, there.pid)
        inode = namespace_of(there.pid)

    assert first.endpoints[0].url == f"http://127.0.0.1:{port}"
    assert (first.name, second.name) == (f"vllm-{port}", f"vllm-{port}-{inode}")
