"""The command line: one module per command, imported when the command is called."""

import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit; see `inferwatch.cli.app.main`."""
    if sys.argv[1:2] == ["run"]:
        # a reload that is asked for while the agent is still being imported is none to die of
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from inferwatch.cli.app import main as app  # noqa: PLC0415 - behind the line above

    app(arguments)
