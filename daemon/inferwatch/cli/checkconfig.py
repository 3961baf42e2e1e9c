"""The command `check-config`: whether a file can be used, and what it switches on."""

from pathlib import Path

from inferwatch.cli import settings
from inferwatch.cli.output import say
from inferwatch.configfile import LoadedConfig
from inferwatch.runtime.discovery import find_samplers


def run(file: Path) -> int:
    """Print what the file comes to.

    Raises:
        ConfigError: When it can't be used.
    """
    discovery = find_samplers()
    loaded = settings.load(settings.Flags(config=file), discovery)
    say(f"{file}: ok\n{describe(loaded)}")
    return 0


def describe(loaded: LoadedConfig) -> str:
    """Return what a configuration switches on, in two lines."""
    running = sorted(name for name, options in loaded.options.items() if options.enabled)
    off = sorted(loaded.options.keys() - set(running))
    targets = [engine.target_name for engine in loaded.config.engines]
    samplers = f"samplers: {', '.join(running) or 'none'}" + (f" (off: {', '.join(off)})" if off else "")
    engines = f"engines: {', '.join(targets) or 'none'}"
    return f"{samplers}\n{engines}; listens on {loaded.config.web.listen_address}"
