"""The commands and their options. What a command does stands in its own module, imported only when it is called."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from inferwatch import __version__
from inferwatch.cli.output import complain, say
from inferwatch.cli.settings import Flags
from inferwatch.errors import ConfigError

USAGE: Final = 2

# Lists of choices that the models have too (a test compares them): importing the models takes longer than --help.
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration in TOML; the defaults when not given.")
]
ListenOption = Annotated[
    str | None,
    typer.Option("--web.listen-address", metavar="ADDR", help="Address and port to serve on; default 127.0.0.1:10940."),
]
ProcfsOption = Annotated[
    Path | None, typer.Option("--path.procfs", metavar="DIR", help="Where the host's procfs is mounted; default /proc.")
]
SysfsOption = Annotated[
    Path | None, typer.Option("--path.sysfs", metavar="DIR", help="Where the host's sysfs is mounted; default /sys.")
]
RootfsOption = Annotated[
    Path | None, typer.Option("--path.rootfs", metavar="DIR", help="Where the host's root is mounted; default /.")
]
LevelOption = Annotated[LogLevel | None, typer.Option("--log.level", help="Least severity that is logged.")]
FormatOption = Annotated[
    LogFormat | None, typer.Option("--log.format", help="Form of the log; auto: console on a terminal, JSON otherwise.")
]

app = typer.Typer(
    name="inferwatch",
    help="A node agent that tells why an LLM inference service is slow.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # rich's tracebacks print local variables, and those may hold a token
    rich_markup_mode=None,  # plain text: it can be grepped, and rich takes longer to import than the help to read
    context_settings={"help_option_names": ["-h", "--help"]},
)
render = typer.Typer(help="Print generated files.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(render, name="render")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 fine, 1 failure, 2 usage or configuration.

    Raises:
        SystemExit: Always.
    """
    try:
        app(arguments, prog_name="inferwatch")
    except ConfigError as error:
        complain(*error.problems)
        sys.exit(USAGE)
    except Exception:  # noqa: BLE001 - the last resort: one line that says what to do with the trace above it
        traceback.print_exc()
        complain("inferwatch: this is a mistake in inferwatch; please report it together with the lines above")
        sys.exit(1)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        say(f"inferwatch {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: FBT002 - a switch on the command line
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def run(
    config: ConfigOption = None,
    listen_address: ListenOption = None,
    procfs: ProcfsOption = None,
    sysfs: SysfsOption = None,
    rootfs: RootfsOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> None:
    """Sample and serve until stopped. SIGHUP reads the configuration again."""
    from inferwatch.cli import run as command  # noqa: PLC0415 - imports the web server

    raise typer.Exit(command.run(Flags(config, procfs, sysfs, rootfs, log_level, log_format, listen_address)))


@app.command()
def once(
    page_format: Annotated[
        Literal["text", "openmetrics", "json"], typer.Option("--format", help="Form of the page.")
    ] = "text",
    config: ConfigOption = None,
    procfs: ProcfsOption = None,
    sysfs: SysfsOption = None,
    rootfs: RootfsOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> None:
    """Sample everything once, print one complete page and exit; 0 when at least one sampler gave data."""
    from inferwatch.cli import once as command  # noqa: PLC0415 - imports the agent

    raise typer.Exit(command.run(Flags(config, procfs, sysfs, rootfs, log_level, log_format), page_format))


@app.command("list")
def list_samplers(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print this sampler's page.")] = None,
    config: ConfigOption = None,
    procfs: ProcfsOption = None,
    sysfs: SysfsOption = None,
    rootfs: RootfsOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> None:
    """List the samplers: enabled, available here, and why not."""
    from inferwatch.cli import listing as command  # noqa: PLC0415 - imports all samplers

    flags = Flags(config, procfs, sysfs, rootfs, log_level, log_format)
    raise typer.Exit(command.run(flags) if name is None else command.show_page(name))


@app.command()
def targets(
    output_format: Annotated[
        Literal["text", "json"], typer.Option("--format", help="A table, or all that is known of each target.")
    ] = "text",
    config: ConfigOption = None,
    procfs: ProcfsOption = None,
    sysfs: SysfsOption = None,
    rootfs: RootfsOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> None:
    """List the serving processes that are found here, with their metrics pages."""
    from inferwatch.cli import targets as command  # noqa: PLC0415 - imports the agent

    raise typer.Exit(command.run(Flags(config, procfs, sysfs, rootfs, log_level, log_format), output_format))


@app.command()
def doctor(
    config: ConfigOption = None,
    procfs: ProcfsOption = None,
    sysfs: SysfsOption = None,
    rootfs: RootfsOption = None,
    log_level: LevelOption = None,
    log_format: FormatOption = None,
) -> None:
    """Say what works on this host, what does not and what to do; 1 when something configured fails."""
    from inferwatch.cli import doctor as command  # noqa: PLC0415 - imports the agent

    raise typer.Exit(command.run(Flags(config, procfs, sysfs, rootfs, log_level, log_format)))


@app.command("check-config")
def check_config(file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration.")]) -> None:
    """Check a configuration file; 2 when it can't be used."""
    from inferwatch.cli import checkconfig as command  # noqa: PLC0415 - imports all samplers

    raise typer.Exit(command.run(file))


@render.command("config-example")
def render_config_example(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here; standard output when not given.")
    ] = None,
) -> None:
    """Print a configuration file with every option and its default."""
    from inferwatch.cli import generate as command  # noqa: PLC0415 - imports all samplers

    raise typer.Exit(command.config_example(output))


@render.command("docs")
def render_docs(
    root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The source tree; the one that this program runs from by default."),
    ] = None,
    check: Annotated[  # noqa: FBT002 - a switch on the command line
        bool, typer.Option("--check", help="Write nothing; name what is out of date, and exit with 1 if anything is.")
    ] = False,
) -> None:
    """Fill the generated parts of the pages in a source tree (for developers)."""
    from inferwatch.cli import generate as command  # noqa: PLC0415 - imports all samplers

    raise typer.Exit(command.docs(root, check=check))
