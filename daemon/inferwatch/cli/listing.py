"""The command `list`: which samplers there are, whether they run here and why not; and the page of one."""

import difflib
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from inferwatch.cli import settings
from inferwatch.cli.output import complain, say
from inferwatch.cli.table import print_rich
from inferwatch.configfile import LoadedConfig
from inferwatch.render.pages import page_of
from inferwatch.runtime.discovery import find_samplers
from inferwatch.samplers import Discovery
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import SamplerSpec

CHECK_LIMIT_SECONDS: Final = 2.0
USAGE: Final = 2
HEADER: Final = ("sampler", "dimension", "enabled", "available", "why not", "summary")


class Row(NamedTuple):
    """One line of the table; all text, so that a script can cut it."""

    name: str
    dimension: str
    enabled: str
    available: str
    why_not: str
    summary: str


def run(flags: settings.Flags) -> int:
    """Print the table: aligned on a terminal, otherwise one line per sampler with tabs between the columns."""
    discovery = find_samplers()
    found = rows(discovery, settings.load(flags, discovery))
    if sys.stdout.isatty():
        print_rich(HEADER, found)
    else:
        say("\n".join("\t".join(row) for row in [HEADER, *found]))
    complain(*(f"left out: {problem}" for problem in discovery.problems))
    return 0


def rows(discovery: Discovery, loaded: LoadedConfig) -> list[Row]:
    """Return one row per sampler, ordered by name."""
    paths = loaded.config.agent.paths
    specs = [discovery.specs[name] for name in sorted(discovery.specs)]
    unmet = unmet_requirements(specs, HostFs(paths.procfs, paths.sysfs, paths.rootfs))
    return [_row(spec, loaded, unmet.get(spec.name)) for spec in specs]


def _row(spec: SamplerSpec, loaded: LoadedConfig, reason: str | None) -> Row:
    enabled = "yes" if loaded.options[spec.name].enabled else "no"
    available, why_not = "yes", ""
    if reason is not None:
        available, why_not = "no", reason
    elif not spec.instances(loaded.config):
        available, why_not = "idle", spec.idle_reason
    return Row(spec.name, spec.dimension, enabled, available, " ".join(why_not.split()), spec.summary)


def unmet_requirements(specs: Iterable[SamplerSpec], hostfs: HostFs) -> Mapping[str, str]:
    """Return, per sampler whose requirements are not met here, the reason.

    Each sampler's checks run in a thread of their own, which is left behind when it hangs: a file system that does not
    answer is one of the things that this command is asked about.
    """
    found: dict[str, str] = {}
    threads = {
        spec.name: threading.Thread(target=_check, args=(spec, hostfs, found), daemon=True)
        for spec in specs
        if spec.requires
    }
    for thread in threads.values():
        thread.start()
    for name, thread in threads.items():
        thread.join(CHECK_LIMIT_SECONDS)
        if thread.is_alive():
            found[name] = f"the check did not finish within {CHECK_LIMIT_SECONDS:g} s"
    return dict(found)


def _check(spec: SamplerSpec, hostfs: HostFs, found: dict[str, str]) -> None:
    try:
        reason = next((reason for check in spec.requires if (reason := check(hostfs)) is not None), None)
    except Exception as error:  # noqa: BLE001 - a plugin's check can raise anything, and the table goes on
        reason = f"the check failed: {type(error).__name__}: {error}"
    if reason is not None:
        found[spec.name] = reason


def show_page(name: str) -> int:
    """Print a sampler's page; return 2 when there is no such sampler."""
    discovery = find_samplers()
    spec = discovery.specs.get(name)
    if spec is None:
        close = difflib.get_close_matches(name, discovery.specs, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(sorted(discovery.specs))}"
        complain(f"{name}: no such sampler; {hint}")
        return USAGE
    text = page_of(spec)
    if sys.stdout.isatty():
        _print_markdown(text)
    else:
        say(text.rstrip("\n"))
    return 0


def _print_markdown(text: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    Console().print(Markdown(text))
