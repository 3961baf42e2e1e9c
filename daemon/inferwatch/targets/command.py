"""What a process runs, from its command line: the executable, script or module, and what was asked of it.

Only this position decides whether a process is an engine. A shell, an editor or a `grep` whose arguments mention one is
none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

INTERPRETER: Final = re.compile(r"(?:python|pypy)[0-9.]*[a-z]?\Z")
LOADER: Final = re.compile(r"ld-(?:linux|musl)[a-z0-9_.-]*\Z")  # /lib64/ld-linux-x86-64.so.2 PROGRAM ...
VALUE_LETTERS: Final = "XW"  # python's options that take a value
VALUE_OPTIONS: Final = frozenset({"--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class Command:
    """What a process runs.

    Args:
        program: Last part of the path of its executable, or of the script that an interpreter runs; empty for a module.
        path: The whole path.
        module: Name of the module that Python runs (`-m`), empty when it runs none.
        words: What follows.
        titles: What it may call itself: the first argument, which a title replaces, and the main thread's name.
    """

    program: str
    path: str
    module: str
    words: tuple[str, ...]
    titles: tuple[str, ...]

    def runs_module(self, module: str) -> bool:
        """Return whether it runs a module, by name or by the path of its file."""
        return self.module == module or self.path.endswith(f"/{module.replace('.', '/')}.py")

    def option(self, names: Sequence[str]) -> str:
        """Return the value of the first option of these names that is there, in their order; empty without one."""
        for name in names:
            for index, word in enumerate(self.words):
                if word == name and index + 1 < len(self.words) and not self.words[index + 1].startswith("--"):
                    return self.words[index + 1]
                if word.startswith(f"{name}=") and len(name) + 1 < len(word):
                    return word[len(name) + 1 :]
        return ""


def read_command(arguments: Sequence[str], comm: str) -> Command:
    """Find out what a process runs.

    Args:
        arguments: Its arguments, or its title as the only one.
        comm: Name of its main thread.
    """
    if not arguments:
        return Command("", "", "", (), (comm,))
    titles = (arguments[0], comm)
    rest = list(arguments)
    if LOADER.match(_name(rest[0])) and len(rest) > 1:
        rest = rest[1:]
    path, words = rest[0], rest[1:]
    if INTERPRETER.match(_name(path)):
        module, words = _python(words)
        if module:
            return Command("", "", module, tuple(words), titles)
        path, words = (words[0], words[1:]) if words else ("", [])
    return Command(_name(path), path, "", tuple(words), titles)


def _name(path: str) -> str:
    # a login shell's name begins with a dash; argv[0] of a title may be a whole sentence
    return path.rpartition("/")[2].lstrip("-")


def _python(words: list[str]) -> tuple[str, list[str]]:
    """Skip Python's own options; return the module and its words, or no module and the script with its words."""
    position = 0
    while position < len(words) and words[position].startswith("-") and words[position] != "-":
        word = words[position]
        position += 1
        if word.startswith("--"):
            position += word in VALUE_OPTIONS
            continue
        for index, letter in enumerate(word[1:], start=2):
            if letter in VALUE_LETTERS:
                position += index == len(word)
                break
            if letter in "mc":
                # what follows -m or -c is the program's; code is no program that could be recognised
                value, following = (word[index:], position) if index < len(word) else ("", position + 1)
                value = value or (words[position] if position < len(words) else "")
                return (value, words[following:]) if letter == "m" else ("", [])
    return "", words[position:]
