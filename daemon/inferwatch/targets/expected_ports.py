"""At which ports an engine's HTTP server is expected, by its command line."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferwatch.targets.command import Command

FIRST_EPHEMERAL: Final = 32_768  # the kernel's default: a port from there is for clients only when somebody chose it
LAST_PORT: Final = 65_535
PORT_DIGITS: Final = 5
PORT_LIMIT: Final = 8
WORD_LIMIT: Final = 1000
PORT_WORDS: Final = ("port", "addr", "listen", "bind", "url", "endpoint")

# Names of an option, with the port where none of them is given.
PortOptions = tuple[tuple[tuple[str, ...], int], ...]


def expected_ports(options: PortOptions, command: Command) -> tuple[int, ...]:
    """Return the ports of the options, or their defaults, then what else on the command line may be a high port."""
    ports = [port_number(command.option(names)) or default for names, default in options]
    mentioned = [port for port in _mentioned(command.words[:WORD_LIMIT]) if port >= FIRST_EPHEMERAL]
    return tuple(dict.fromkeys([*ports, *mentioned]))[:PORT_LIMIT]


def _mentioned(words: Sequence[str]) -> Iterator[int]:
    """Yield what may be a port: behind a colon, and a number where the option before it is about an address."""
    option = ""
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-") and not equals:
            option = word
            continue
        option, value = (name, value) if word.startswith("-") else (option, word)
        host, colon, port = value.rpartition(":")
        if (colon and host) or not option or any(part in option for part in PORT_WORDS):
            yield port_number(port)
        option = ""


def port_number(text: str) -> int:
    """Return a port, 0 for anything else."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= PORT_DIGITS else 0
    return number if number <= LAST_PORT else 0
