"""How bytes become typed records; no metric names here, and roots are handed in."""
