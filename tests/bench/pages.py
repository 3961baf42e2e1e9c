"""Large engine pages made from a recorded one, and a server for them."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

RECORDED = Path(__file__).parent.parent / "fixtures" / "engines" / "vllm-0.32-after.prom"


def vllm_page(models: int) -> bytes:
    """Return a vLLM page with the series of one model repeated for many, grouped by family as an engine does."""
    out: list[str] = []
    group: list[str] = []

    def flush() -> None:
        for number in range(models):
            out.extend(line.replace('model_name="tiny"', f'model_name="model-{number}"') for line in group)
        group.clear()

    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        if 'model_name="tiny"' in line:
            group.append(line)
            continue
        flush()
        out.append(line)
    flush()
    return ("\n".join(out) + "\n").encode()


@contextlib.asynccontextmanager
async def served(page: bytes, port: int) -> AsyncIterator[str]:
    """Serve a page and yield its URL."""

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(body=page, headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.router.add_get("/metrics", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        await runner.cleanup()
