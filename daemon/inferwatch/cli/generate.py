"""The command group `render`: files that are generated from the declarations."""

from pathlib import Path

import inferwatch
from inferwatch.cli.output import complain, say, write
from inferwatch.engines.registry import TABLES
from inferwatch.render.config_example import config_example as example_text
from inferwatch.render.docs import stale_pages
from inferwatch.render.markdown import MarkerError
from inferwatch.samplers import builtin_specs


def config_example(output: Path | None) -> int:
    """Print the example of a configuration file, or write it."""
    data = example_text(builtin_specs()).encode()
    if output is None:
        write(data)
        return 0
    try:
        output.write_bytes(data)
    except OSError as error:
        complain(f"{output}: can't be written: {error.strerror or error}")
        return 1
    return 0


def docs(root: Path | None, *, check: bool) -> int:
    """Write the generated parts of the pages and name the files that changed; with `check`, only name them."""
    tree = root or Path(inferwatch.__file__).parents[2]
    try:
        stale = stale_pages(tree, builtin_specs(), TABLES)
    except MarkerError as error:
        complain(str(error))
        return 1
    for path, text in stale.items():
        if check:
            complain(f"{path}: its generated part is out of date")
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"{path}: written")
    return int(check and bool(stale))
