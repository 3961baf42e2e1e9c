import errno
import os
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.model import Sample
from inferwatch.samplers.cpu import MODES, SAMPLER
from inferwatch.spec import PartialData
from support import HOSTS, LIVE, CountingRun, fail_open, host, make_context, names, tree, value, values

SECONDS = "inferwatch_cpu_seconds_total"
MINIMAL = {
    "proc/stat": b"cpu  200 0 100 1000 0 0 0 0 0 0\ncpu0 200 0 100 1000 0 0 0 0 0 0\n",
    "proc/loadavg": b"0.50 0.25 0.10 1/100 300\n",
    "proc/softirqs": b"   CPU0\n  HI: 1\n",
}


async def hotplug_rounds(tmp_path: Path) -> list[Sequence[Sample]]:
    """Sample the four looks of the hotplug fixture with one sampler, in user ticks of 1/100 s."""
    root = tmp_path / "host"
    sampler = SAMPLER.create(make_context(tree(root, {})))
    rounds = []
    for look in sorted(path for path in (HOSTS / "hotplug").iterdir() if path.is_dir()):
        shutil.copytree(look, root, dirs_exist_ok=True)
        rounds.append(await sampler.sample())
    return rounds


async def test_time_is_summed_per_numa_node_and_mode() -> None:
    samples = await SAMPLER.create(make_context(host("two-nodes"))).sample()

    assert value(samples, SECONDS, "0", "user") == 3100.0
    assert value(samples, SECONDS, "1", "user") == 8000.0
    assert value(samples, SECONDS, "0", "nice") == 1.0
    assert value(samples, SECONDS, "1", "idle") == 19890.0
    assert values(samples, "inferwatch_cpu_online") == {("0",): 3, ("1",): 3}


async def test_nodes_add_up_to_the_kernels_own_sum() -> None:
    samples = await SAMPLER.create(make_context(host("two-nodes"))).sample()
    ticks = (HOSTS / "two-nodes" / "proc" / "stat").read_bytes().splitlines()[0].split()[1:9]

    for mode, expected in zip(MODES, ticks, strict=True):
        found = sum(seconds for (_, each), seconds in values(samples, SECONDS).items() if each == mode)
        assert found == pytest.approx(int(expected) / 100), mode


async def test_guest_time_is_left_inside_user() -> None:
    samples = await SAMPLER.create(make_context(host("two-nodes"))).sample()

    assert {mode for _, mode in values(samples, SECONDS)} == set(MODES)
    assert "guest" not in MODES


async def test_recorded_host_has_every_family() -> None:
    samples = await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()

    assert names(samples) == {family.name for family in SAMPLER.families}
    assert values(samples, "inferwatch_cpu_online") == {("0",): 2}
    assert set(values(samples, "inferwatch_load_average")) == {("1",), ("5",), ("15",)}
    assert ("net_rx",) in values(samples, "inferwatch_softirqs_total")


async def test_offline_cpu_keeps_its_past_in_the_total(tmp_path: Path) -> None:
    rounds = await hotplug_rounds(tmp_path)

    assert [value(samples, SECONDS, "0", "user") for samples in rounds[:2]] == [70.0, 73.0]
    assert [value(samples, "inferwatch_cpu_online", "0") for samples in rounds] == [4, 3, 4, 4]


async def test_cpu_that_returns_with_lower_counters_counts_from_there(tmp_path: Path) -> None:
    rounds = await hotplug_rounds(tmp_path)

    # user goes on at 30.1 s (it was 30.0), idle begins anew at 0.5 s: then 4 s more on each of the four CPUs.
    assert [value(samples, SECONDS, "0", "user") for samples in rounds[2:]] == pytest.approx([76.1, 80.1])
    assert [value(samples, SECONDS, "0", "idle") for samples in rounds] == [3170.0, 3182.0, 3194.0, 3210.0]


async def test_step_back_of_iowait_is_no_negative_rate(tmp_path: Path) -> None:
    rounds = await hotplug_rounds(tmp_path)

    assert [value(samples, SECONDS, "0", "iowait") for samples in rounds] == pytest.approx([4.0, 4.0, 4.01, 4.01])


async def test_totals_never_fall_over_a_hotplug(tmp_path: Path) -> None:
    rounds = await hotplug_rounds(tmp_path)

    for before, after in pairwise(rounds):
        earlier, later = values(before, SECONDS), values(after, SECONDS)
        assert all(later[labels] >= seconds for labels, seconds in earlier.items())


