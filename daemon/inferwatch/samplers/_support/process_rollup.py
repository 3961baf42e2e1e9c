"""Make the samples of `process_memory` that come from smaps_rollup."""

from collections.abc import Iterator, Sequence

from inferwatch.model import Sample
from inferwatch.samplers._support.process_families import HUGE, PRIVATE, PROPORTIONAL, sum_known
from inferwatch.samplers._support.smaps import SmapsCache
from inferwatch.sources.procfs.smaps import SmapsRollup
from inferwatch.targets.model import ProcessId, Target


def proportional_samples(target: Target, smaps: SmapsCache) -> Iterator[Sample]:
    """Make the samples of each role of which all processes could be read."""
    roles: dict[str, list[ProcessId]] = {}
    for process in target.processes:
        roles.setdefault(process.role, []).append(process.id)
    for role, processes in sorted(roles.items()):
        if rollups := smaps.rollups(processes):
            yield from _rollup_samples(target.name, role, rollups)


def _rollup_samples(target: str, role: str, rollups: Sequence[SmapsRollup]) -> Iterator[Sample]:
    kinds = (
        ("anonymous", sum_known(rollup.proportional_anonymous_bytes for rollup in rollups)),
        ("file", sum_known(rollup.proportional_file_bytes for rollup in rollups)),
        ("shared", sum_known(rollup.proportional_shared_bytes for rollup in rollups)),
        ("swap", sum_known(rollup.proportional_swap_bytes for rollup in rollups)),
    )
    yield from (PROPORTIONAL(value, target, role, kind) for kind, value in kinds if value is not None)
    if (private := sum_known(rollup.private_bytes for rollup in rollups)) is not None:
        yield PRIVATE(private, target, role)
    if (huge := sum_known(rollup.anonymous_huge_bytes for rollup in rollups)) is not None:
        yield HUGE(huge, target, role, "transparent")
