"""What `run` tells a person when the agent is ready."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from inferwatch import __version__
from inferwatch.cli.report import IDLE, WORKING, Report

ENGINE: Final = "engine"

SCRAPE: Final = """\
  let Prometheus scrape it:
    scrape_configs:
      - job_name: inferwatch
        static_configs:
          - targets: ["{target}"]"""

ADD_ENGINE: Final = """\
  watch a serving engine: put this into a file, and start again with --config FILE
    [[engines]]
    url = "http://127.0.0.1:8000/metrics\""""


def summary(url: str, found: Sequence[Report], problems: Sequence[str]) -> str:
    """Return the text.

    Args:
        url: Where the agent serves.
        found: One report per sampler.
        problems: Why third-party samplers were left out.
    """
    base = url.rstrip("/")
    width = max((len(report.name) for report in found), default=0)
    sampling = [report for report in found if report.state in WORKING]
    missing = [report for report in found if report.state not in WORKING]
    parts = [f"inferwatch {__version__} is ready: {base}/\nmetrics: {base}/metrics"]
    if sampling:
        parts.append("It samples\n" + _lines(sampling, width))
    if missing:
        parts.append("It does not sample\n" + _lines(missing, width))
    if problems:
        parts.append("Samplers of other packages that were left out\n" + "\n".join(f"  {line}" for line in problems))
    parts.append("Next\n" + "\n".join(_next_steps(base, found)))
    return "\n\n".join(parts) + "\n"


def _lines(found: Iterable[Report], width: int) -> str:
    return "\n".join(f"  {r.name:{width}}  {r.state:11}  {r.detail}".rstrip() for r in found)


def _next_steps(base: str, found: Iterable[Report]) -> list[str]:
    steps = [SCRAPE.format(target=urlsplit(base).netloc)]
    if any(report.name == ENGINE and report.state == IDLE for report in found):
        steps.append(ADD_ENGINE)
    # `make run` does not put it on the PATH
    program = "inferwatch" if shutil.which("inferwatch") else sys.argv[0]
    return [*steps, f"  see what works and what does not: {program} doctor"]
