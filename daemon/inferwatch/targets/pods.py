"""What a pod is called: the kubelet names the directory of a pod's logs namespace, name and uid."""

import os
from pathlib import Path
from typing import Final

from inferwatch.targets.text import clean

FIELDS: Final = 3
MAX_PODS: Final = 10_000


class PodNames:
    """Names of pods by their uid, without asking Kubernetes.

    Args:
        directory: The host's /var/log/pods.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names: dict[str, tuple[str, str]] = {}
        self._missing: set[str] = set()

    def find(self, uid: str) -> tuple[str, str]:
        """Return a pod's namespace and name, both empty when the host does not tell; asked once for each uid."""
        if uid and uid not in self._names and uid not in self._missing:
            self._read()
            if uid not in self._names:
                self._missing = {*self._missing, uid} if len(self._missing) < MAX_PODS else {uid}
        return self._names.get(uid, ("", ""))

    def _read(self) -> None:
        try:
            with os.scandir(self._directory) as entries:
                names = [entry.name for _, entry in zip(range(MAX_PODS), entries, strict=False)]
        except OSError:  # no kubelet here, or its directory is not mounted: the uid has to do
            names = []
        parts = [name.split("_") for name in names]
        self._names = {uid: (clean(space), clean(pod)) for space, pod, uid in (p for p in parts if len(p) == FIELDS)}
