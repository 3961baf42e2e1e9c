"""Many clients that scrape as fast as they can; a process of its own, so that it does not slow down who measures.

python -m bench.hammer URL CLIENTS SECONDS
"""

import asyncio
import sys
import time

import aiohttp


async def hammer(url: str, clients: int, seconds: float) -> int:
    """Scrape with many clients at once, each as fast as it can; return the number of scrapes."""
    count = 0
    end = time.monotonic() + seconds

    async def client() -> None:
        nonlocal count
        async with aiohttp.ClientSession(headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as session:
            while time.monotonic() < end:
                async with session.get(url) as response:
                    await response.read()
                count += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return count


if __name__ == "__main__":
    asyncio.run(hammer(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
