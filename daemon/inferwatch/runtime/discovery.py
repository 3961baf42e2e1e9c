"""Which samplers there are, the agent's own names being taken."""

from inferwatch.runtime.selfmetrics import FAMILIES
from inferwatch.samplers import Discovery, discover


def find_samplers() -> Discovery:
    """Return all samplers; none may declare a family of the agent's own."""
    return discover(reserved=FAMILIES)
