"""Compare with a golden file; `make golden` writes them again."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("INFERWATCH_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: run make golden"

    assert text == path.read_text(encoding="utf-8"), f"differs from {path}: run make golden and read the difference"
