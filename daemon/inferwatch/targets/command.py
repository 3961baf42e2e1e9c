"""What a process runs, from its command line: the executable, script or module, and what was asked of it.

Only this position decides whether a process is an engine. A shell, an editor or a `grep` whose arguments mention one is
none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

INTERPRETER: Final = re.compile(r"(?:python|pypy)[0-9.]*[a-z]{0,2}(?:-(?:dbg|debug|intel64|nogil))?\Z")
LOADER: Final = re.compile(r"ld-(?:linux|musl)[a-z0-9_.-]*\Z")  # /lib64/ld-linux-x86-64.so.2 PROGRAM ...
# What packagers put behind a program's name: llama-server-cuda, vllm-cpu, .ollama-wrapped.
VARIANT: Final = re.compile(
    r"[-_.](?:cpu|gpu|cuda[0-9]*|rocm[0-9.]*|hip|vulkan|metal|sycl|musa|cann|opencl|blas|xpu|tpu|hpu|neuron|avx[0-9]*|native"
    r"|dbg|debug|release|static|bin|main|real|wrapped|nightly|dev|x86_64|amd64|aarch64|arm64|v?[0-9][0-9.]*)\Z"
)
# Options that take no value, as far as they can be told by their beginnings.
FLAGS: Final = ("--enable", "--disable", "--no-", "--use-", "--trust", "--enforce", "--headless", "--async", "--skip")
ATTACHED: Final = re.compile(r"-[A-Za-z][0-9]+\Z")  # -O3: the value is in the same word
HELP: Final = frozenset({"--help", "-h", "--version", "--usage"})
VALUE_LETTERS: Final = "XW"  # python's options that take a value
VALUE_OPTIONS: Final = frozenset({"--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class Command:
    """What a process runs.

    Args:
        program: Last part of the path of its executable, or of the script that an interpreter runs, without what
            packagers add to it; empty for a module.
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

    @property
    def asks_for_help(self) -> bool:
        """Return whether it only prints how it is called, or its version."""
        return any(word in HELP or word.startswith("--help=") for word in self.words)  # --help=ModelConfig is vLLM's

    def positional(self, position: int) -> str:
        """Return the first word from a place on that is neither an option nor, most likely, an option's value."""
        words = iter(self.words[position:])
        for word in words:
            if not word.startswith("-"):
                return word
            if "=" not in word and not word.startswith(FLAGS) and not ATTACHED.match(word):
                next(words, None)
        return ""

    def option(self, names: Sequence[str]) -> str:
        """Return the value of the first option of these names that is there, in their order; empty without one.

        One that is given twice has its last value, as argparse, clap and llama.cpp have it.
        """
        for name in names:
            for index in range(len(self.words) - 1, -1, -1):
                word = self.words[index]
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
    return Command(plain_name(_name(path)), path, "", tuple(words), titles)


def _name(path: str) -> str:
    # a login shell's name begins with a dash; argv[0] of a title may be a whole sentence
    return path.rpartition("/")[2].lstrip("-")


def plain_name(program: str) -> str:
    """Return a program's name without what packagers put around it."""
    name = program.removeprefix(".")
    while match := VARIANT.search(name):
        name = name[: match.start()]
    return name


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
