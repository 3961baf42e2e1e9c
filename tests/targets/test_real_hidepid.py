"""What an agent of another user sees where the procfs hides processes; in a mount namespace of its own."""

import os
from pathlib import Path

import pytest

from support_process import free_port
from support_serving import AS_NOBODY, NOBODY, engine, mounted, told_by

LOOK = """
import asyncio, json
from inferwatch.samplers.targets import SAMPLER
from inferwatch.targets.tracker import TargetTracker
from support import LIVE, FakeClock, make_context
from support_targets import sample_anyway
sampler = SAMPLER.create(make_context(LIVE, targets=TargetTracker(LIVE, (), FakeClock())))
samples, problems = asyncio.run(sample_anyway(sampler))
print(json.dumps([sum(sample.family.name == "inferwatch_target_info" for sample in samples), problems]))
"""


@pytest.mark.real("hidepid")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a procfs needs root")
async def test_hidden_processes_are_told_with_what_to_do(tmp_path: Path) -> None:
    async with engine(tmp_path, port=free_port()):
        found, problems = await told_by(LOOK, before=(*mounted("hidepid=2"), *AS_NOBODY))
        seen, _ = await told_by(LOOK, before=mounted("hidepid=2"))  # as root

    assert found == 0
    assert [*problems] == ["permission_denied"]
    assert "hidepid" in problems["permission_denied"]
    assert seen >= 1


@pytest.mark.real("hidepid")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a procfs needs root")
async def test_the_group_of_the_mount_sees_them(tmp_path: Path) -> None:
    group = ("setpriv", "--reuid", NOBODY, "--regid", "12345", "--clear-groups")
    async with engine(tmp_path, port=free_port()):
        found, problems = await told_by(LOOK, before=(*mounted("hidepid=2,gid=12345"), *group))

    assert found >= 1
    assert "hidepid" not in problems.get("permission_denied", "")
