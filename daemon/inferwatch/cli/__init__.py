"""The command line: one module per command, imported when the command is called."""

from inferwatch.cli.app import main

__all__ = ["main"]
