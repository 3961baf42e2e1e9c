import pytest
from hypothesis import given

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.pid_cgroup import parse_pid_cgroup
from strategies import mutated

HYBRID = b"9:name=systemd:/a\n3:cpu,cpuacct:/b\n4:memory:/docker/x\n0::/user.slice/a:b\n"


def test_v2_has_one_path() -> None:
    cgroup = parse_pid_cgroup(b"0::/system.slice/ssh.service\n")

    assert (cgroup.unified, dict(cgroup.controllers)) == ("/system.slice/ssh.service", {})


def test_hybrid_has_both_and_paths_may_hold_colons() -> None:
    cgroup = parse_pid_cgroup(HYBRID)

    assert cgroup.unified == "/user.slice/a:b"
    assert cgroup.controllers == {"name=systemd": "/a", "cpu": "/b", "cpuacct": "/b", "memory": "/docker/x"}


def test_paths_out_of_the_cgroup_namespace_are_kept() -> None:
    assert parse_pid_cgroup(b"0::/../../kubepods/x\n").unified == "/../../kubepods/x"


def test_removed_cgroup_is_named_without_the_kernels_remark() -> None:
    assert parse_pid_cgroup(b"0::/gone (deleted)\n").unified == "/gone"


def test_kernel_without_cgroups_has_an_empty_file() -> None:
    assert parse_pid_cgroup(b"").unified is None


@pytest.mark.parametrize("data", [b"x", b"0:/a\n", b"a::/\n", b"0::a\n", b"0::\n"])
def test_anything_else_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_pid_cgroup(data)


@given(mutated(HYBRID))
def test_damage_is_a_parse_error_or_paths(data: bytes) -> None:
    try:
        cgroup = parse_pid_cgroup(data)
    except ParseError:
        return

    assert all(path.startswith("/") for path in cgroup.controllers.values())
