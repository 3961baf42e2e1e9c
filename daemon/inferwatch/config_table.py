"""What all tables of the configuration are made of."""

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

Interval = Annotated[float, Field(ge=0.1, le=86_400, strict=True)]  # strict: true is no number
LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z")


class Table(BaseModel):
    """Base of all tables: unknown keys are errors, values can't be changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def check_path(value: object) -> object:
    """Refuse what can't be a path: an empty one would mean the directory that the agent was started in.

    Raises:
        ValueError: When it is empty or has a NUL in it.
    """
    if isinstance(value, str | Path) and str(value) in {"", "."}:
        msg = "the path is empty; an absolute path expected"
        raise ValueError(msg)
    if isinstance(value, str | Path) and "\0" in str(value):
        msg = "the path has a NUL in it; an absolute path expected"
        raise ValueError(msg)
    return value
