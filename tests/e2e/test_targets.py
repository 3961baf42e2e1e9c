"""The agent as a process beside a serving process: found, attributed, scraped and gone, with more and fewer rights."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from inferwatch.samplers.threads import SAMPLER
from support_process import ROOT, AgentProcess, agent, free_port
from support_serving import PYTHON, Running, running
from support_tasks import USER_HZ

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="other users, mounts and BPF programs need root")
PAGE = ROOT / "tests" / "fixtures" / "engines" / "vllm-0.32-after.prom"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
COMPLETE = {
    "inferwatch_engine_up",
    "inferwatch_target_cpu_seconds_total",
    "inferwatch_target_memory_bytes",
}
# like vLLM: an API server with the recorded page, an engine core and a worker that computed once and are idle now
ENGINE = r"""
import ctypes, http.server, os, sys, time
port, seconds = int(sys.argv[-2]), float(sys.argv[-1])
def child(title):
    start, end = map(int, open("/proc/self/stat").read().rpartition(") ")[2].split()[45:47])
    ctypes.memmove(start, title.encode().ljust(end - start, b"\0"), end - start)
    ctypes.CDLL(None).prctl(15, title[:15].encode(), 0, 0, 0)  # PR_SET_NAME
    while time.process_time() < seconds:
        os.getppid()
    os.write(done[1], b"x")
    time.sleep(1e6)
done = os.pipe()
for title in ("VLLM::EngineCore", "VLLM::Worker_TP0"):
    if os.fork() == 0:
        child(title)
os.read(done[0], 1), os.read(done[0], 1)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = open(sys.argv[-3], "rb").read()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
print("ready", flush=True)
server.serve_forever()
"""


@contextlib.asynccontextmanager
async def engine(directory: Path, cpu_seconds: float = 0.01, page: Path = PAGE) -> AsyncIterator[tuple[str, Running]]:
    """Run it; yields the name that the target will have."""
    script, port = directory / "vllm", free_port()
    script.write_text(ENGINE, encoding="utf-8")
    command = (PYTHON, "-S", str(script), "serve", "m/x", "--port", str(port), str(page), str(port), str(cpu_seconds))
    async with running(*command) as process:
        await process.wait_for("ready")
        yield f"vllm-{port}", process


def of_target(page: str, target: str) -> dict[str, dict[str, float]]:
    """Return the series of a target: family to its other labels to value."""
    found: dict[str, dict[str, float]] = {}
    for name, labels, value in re.findall(rf'^(\w+)\{{target="{target}",?(.*)\}} (\S+)$', page, re.MULTILINE):
        found.setdefault(name, {})[labels] = float(value)
    return found


async def complete(watching: AgentProcess, target: str) -> str:
    """Wait until the page has all of a target: its samplers and its engine begin when the target has been found."""
    async with asyncio.timeout(8):
        while True:
            page = await watching.page()
            if of_target(page, target).keys() >= COMPLETE:
                return page
            await asyncio.sleep(0.1)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / USER_HZ


def switches(pid: int, kind: str) -> int:
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(re.findall(rf"^{kind}_ctxt_switches:\s+(\d+)$", text, re.MULTILINE)[0]) for text in statuses)


def config(directory: Path, text: str = "", name: str = "config") -> str:
    path = directory / f"{name}.toml"
    path.write_text(f"[agent]\ninterval_seconds = 1\n{text}", encoding="utf-8")
    return f"--config={path}"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Return a directory that the user nobody can read, unlike tmp_path, which is root's alone."""
    with TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


async def command_targets() -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "inferwatch", "targets", stdout=PIPE, stderr=STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


