"""The page of a recorded host, byte for byte, and promtool's opinion of it."""

from pathlib import Path

import pytest

from golden_files import assert_golden
from inferwatch.agent import Agent
from inferwatch.configfile import load
from inferwatch.exposition import Format
from inferwatch.runtime.discovery import find_samplers
from inferwatch.runtime.selfmetrics import NAME
from support_process import promtool_check_metrics

HOSTS = Path(__file__).parent / "fixtures" / "hosts"
RECORDED = ("debian12-2cpu", "two-nodes", "psi-off")
HOST_SAMPLERS = ("cpu", "memory", "network", "pressure", "schedstat")


async def page_of(host: str, form: Format) -> str:
    """Return the page that the host samplers make of a recorded tree; the agent's own part differs each time."""
    discovery = find_samplers()
    paths = {"procfs": str(HOSTS / host / "proc"), "sysfs": str(HOSTS / host / "sys"), "rootfs": str(HOSTS / host)}
    models = {name: spec.options for name, spec in discovery.specs.items()}
    loaded = load(None, models, {"agent": {"paths": paths}})
    agent = Agent(loaded, discovery, lambda: loaded)
    for unit in agent.units(loaded):
        if unit.spec.name in HOST_SAMPLERS and unit.spec.name != NAME:
            await agent.scheduler.run_once(unit)
    page = agent.store.page(form, gzip=False).decode()
    await agent.close()
    return page


@pytest.mark.parametrize("host", RECORDED)
async def test_golden_page_of_a_host(host: str) -> None:
    assert_golden(f"hosts/{host}.prom", await page_of(host, Format.TEXT))


async def test_golden_openmetrics_page_of_a_host() -> None:
    assert_golden("hosts/debian12-2cpu.openmetrics", await page_of("debian12-2cpu", Format.OPENMETRICS))


@pytest.mark.real("promtool")
@pytest.mark.parametrize("host", RECORDED)
async def test_page_of_a_host_passes_promtool(host: str) -> None:
    assert await promtool_check_metrics(await page_of(host, Format.TEXT)) == (0, "")
