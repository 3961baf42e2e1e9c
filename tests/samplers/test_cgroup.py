import errno
from pathlib import Path
from typing import Any

import pytest

from inferwatch.samplers.cgroup import SAMPLER
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Sampler
from inferwatch.targets.model import CgroupPaths
from support import fail_open, host, make_context, names, tree, value, values
from support_targets import Targets, process, sample_anyway, target

MIB = 1 << 20
P = "inferwatch_target_cgroup_"
POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice"
V2 = CgroupPaths(f"{POD}/cri-containerd-{'a' * 64}.scope")
DOCKER = "/docker/" + "b" * 64
V1 = CgroupPaths(None, dict.fromkeys(("memory", "cpu", "cpuacct", "cpuset"), DOCKER))
HYBRID = CgroupPaths(DOCKER, V1.controllers)


def make(hostfs: HostFs, view: Targets) -> Sampler:
    return SAMPLER.create(make_context(hostfs, targets=view))


def view(paths: CgroupPaths) -> Targets:
    return Targets(target("svc", process(10), cgroup=paths))


async def test_v2_container() -> None:
    samples = await make(host("cgroup-v2"), view(V2)).sample()

    assert value(samples, P + "memory_usage_bytes", "svc") == 5_000_000_000
    assert value(samples, P + "memory_working_set_bytes", "svc") == 4_500_000_000
    assert value(samples, P + "memory_limit_bytes", "svc") == 6_000_000_000  # the pod's is lower than its own
    assert value(samples, P + "memory_high_bytes", "svc") == 5_800_000_000
    assert value(samples, P + "memory_peak_bytes", "svc") == 5_900_000_000
    assert value(samples, P + "swap_usage_bytes", "svc") == 4096
    assert value(samples, P + "oom_kills_total", "svc") == 1
    assert values(samples, P + "memory_events_total") == {
        ("svc", "low"): 0,
        ("svc", "high"): 0,
        ("svc", "max"): 3,
        ("svc", "oom"): 1,
    }
    assert value(samples, P + "cpu_seconds_total", "svc") == 80
    assert values(samples, P + "pressure_stall_seconds_total") == {
        ("svc", "cpu", "some"): 3,
        ("svc", "cpu", "full"): 1,
        ("svc", "memory", "some"): 0.5,
        ("svc", "memory", "full"): 0.25,
        ("svc", "io", "some"): 0,
        ("svc", "io", "full"): 0,
    }
    assert value(samples, P + "cpuset_cpus", "svc") == 2
    assert value(samples, P + "cpuset_memory_nodes", "svc") == 1
    assert names(samples) == {family.name for family in SAMPLER.families}


async def test_lowest_quota_counts_and_its_group_tells_the_throttling() -> None:
    samples = await make(host("cgroup-v2"), view(V2)).sample()

    assert value(samples, P + "cpu_quota_cores", "svc") == 2
    assert value(samples, P + "cpu_periods_total", "svc") == 1000
    assert value(samples, P + "cpu_throttled_periods_total", "svc") == 250
    assert value(samples, P + "cpu_throttled_seconds_total", "svc") == 12.5


async def test_v1_container_without_a_limit_has_its_parents() -> None:
    samples = await make(host("cgroup-v1"), view(V1)).sample()

    assert value(samples, P + "memory_limit_bytes", "svc") == 4_000_000_000
    assert value(samples, P + "memory_working_set_bytes", "svc") == 1_700_000_000
    assert value(samples, P + "memory_peak_bytes", "svc") == 2_500_000_000
    assert value(samples, P + "swap_usage_bytes", "svc") == 8192
    assert value(samples, P + "oom_kills_total", "svc") == 2
    assert values(samples, P + "memory_events_total") == {("svc", "max"): 17}
    assert value(samples, P + "cpu_seconds_total", "svc") == 60
    assert value(samples, P + "cpu_quota_cores", "svc") == 1.5
    assert value(samples, P + "cpu_throttled_seconds_total", "svc") == 2.5
    assert value(samples, P + "cpuset_cpus", "svc") == 4
    assert P + "pressure_stall_seconds_total" not in names(samples)


async def test_hybrid_takes_memory_from_v1_and_pressure_from_v2() -> None:
    samples = await make(host("cgroup-hybrid"), view(HYBRID)).sample()

    assert value(samples, P + "memory_limit_bytes", "svc") == 4_000_000_000
    assert value(samples, P + "pressure_stall_seconds_total", "svc", "cpu", "some") == 2
    assert value(samples, P + "cpu_seconds_total", "svc") == 60


@pytest.mark.parametrize(
    ("recorded", "paths"),
    [
        ("cgroup-v2", CgroupPaths("/kubepods.slice")),
        ("cgroup-v1", CgroupPaths(None, {"memory": "/", "cpu": "/docker"})),
    ],
)
async def test_no_limit_is_absent(recorded: str, paths: CgroupPaths) -> None:
    samples = await make(host(recorded), view(paths)).sample()

    assert P + "memory_limit_bytes" not in names(samples)
    assert P + "cpu_quota_cores" not in names(samples)
    assert value(samples, P + "cpu_throttled_periods_total", "svc") == 0


async def test_v1_limit_of_a_parent_without_use_hierarchy_does_not_count(tmp_path: Path) -> None:
    base = "sys/fs/cgroup/memory/"
    files = {
        base + "release_agent": b"\n",
        base + "a/memory.usage_in_bytes": b"5\n",
        base + "a/memory.limit_in_bytes": b"10\n",
        base + "a/memory.use_hierarchy": b"0\n",
        base + "a/b/memory.usage_in_bytes": b"3\n",
        base + "a/b/memory.limit_in_bytes": b"20\n",
    }
    samples = await make(tree(tmp_path, files), view(CgroupPaths(None, {"memory": "/a/b"}))).sample()

    assert value(samples, P + "memory_limit_bytes", "svc") == 20


