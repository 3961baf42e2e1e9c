"""Spreads a burst of requests over several passes of the event loop, so that a sampler's timer gets its turn."""

import asyncio
from collections import deque
from typing import Final

# with 100 scrapers at once the loop was late by 20 to 97 ms without the turnstile, and mostly by 6 to 20 ms with it
PER_PASS: Final = 4


class Turnstile:
    """Lets a few callers through per pass of the event loop, in the order in which they came.

    Args:
        per_pass: How many.
    """

    def __init__(self, per_pass: int = PER_PASS) -> None:
        self._per_pass = per_pass
        self._free = per_pass
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._refilling = False

    async def wait(self) -> None:
        """Wait for a turn; returns at once while fewer than `per_pass` have asked."""
        loop = asyncio.get_running_loop()
        if not self._refilling:
            self._refilling = True
            loop.call_soon(self._refill, loop)
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _refill(self, loop: asyncio.AbstractEventLoop) -> None:
        self._free = self._per_pass
        while self._free and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its client may have gone
                turn.set_result(None)
                self._free -= 1
        self._refilling = bool(self._waiting)
        if self._refilling:
            loop.call_soon(self._refill, loop)
