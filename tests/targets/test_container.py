import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.targets.container import identify

ID = "3f" * 32
OTHER = "4a" * 32
UID = "0123abcd-89ab-4cde-8f01-23456789abcd"
UNIT = UID.replace("-", "_")
STATIC = "5d" * 16
BURSTABLE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNIT}.slice"


@pytest.mark.parametrize(
    ("path", "container", "pod"),
    [
        (f"/docker/{ID}", ID, ""),
        (f"/system.slice/docker-{ID}.scope", ID, ""),
        (f"/docker/{OTHER}/docker/{ID}", ID, ""),
        (f"{BURSTABLE}/cri-containerd-{ID}.scope", ID, UID),
        (f"/kubepods/burstable/pod{UID}/{ID}", ID, UID),
        (f"/kubepods/besteffort/pod{STATIC}/{ID}", ID, STATIC),
        (f"/kubepods.slice/kubepods-pod{UNIT}.slice/crio-{ID}.scope", ID, UID),
        (f"{BURSTABLE}/crio-conmon-{ID}.scope", "", UID),
        (f"/machine.slice/libpod-{ID}.scope/container", ID, ""),
        (f"/machine.slice/libpod-conmon-{ID}.scope", "", ""),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", ID, ""),
        (f"/system.slice/containerd.service/kubepods-burstable-pod{UNIT}.slice:cri-containerd:{ID}", ID, UID),
        (f"/../../kubepods/pod{UID}/{ID}", ID, UID),
        (f"/../cri-containerd-{ID}.scope/init.scope", ID, ""),
        ("/system.slice/vllm.service", "", ""),
        ("/user.slice/user-0.slice/session-1.scope", "", ""),
        ("/", "", ""),
        ("/docker/abc", "", ""),
        (f"/podcast-{UID}/x", "", ""),
    ],
)
def test_forms_of_runtimes(path: str, container: str, pod: str) -> None:
    assert identify([path]) == (container, pod)


def test_hybrid_hosts_tell_it_in_another_hierarchy() -> None:
    assert identify(["/", "/user.slice", f"/kubepods/pod{UID}/{ID}", f"/docker/{OTHER}"]) == (ID, UID)


@given(st.lists(st.text(max_size=200), max_size=4))
def test_no_path_raises_or_gives_anything_but_digits(paths: list[str]) -> None:
    container, pod = identify(f"/{path}" for path in paths)

    assert set(container + pod) <= set("0123456789abcdef-")