async def test_root_group_is_the_host_and_no_target(tmp_path: Path) -> None:
    assert list(await make(host("cgroup-v2"), view(CgroupPaths("/"))).sample()) == []
    assert list(await make(tree(tmp_path, {}), view(CgroupPaths("/"))).sample()) == []


async def test_memory_is_charged_where_the_controller_is_enabled(tmp_path: Path) -> None:
    base = "sys/fs/cgroup/"
    files = {
        base + "cgroup.controllers": b"memory\n",
        base + "a/memory.current": b"7\n",
        base + "a/b/cgroup.events": b"",
    }
    samples = await make(tree(tmp_path, files), view(CgroupPaths("/a/b"))).sample()

    assert value(samples, P + "memory_usage_bytes", "svc") == 7


async def test_group_outside_the_agents_namespace_says_what_to_do() -> None:
    samples, problems = await sample_anyway(make(host("cgroup-v2"), view(CgroupPaths("/../other"))))

    assert samples == []
    assert "--cgroupns=host" in problems["no_data"]


async def test_denied_and_malformed_files_leave_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"memory.current": errno.EACCES})
    samples, problems = await sample_anyway(make(host("cgroup-v2"), view(V2)))

    assert list(problems) == ["permission_denied"]
    assert value(samples, P + "cpu_quota_cores", "svc") == 2


async def test_pressure_that_is_switched_off_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {".pressure": errno.EOPNOTSUPP})
    samples = await make(host("cgroup-v2"), view(V2)).sample()

    assert P + "pressure_stall_seconds_total" not in names(samples)


async def test_malformed_pressure_is_named_by_its_file(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cgroup.controllers": b"",
        "sys/fs/cgroup/a/cgroup.events": b"",
        "sys/fs/cgroup/a/io.pressure": b"some total=x\n",
    }
    _, problems = await sample_anyway(make(tree(tmp_path, files), view(CgroupPaths("/a"))))

    assert "/sys/fs/cgroup/a/io.pressure: total is" in problems["parse"]


async def test_counters_of_a_target_do_not_fall_when_its_container_is_replaced(tmp_path: Path) -> None:
    def group(name: str, kills: int, periods: int) -> dict[str, bytes]:
        base = f"sys/fs/cgroup/{name}/"
        return {
            base + "cgroup.events": b"",
            base + "memory.current": b"1\n",
            base + "memory.events": b"oom_kill %d\n" % kills,
            base + "cpu.max": b"max 100000\n",
            base + "cpu.stat": b"usage_usec 1\nnr_periods %d\nnr_throttled 0\nthrottled_usec 0\n" % periods,
        }

    top = {"sys/fs/cgroup/cgroup.controllers": b""}
    hostfs = tree(tmp_path, top | group("one", 3, 500) | group("two", 0, 2))
    targets = view(CgroupPaths("/one"))
    sampler = make(hostfs, targets)
    seen = []
    for paths, files in (("/one", {}), ("/two", {}), ("/two", group("two", 1, 7)), ("/two", group("two", 0, 1))):
        tree(tmp_path, files)
        targets.set(target("svc", process(10), cgroup=CgroupPaths(paths)))
        samples = await sampler.sample()
        seen.append((value(samples, P + "oom_kills_total", "svc"), value(samples, P + "cpu_periods_total", "svc")))

    assert seen == [(3, 500), (3, 500), (4, 505), (4, 506)]


async def test_target_that_is_absent_for_a_round_goes_on(tmp_path: Path) -> None:
    def use(microseconds: int) -> None:
        tree(tmp_path, {"sys/fs/cgroup/one/cpu.stat": b"usage_usec %d\n" % microseconds})

    top = {"sys/fs/cgroup/cgroup.controllers": b"", "sys/fs/cgroup/one/cgroup.events": b""}
    hostfs = tree(tmp_path, top)
    use(5_000_000)
    svc = target("svc", process(10), cgroup=CgroupPaths("/one"))
    targets = Targets(svc)
    sampler = make(hostfs, targets)
    seen = [value(await sampler.sample(), P + "cpu_seconds_total", "svc")]
    targets.set()
    use(7_000_000)
    await sampler.sample()
    targets.set(svc)
    seen.append(value(await sampler.sample(), P + "cpu_seconds_total", "svc"))
    use(8_000_000)
    seen.append(value(await sampler.sample(), P + "cpu_seconds_total", "svc"))

    assert seen == [5, 7, 8]


async def test_targets_in_one_group_cost_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = "sys/fs/cgroup/"
    files = {base + "cgroup.controllers": b"", base + "a/cgroup.events": b"", base + "a/memory.current": b"7\n"}
    hostfs = tree(tmp_path, files)
    paths = CgroupPaths("/a")
    opened: list[str] = []
    real = Path.open

    # Any: passed through to Path.open, whose overloads depend on the mode.
    def counting(self: Path, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - see above
        opened.append(self.name)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", counting)
    both = Targets(target("one", process(10), cgroup=paths), target("two", process(11), cgroup=paths))
    samples = await make(hostfs, both).sample()

    assert values(samples, P + "memory_usage_bytes") == {("one",): 7, ("two",): 7}
    assert opened.count("memory.current") == 1


async def test_target_that_is_gone_has_no_series() -> None:
    targets = view(V2)
    sampler = make(host("cgroup-v2"), targets)
    await sampler.sample()
    targets.set()

    assert list(await sampler.sample()) == []