@pytest.mark.real("ebpf")
async def test_serving_process_is_found_attributed_and_scraped_without_configuration(tmp_path: Path) -> None:
    async with engine(tmp_path, cpu_seconds=1.5) as (name, process), agent(config(tmp_path)) as watching:
        page, target, listed = await complete(watching, name), (await watching.targets())[name], await command_targets()
        series = of_target(page, name)
        pids = {one["role"]: one["pid"] for one in target["processes"]}
        cpu = {role: cpu_seconds(pid) for role, pid in pids.items()}
        waits = {role: switches(pid, "voluntary") for role, pid in pids.items()}
        os.killpg(process.pid, signal.SIGKILL)
        await gone(watching.page, name)
        left = await watching.targets()

    assert 'inferwatch_threads_source_info{source="bpf"} 1' in page
    assert target["metrics_page"]["url"] == f"http://127.0.0.1:{name.partition('-')[2]}/metrics"
    assert series["inferwatch_engine_up"] == {'engine="vllm"': 1}
    assert series["inferwatch_engine_generation_tokens_total"] == {'engine="vllm",model="tiny"': 10826}
    assert series["inferwatch_target_processes"] == {f'role="{r}"': 1 for r in ("api_server", "engine_core", "worker")}
    assert series["inferwatch_target_memory_bytes"].keys() >= {'role="worker",kind="anonymous"'}
    assert [line.split()[:3] for line in listed.splitlines() if name in line] == [[name, "vllm", "m/x"]]
    for role in ("engine_core", "worker"):  # the API server goes on working
        found = series["inferwatch_target_cpu_seconds_total"]
        used = found[f'role="{role}",mode="user"'] + found[f'role="{role}",mode="system"']
        assert used == pytest.approx(cpu[role], rel=0.02)
        slept = series["inferwatch_target_context_switches_total"][f'role="{role}",kind="voluntary"']
        assert slept == pytest.approx(waits[role], rel=0.02)
    assert name not in left


async def gone(page: Callable[[], Awaitable[str]], name: str) -> None:
    """Wait until nothing on the page is of a target; its own series leave with the next sample."""
    async with asyncio.timeout(3.5):
        while f'target="{name}"' in await page():
            await asyncio.sleep(0.1)


@pytest.mark.real("ebpf")
async def test_without_bpf_there_are_the_same_families(tmp_path: Path) -> None:
    names = {family.name for family in SAMPLER.families}
    files = config(tmp_path, '[samplers.threads]\nsource = "procfs"\n')
    async with engine(tmp_path) as (name, _), agent(config(tmp_path, name="bpf")) as first, agent(files) as second:
        bpf, procfs = await complete(first, name), await complete(second, name)

    assert 'inferwatch_threads_source_info{source="procfs"} 1' in procfs
    assert 'inferwatch_threads_source_info{source="bpf"} 1' in bpf
    found, expected = of_target(procfs, name), of_target(bpf, name)
    assert {n: found[n].keys() for n in found.keys() & names} == {
        n: expected[n].keys() for n in expected.keys() & names
    }
    assert len(found.keys() & names) >= 10


@pytest.mark.real("nobody")
async def test_without_privileges_there_is_less_and_it_says_so(tmp_path: Path, open_to_all: Path) -> None:
    async with engine(tmp_path) as (name, _), agent(config(open_to_all), before=NOBODY) as watching:
        series, problems = of_target(await complete(watching, name), name), await troubles(watching.samplers)
        page = (await watching.targets())[name]["metrics_page"]

    assert page["engine"] == "vllm"
    assert series["inferwatch_engine_up"] == {'engine="vllm"': 1}
    assert series["inferwatch_target_cpu_seconds_total"]
    assert 'role="worker",kind="anonymous"' in series["inferwatch_target_memory_bytes"]
    assert "inferwatch_target_memory_proportional_bytes" not in series
    assert "CAP_SYS_PTRACE" in problems["targets"]["permission_denied"]
    assert "bpf_unavailable" in problems["threads"]
    assert "permission_denied" in problems["process_memory"]