async def test_new_cpu_is_found_in_its_node_without_a_restart(tmp_path: Path) -> None:
    nodes = "sys/devices/system/node"
    files = MINIMAL | {
        f"{nodes}/online": b"0-1\n",
        f"{nodes}/node0/cpulist": b"0\n",
        f"{nodes}/node1/cpulist": b"\n",
    }
    sampler = SAMPLER.create(make_context(tree(tmp_path, files)))
    first = await sampler.sample()
    more = {"proc/stat": MINIMAL["proc/stat"] + b"cpu1 500 0 0 0 0 0 0 0 0 0\n", f"{nodes}/node1/cpulist": b"1\n"}
    tree(tmp_path, more)
    second = await sampler.sample()

    assert values(first, "inferwatch_cpu_online") == {("0",): 1}
    assert value(second, SECONDS, "1", "user") == 5.0


async def test_columns_of_an_old_kernel_are_absent_not_zero(tmp_path: Path) -> None:
    files = MINIMAL | {"proc/stat": b"cpu  200 0 100 1000\ncpu0 200 0 100 1000\n"}
    samples = await SAMPLER.create(make_context(tree(tmp_path, files))).sample()

    assert {mode for _, mode in values(samples, SECONDS)} == {"user", "nice", "system", "idle"}
    assert "inferwatch_interrupts_total" not in names(samples)


async def test_file_without_cpu_lines_gives_the_sum_and_no_count(tmp_path: Path) -> None:
    files = MINIMAL | {"proc/stat": b"cpu  200 0 100 1000\n"}
    samples = await SAMPLER.create(make_context(tree(tmp_path, files))).sample()

    assert value(samples, SECONDS, "0", "user") == 2.0
    assert "inferwatch_cpu_online" not in names(samples)


async def test_wrap_of_one_cpus_softirq_count_is_no_reset(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, MINIMAL | {"proc/softirqs": b"   CPU0 CPU1\n  TIMER: 4294967290 5000\n"})
    sampler = SAMPLER.create(make_context(hostfs))
    first = await sampler.sample()
    tree(tmp_path, {"proc/softirqs": b"   CPU0 CPU1\n  TIMER: 4 5010\n"})
    second = await sampler.sample()

    before = value(first, "inferwatch_softirqs_total", "timer")
    assert value(second, "inferwatch_softirqs_total", "timer") - before == 20


async def test_denied_file_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"/loadavg": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()
    assert list(caught.value.problems) == ["permission_denied"]
    assert "loadavg: Permission denied" in caught.value.problems["permission_denied"]
    assert names(caught.value.samples) == {family.name for family in SAMPLER.families} - {"inferwatch_load_average"}


async def test_denied_topology_leaves_the_times_on_an_unknown_node(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"node/online": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(host("two-nodes"))).sample()
    assert value(caught.value.samples, SECONDS, "unknown", "user") == 11100.0


async def test_malformed_file_leaves_the_others(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, MINIMAL | {"proc/softirqs": b"\xff"})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(hostfs)).sample()
    assert list(caught.value.problems) == ["parse"]
    assert value(caught.value.samples, SECONDS, "0", "user") == 2.0


async def test_host_without_any_of_the_files_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoData, match=r"stat: No such file or directory"):
        await SAMPLER.create(make_context(tree(tmp_path, {}))).sample()


async def test_nothing_readable_is_the_first_error_that_is_no_absence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fail_open(monkeypatch, {"/proc/loadavg": errno.EACCES})

    with pytest.raises(SourceError, match=r"loadavg"):
        await SAMPLER.create(make_context(tree(tmp_path, {}))).sample()


async def test_only_file_malformed_is_a_parse_error(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match=r"^/proc/stat"):
        await SAMPLER.create(make_context(tree(tmp_path, {"proc/stat": b"x"}))).sample()


async def test_all_reads_are_one_job_of_the_instances_thread() -> None:
    # B46: a file that hangs may block that thread, never the loop.
    run = CountingRun()
    sampler = SAMPLER.create(make_context(host("debian12-2cpu"), run_blocking=run))
    await sampler.sample()
    await sampler.close()

    assert run.calls == 1


async def test_live_times_agree_with_psutil() -> None:
    samples = await SAMPLER.create(make_context(LIVE)).sample()
    theirs = psutil.cpu_times()
    cpus = os.cpu_count() or 1

    for mode in MODES:
        found = sum(seconds for (_, each), seconds in values(samples, SECONDS).items() if each == mode)
        assert found == pytest.approx(getattr(theirs, mode), abs=1.0 * cpus), mode
    assert sum(values(samples, "inferwatch_cpu_online").values()) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert value(samples, "inferwatch_boot_time_seconds") == pytest.approx(psutil.boot_time(), abs=1.0)
