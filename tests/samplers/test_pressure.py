import errno
from pathlib import Path

import pytest

from inferwatch.errors import NoData
from inferwatch.samplers.pressure import SAMPLER, missing_pressure
from inferwatch.spec import PartialData
from support import LIVE, CountingRun, fail_open, host, make_context, tree, values

STALL = "inferwatch_pressure_stall_seconds_total"
SOME = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=7232303\n"
FULL = b"full avg10=0.00 avg60=0.00 avg300=0.00 total=2325855\n"
ALL = {"proc/pressure/cpu": SOME + FULL, "proc/pressure/memory": SOME + FULL, "proc/pressure/io": SOME + FULL}


async def test_stall_time_is_in_seconds_by_resource_and_share(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, ALL))).sample()

    assert values(samples, STALL) == {
        ("cpu", "some"): 7.232303,
        ("memory", "some"): 7.232303,
        ("memory", "full"): 2.325855,
        ("io", "some"): 7.232303,
        ("io", "full"): 2.325855,
    }


async def test_full_of_the_cpu_is_left_out_host_wide() -> None:
    samples = await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()

    assert b"full" in host("debian12-2cpu").proc("pressure", "cpu").read_bytes()
    assert ("cpu", "full") not in values(samples, STALL)


async def test_cpu_without_full_line_is_as_good(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, ALL | {"proc/pressure/cpu": SOME}))).sample()

    assert values(samples, STALL)["cpu", "some"] == 7.232303


async def test_irq_is_published_where_the_kernel_has_it(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, ALL | {"proc/pressure/irq": FULL}))).sample()

    assert values(samples, STALL)["irq", "full"] == 2.325855


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOENT])
async def test_resource_that_is_off_is_absent_and_the_rest_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    fail_open(monkeypatch, {"pressure/memory": number})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, ALL))).sample()
    assert list(caught.value.problems) == ["no_data"]
    assert {resource for resource, _ in values(caught.value.samples, STALL)} == {"cpu", "io"}


async def test_irq_that_is_off_is_not_worth_a_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # psi_show() answers EOPNOTSUPP where interrupt time is not accounted.
    fail_open(monkeypatch, {"pressure/irq": errno.EOPNOTSUPP})
    samples = await SAMPLER.create(make_context(tree(tmp_path, ALL | {"proc/pressure/irq": FULL}))).sample()

    assert {resource for resource, _ in values(samples, STALL)} == {"cpu", "memory", "io"}


async def test_psi_off_for_all_resources_is_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {f"pressure/{resource}": errno.EOPNOTSUPP for resource in ("cpu", "memory", "io", "irq")})

    with pytest.raises(NoData, match=r"pressure/cpu: Operation not supported"):
        await SAMPLER.create(make_context(tree(tmp_path, ALL))).sample()


async def test_denied_resource_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {"pressure/io": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, ALL))).sample()
    assert list(caught.value.problems) == ["permission_denied"]
    assert {resource for resource, _ in values(caught.value.samples, STALL)} == {"cpu", "memory"}


async def test_two_problems_of_a_kind_are_both_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {"pressure/io": errno.EACCES, "pressure/cpu": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, ALL))).sample()
    assert caught.value.problems["permission_denied"].count("Permission denied") == 2


def test_kernel_without_psi_is_unavailable_with_what_to_do() -> None:
    reason = missing_pressure(host("psi-off"))

    assert reason is not None
    assert "boot with psi=1" in reason
    assert SAMPLER.requires == (missing_pressure,)


def test_kernel_with_psi_is_available() -> None:
    assert missing_pressure(host("debian12-2cpu")) is None


async def test_file_that_vanishes_between_check_and_read_is_no_data() -> None:
    with pytest.raises(NoData):
        await SAMPLER.create(make_context(host("psi-off"))).sample()


async def test_all_reads_are_one_job_of_the_instances_thread(tmp_path: Path) -> None:
    run = CountingRun()
    sampler = SAMPLER.create(make_context(tree(tmp_path, ALL), run_blocking=run))
    await sampler.sample()
    await sampler.close()

    assert run.calls == 1


@pytest.mark.skipif(missing_pressure(LIVE) is not None, reason="this kernel has no /proc/pressure")
async def test_live_stall_time_is_less_than_the_uptime() -> None:
    samples = await SAMPLER.create(make_context(LIVE)).sample()
    uptime = float(LIVE.proc("uptime").read_text().split()[0])

    assert all(0 <= seconds <= uptime + 1 for seconds in values(samples, STALL).values())
