"""How long to wait after failures."""

from typing import Final

LIMIT_SECONDS: Final = 300.0


def delay_seconds(interval_seconds: float, failures: int, limit_seconds: float = LIMIT_SECONDS) -> float:
    """Return the time between two runs after `failures` failures in a row: doubled for each, up to a limit.

    Never below the interval, also when that is longer than the limit. The first failure costs nothing: a blip.
    """
    doubled = interval_seconds * 2.0 ** min(max(failures - 1, 0), 32)
    return max(interval_seconds, min(doubled, limit_seconds))
