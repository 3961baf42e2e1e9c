"""Follow the memory of processes and tell whether, and how fast, it grows."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from inferwatch.sources.slope import Point, find_trend
from inferwatch.targets.model import ProcessId

POINTS: Final = 60  # per process: one for each sixtieth of the window
READINGS_PER_POINT: Final = 16  # at most; more take memory and tell little more
ON_TIME: Final = 0.99  # readings are not exactly on the grid
MOST_PROCESSES: Final = 512  # tracked at once; 512 tracks of 60 points take about 5 MB


@dataclass(slots=True)
class _Track:
    points: deque[Point] = field(default_factory=deque)
    readings: list[Point] = field(default_factory=list)
    begin: float = 0.0  # of the time that the readings stand for
    slope: float | None = None


class GrowthTracker:
    """Keeps a window of points for each process; a new process, also under an old pid, begins with an empty one.

    A point is the median of the readings of a sixtieth of the window, so that noise and single peaks don't hide a leak.

    Args:
        window_seconds: Length of the window.
        minimum_seconds: How much of it must be there before a slope is told.
    """

    def __init__(self, window_seconds: float, minimum_seconds: float) -> None:
        self._window = window_seconds
        self._minimum = minimum_seconds
        self._spacing = window_seconds / POINTS
        self._tracks: dict[ProcessId, _Track] = {}

    def add(self, process: ProcessId, seconds: float, value: float) -> None:
        """Take in a reading; the number of points and readings kept is bounded.

        Args:
            process: Whose it is.
            seconds: When, on the monotonic clock.
            value: Bytes.
        """
        track = self._tracks.get(process)
        if track is None:
            if len(self._tracks) >= MOST_PROCESSES:
                return
            track = self._tracks[process] = _Track(begin=seconds)
        if track.readings:
            if seconds - track.begin >= self._spacing * ON_TIME:
                self._close_point(track)
                track.begin = seconds
            elif seconds - track.readings[-1][0] < self._spacing / READINGS_PER_POINT * ON_TIME:
                return
        track.readings.append((seconds, value))

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._tracks.keys() - set(processes):
            del self._tracks[process]

    def slope(self, process: ProcessId) -> float | None:
        """Return bytes per second; None while the window is too short or there is no significant trend."""
        track = self._tracks.get(process)
        return track.slope if track else None

    def _close_point(self, track: _Track) -> None:
        points, readings = track.points, track.readings
        points.append((fmean(time for time, _ in readings), median(value for _, value in readings)))
        readings.clear()
        while points[-1][0] - points[0][0] > self._window:
            points.popleft()
        track.slope = self._slope(points)

    def _slope(self, points: deque[Point]) -> float | None:
        """Return the slope when it is significant and the newer half of the window goes the same way.

        The second condition lets go of a server that filled its caches and stays there.
        """
        every = list(points)
        # a point stands for the time around it, so the first and the last leave half a spacing each
        if every[-1][0] - every[0][0] < self._minimum - self._spacing or every[0][1] == every[-1][1]:
            return None
        trend = find_trend(every)
        if trend is None or not trend.is_significant:
            return None
        newer = find_trend(every[len(every) // 2 :])
        return None if newer is not None and newer.slope * trend.slope <= 0 else trend.slope