@pytest.mark.real("hidepid")
async def test_where_other_users_processes_are_hidden_it_says_so_and_the_host_is_sampled(tmp_path: Path) -> None:
    mount = 'mount -t proc -o hidepid=1 proc /proc && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", mount, "sh", *NOBODY)
    async with engine(tmp_path), agent(before=before) as watching:
        page, problems, targets = await watching.page(), await troubles(watching.samplers), await watching.targets()

    assert targets == {}
    assert "inferwatch_cpu_seconds_total" in page
    assert re.search(r"^inferwatch_target_unreadable_processes [1-9]", page, re.MULTILINE)
    assert "CAP_SYS_PTRACE" in problems["targets"]["permission_denied"]


@pytest.mark.real("pid namespace")
async def test_in_a_pid_namespace_the_hosts_processes_are_seen_through_its_mounted_proc(tmp_path: Path) -> None:
    mounted = tmp_path / "proc"
    mounted.mkdir()
    mount = f'mount --bind /proc {mounted} && mount -t proc proc /proc && exec "$@"'
    before = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mount, "sh")
    async with (
        engine(tmp_path, cpu_seconds=0.5) as (name, process),
        agent(config(tmp_path), f"--path.procfs={mounted}", before=before, number=signal.SIGKILL) as watching,
    ):
        series, target = of_target(await complete(watching, name), name), (await watching.targets())[name]
        core = next(one["pid"] for one in target["processes"] if one["role"] == "engine_core")
        expected = cpu_seconds(core)

    found = series["inferwatch_target_cpu_seconds_total"]
    used = sum(value for labels, value in found.items() if 'role="engine_core"' in labels)
    assert target["processes"][0]["pid"] == process.pid
    assert used == pytest.approx(expected, rel=0.04)  # of 0.5 s; the files count ticks of 10 ms
    assert series["inferwatch_engine_up"] == {'engine="vllm"': 1}


async def test_an_engine_that_is_configured_by_the_hosts_name_is_scraped_once(tmp_path: Path) -> None:
    async with engine(tmp_path) as (name, _):
        url = f"http://{socket.gethostname()}:{name.partition('-')[2]}/metrics"
        files = config(tmp_path, f'[[engines]]\nurl = "{url}"\ntarget = "mine"\n')
        async with agent(files) as watching, asyncio.timeout(20):
            for _ in range(3):
                await asyncio.sleep(1)  # of the agent's interval: the search for engines goes on
                page, targets = await watching.page(), await watching.targets()

    assert re.findall(r'^inferwatch_engine_up\{target="([^"]*)"', page, re.MULTILINE) == ["mine"]
    assert targets[name]["metrics_page"]["found_by"] == "configuration"


async def test_another_engine_at_the_same_address_is_recognised(tmp_path: Path) -> None:
    shown = tmp_path / "page"
    shown.write_bytes(PAGE.read_bytes())
    async with engine(tmp_path, page=shown) as (name, _), agent(config(tmp_path)) as watching:
        before = of_target(await complete(watching, name), name)["inferwatch_engine_up"]
        shown.write_bytes((PAGE.parent / "llamacpp-mid.prom").read_bytes())
        async with asyncio.timeout(30):
            while of_target(await watching.page(), name).get("inferwatch_engine_up") != {'engine="llamacpp"': 1}:
                await asyncio.sleep(0.2)

    assert before == {'engine="vllm"': 1}


async def test_an_engine_that_is_stopped_is_nothing_to_warn_of(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with engine(tmp_path) as (name, process), agent(config(tmp_path), log=log) as watching:
        await complete(watching, name)
        os.killpg(process.pid, signal.SIGKILL)
        await gone(watching.page, name)

    assert [line for line in log.read_text().splitlines() if "connect" in line and "warning" in line] == []


async def troubles(samplers: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Mapping[str, str]]:
    """Return what each sampler's first instance says is wrong."""
    found = await samplers()
    return {name: one["instances"][0]["problems"] for name, one in found.items() if one["instances"]}
