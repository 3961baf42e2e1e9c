"""Tables for people."""

from collections.abc import Sequence

Row = Sequence[str]


def aligned(header: Row, rows: Sequence[Row]) -> str:
    """Return lines whose columns begin below each other; an empty cell is `-`, so that a script finds the others."""
    lines = [[cell or "-" for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def print_rich(header: Row, rows: Sequence[Row]) -> None:
    """Print a table that fits itself to the terminal."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(*header, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: a reason with brackets in it is no markup
    Console().print(table)
