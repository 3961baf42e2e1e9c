"""Which container and pod a process is in, by the path of its cgroup.

The forms that are known, each also below any parent and with `/../..` before it (seen from another cgroup namespace):

    /docker/ID  /system.slice/docker-ID.scope                                     docker
    /kubepods/burstable/podUID/ID                                                 any runtime, driver cgroupfs
    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope   containerd
    /kubepods.slice/.../crio-ID.scope  (its monitor is in crio-conmon-ID.scope, which is no container)   cri-o
    /machine.slice/libpod-ID.scope/container                                      podman
    /system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID   mixed drivers
"""

import re
from collections.abc import Iterable
from typing import Final

CONTAINER: Final = re.compile(r"(?:^|[-_:])([0-9a-f]{64})(?:\.scope)?\Z")
# The kubelet gives pods from files a hash instead of a UUID; in a unit's name `_` stands for `-`.
POD: Final = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice(?:\Z|:)|\Z)"
)
MONITOR: Final = "conmon"
DEPTH_LIMIT: Final = 64


def identify(paths: Iterable[str]) -> tuple[str, str]:
    """Return container id and pod uid, each empty when there is none.

    Args:
        paths: Paths of the process in its hierarchies, the best first; each answer is the first path's that has one.
            The innermost container counts.
    """
    container = pod = ""
    for path in paths:
        parts = path.split("/")[-DEPTH_LIMIT:]
        for part in reversed(parts):
            container = container or _container(part)
            pod = pod or _pod(part)
        if container:
            break
    return container, pod


def _container(part: str) -> str:
    found = CONTAINER.search(part)
    return found.group(1) if found is not None and MONITOR not in part else ""


def _pod(part: str) -> str:
    found = POD.search(part)
    return found.group(1).replace("_", "-") if found is not None else ""
