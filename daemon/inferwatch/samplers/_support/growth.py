"""Follow the memory of processes and tell whether, and how fast, it grows."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from inferwatch.sources.slope import Point, find_trend
from inferwatch.targets.model import ProcessId

POINTS: Final = 60  # per process: one for each sixtieth of the window
MOST_PROCESSES: Final = 512  # tracked at once; 512 tracks of 60 points take about 5 MB
SIGNIFICANT: Final = 0.01


@dataclass(slots=True)
class _Track:
    points: deque[Point] = field(default_factory=deque)
    slope: float | None = None


class GrowthTracker:
    """Keeps a window of points for each process; a new process, also under an old pid, begins with an empty one.

    Args:
        window_seconds: Length of the window.
        minimum_seconds: How much of it must be there before a slope is told.
    """

    def __init__(self, window_seconds: float, minimum_seconds: float) -> None:
        self._window = window_seconds
        self._minimum = minimum_seconds
        self._tracks: dict[ProcessId, _Track] = {}

    def add(self, process: ProcessId, seconds: float, value: float) -> None:
        """Take in a reading; most are passed over, so that the number of points stays bounded.

        Args:
            process: Whose it is.
            seconds: When, on the monotonic clock.
            value: Bytes.
        """
        track = self._tracks.get(process)
        if track is None:
            if len(self._tracks) >= MOST_PROCESSES:
                return
            track = self._tracks[process] = _Track()
        points = track.points
        if points and seconds - points[-1][0] < self._window / POINTS * 0.99:  # readings are not exactly on the grid
            return
        points.append((seconds, value))
        while seconds - points[0][0] > self._window:
            points.popleft()
        track.slope = self._slope(points)

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._tracks.keys() - set(processes):
            del self._tracks[process]

    def slope(self, process: ProcessId) -> float | None:
        """Return bytes per second; None while the window is too short or there is no significant trend."""
        track = self._tracks.get(process)
        return track.slope if track else None

    def _slope(self, points: deque[Point]) -> float | None:
        """Return the slope when it is significant and the newer half of the window goes the same way.

        The second condition lets go of a server that filled its caches and stays there.
        """
        if points[-1][0] - points[0][0] < self._minimum:
            return None
        every = list(points)
        trend = find_trend(every)
        if trend is None or trend.p_value >= SIGNIFICANT or not trend.slope:
            return None
        newer = find_trend(every[len(every) // 2 :])
        return None if newer is not None and newer.slope * trend.slope <= 0 else trend.slope
