"""What several tests need: a context with a fake clock, host trees, and files that fail on demand."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from inferwatch.config import Config, Paths, SamplerOptions
from inferwatch.model import Event, Sample
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Context

P = ParamSpec("P")
T = TypeVar("T")

HOSTS = Path(__file__).parent / "fixtures" / "hosts"
LIVE = HostFs(procfs=Path("/proc"), sysfs=Path("/sys"), rootfs=Path("/"))


class FakeClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self, monotonic_ns: int = 1_000_000_000, unix_seconds: float = 1_796_072_664.0) -> None:
        self._monotonic_ns = monotonic_ns
        self._unix_seconds = unix_seconds

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def unix_seconds(self) -> float:
        return self._unix_seconds

    def advance(self, seconds: float) -> None:
        self._monotonic_ns += round(seconds * 1e9)
        self._unix_seconds += seconds


async def run_here(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Stand in for the scheduler's thread: call the function here and now."""
    return function(*args, **kwargs)


class CountingRun:
    """Like `run_here`, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        self.calls += 1
        return run_here(function, *args, **kwargs)


def host(*parts: str) -> HostFs:
    """Return the host tree `tests/fixtures/hosts/<parts>`."""
    root = HOSTS.joinpath(*parts)
    return HostFs(procfs=root / "proc", sysfs=root / "sys", rootfs=root)


def tree(root: Path, files: Mapping[str, bytes]) -> HostFs:
    """Write a host tree, for example `{"proc/stat": b"..."}`, and return it."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return HostFs(procfs=root / "proc", sysfs=root / "sys", rootfs=root)


# Any: the values go into fields of different types, which replace() checks by name only.
def make_context(hostfs: HostFs, options: SamplerOptions | None = None, **overrides: Any) -> Context:  # noqa: ANN401 - see above
    """Return a context whose blocking calls run at once; `overrides` are fields of `Context`."""
    events: list[Event] = []
    context = Context(
        config=Config(),
        options=options or SamplerOptions(),
        paths=Paths(procfs=hostfs.procfs, sysfs=hostfs.sysfs, rootfs=hostfs.rootfs),
        hostfs=hostfs,
        clock=FakeClock(),
        run_blocking=run_here,
        emit=events.append,
        interval_seconds=5.0,
        timeout_seconds=4.0,
    )
    return replace(context, **overrides)


def values(samples: Iterable[Sample], name: str) -> dict[tuple[str, ...], float]:
    """Return label values to value of one family; labels are in the family's order."""
    found: dict[tuple[str, ...], float] = {}
    for sample in samples:
        if sample.family.name == name:
            assert sample.labels not in found, f"{name}{sample.labels} stands twice"
            assert isinstance(sample.value, int | float)
            found[sample.labels] = sample.value
    return found


def value(samples: Iterable[Sample], name: str, *labels: str) -> float:
    """Return one series' value; a KeyError when it is absent."""
    return values(samples, name)[labels]


def names(samples: Iterable[Sample]) -> set[str]:
    """Return the names of the families that have samples."""
    return {sample.family.name for sample in samples}


def fail_open(monkeypatch: pytest.MonkeyPatch, errors: Mapping[str, int]) -> None:
    """Make opening files for reading fail: end of the path to errno. (A file's mode does not stop root.)"""
    real = Path.open

    # Any: passed through to Path.open, whose overloads depend on the mode.
    def opened(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - see above
        for end, number in errors.items():
            if str(self).endswith(end) and mode.startswith("r"):
                raise OSError(number, os.strerror(number), str(self))
        return real(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", opened)
