"""A deterministic load for OpenAI-compatible servers, and what the client saw of it.

    python load.py http://127.0.0.1:8000 --requests 50 --concurrency 4

Prompts, lengths, shared prefixes and aborts all come from the seed: the same call offers the same requests in the
same order. Prints one JSON summary; exit status 1 when a request failed.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

WORDS = [
    "model",
    "server",
    "token",
    "request",
    "queue",
    "batch",
    "cache",
    "prefix",
    "prompt",
    "decode",
    "latency",
    "memory",
    "kernel",
    "thread",
    "process",
    "socket",
    "packet",
    "block",
    "page",
    "network",
    "disk",
    "scheduler",
    "gateway",
    "engine",
    "worker",
    "replica",
    "cluster",
    "metric",
    "counter",
    "gauge",
    "histogram",
]
PREFIX_WORDS = 120


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the offered load; `abort_after` chunks the client hangs up."""

    prompt: str
    max_tokens: int
    chat: bool
    abort_after: int | None
    seed: int

    def body(self, model: str) -> dict[str, Any]:
        content = {"messages": [{"role": "user", "content": self.prompt}]} if self.chat else {"prompt": self.prompt}
        return content | {
            "model": model,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "temperature": 1.0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


@dataclass(slots=True)
class Result:
    """What the client saw of one request; times in seconds."""

    error: str = ""
    aborted: bool = False
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    first_token: float | None = None
    gaps: list[float] = field(default_factory=list)
    end_to_end: float = 0.0


def plan(requests: int, seed: int, abort: float = 0.0, shared: float = 0.5) -> list[Request]:
    """Return the whole offered load, decided before the first request is sent."""
    rng = random.Random(seed)  # noqa: S311 - a load, not a secret

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(words))

    prefixes = [text(PREFIX_WORDS) for _ in range(3)]
    return [
        Request(
            prompt=(rng.choice(prefixes) + " " if rng.random() < shared else "") + text(rng.randint(8, 40)),
            max_tokens=rng.randint(16, 64),
            chat=rng.random() < 0.5,
            abort_after=rng.randint(2, 6) if rng.random() < abort else None,
            seed=number,
        )
        for number in range(requests)
    ]


async def offer(url: str, requests: Sequence[Request], concurrency: int) -> list[Result]:
    """Send the requests, at most `concurrency` at a time, and return what became of each."""
    # one connection per request: llama.cpp closes kept-alive ones without notice
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=300)) as session:
        async with session.get(f"{url}/v1/models") as response:
            model = (await response.json())["data"][0]["id"]
        gate = asyncio.Semaphore(concurrency)

        async def guarded(request: Request) -> Result:
            async with gate:
                try:
                    return await _send(session, url, model, request)
                except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                    return Result(error=f"{type(error).__name__}: {error}")

        return list(await asyncio.gather(*map(guarded, requests)))


async def _send(session: aiohttp.ClientSession, url: str, model: str, request: Request) -> Result:
    path = "/v1/chat/completions" if request.chat else "/v1/completions"
    result = Result()
    began = last = time.perf_counter()
    async with session.post(url + path, json=request.body(model)) as response:
        if response.status != 200:
            return Result(error=f"status {response.status}: {(await response.text())[:200]}")
        chunks = 0
        async for document in _documents(response):
            if "error" in document:  # refused after the 200 was sent
                return Result(error=str(document["error"]))
            _note_usage(result, document.get("usage"))
            choice = (document.get("choices") or [{}])[0]
            if not (choice.get("text") or (choice.get("delta") or {}).get("content")):
                continue
            now = time.perf_counter()
            if result.first_token is None:
                result.first_token = now - began
            else:
                result.gaps.append(now - last)
            last, chunks = now, chunks + 1
            if request.abort_after and chunks >= request.abort_after:
                result.aborted = True
                response.close()
                break
    result.end_to_end = time.perf_counter() - began
    return result


async def _documents(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON documents of a stream of server-sent events."""
    async for line in response.content:
        text = line.strip()
        if text.startswith(b"data:") and text != b"data: [DONE]":
            yield json.loads(text[5:])


def _note_usage(result: Result, usage: dict[str, Any] | None) -> None:
    if usage:
        result.prompt_tokens = usage.get("prompt_tokens", 0)
        result.completion_tokens = usage.get("completion_tokens", 0)
        result.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Return counts and means of what the client saw."""
    full = [result for result in results if not result.error and not result.aborted]
    first = [result.first_token for result in results if result.first_token is not None]
    gaps = [gap for result in results for gap in result.gaps]
    return {
        "completed": len(full),
        "aborted": sum(result.aborted for result in results),
        "errors": [result.error for result in results if result.error],
        "prompt_tokens": sum(result.prompt_tokens for result in full),
        "cached_tokens": sum(result.cached_tokens for result in full),
        "completion_tokens": sum(result.completion_tokens for result in full),
        "time_to_first_token_mean_seconds": sum(first) / len(first) if first else None,
        "inter_token_latency_mean_seconds": sum(gaps) / len(gaps) if gaps else None,
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url", help="server's address, without /v1")
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument(
        "--abort", type=float, default=0.0, help="share of requests that the client drops in mid-stream"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    requests = plan(options.requests, options.seed, options.abort)
    report = summary(asyncio.run(offer(options.url, requests, options.concurrency)))
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 1 if report["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
