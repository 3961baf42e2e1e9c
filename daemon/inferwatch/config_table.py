"""What all tables of the configuration are made of."""

import re
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

Interval = Annotated[float, Field(ge=0.1, le=86_400, strict=True)]  # strict: true is no number
LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z")


class Table(BaseModel):
    """Base of all tables: unknown keys are errors, values can't be changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)
