"""Whether an engine that does not answer has only been stopped: that is no fault to warn of."""

from typing import Final

from inferwatch.errors import InferwatchError, NoData, SourceError
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.pid_stat import parse_pid_stat
from inferwatch.spec import Context
from inferwatch.targets.model import ProcessId
from inferwatch.targets.processes import DEAD_STATES

ENDED: Final = "its process has ended"
STOPPING: Final = "it may be stopping"


class EngineProcess:
    """The process behind an engine's page, where it is of a target of this host.

    Args:
        context: The engine's context.
        target: Name of its target.
    """

    def __init__(self, context: Context, target: str) -> None:
        self._context = context
        self._target = target
        self._id: ProcessId | None = None
        self._answered = False

    def answered(self) -> None:
        """Note that the page came, so that the process of the target is the one that serves it."""
        self._id, self._answered = self._listed(), True

    async def excuse(self, error: SourceError) -> str:
        """Return why a failed scrape is none to warn of, empty when it is.

        A process that refuses connections for the first time may be stopping: servers close their port before they end.
        The next time it is a fault.
        """
        listed = self._listed()
        known = self._id or listed
        if known is None:
            return ""
        answered, self._answered = self._answered, False
        if await self._has_ended(known):
            if listed in {None, known}:
                return ENDED
            self._id = listed  # it has been started again; from now on that one is asked about
            return ENDED if answered else ""
        return STOPPING if answered and error.reason in {"connect", "incomplete"} else ""

    def _listed(self) -> ProcessId | None:
        targets = self._context.targets.current().targets
        return next((target.identity for target in targets if target.name == self._target), None)

    async def _has_ended(self, process: ProcessId) -> bool:
        try:
            return await self._context.run_blocking(_has_ended, self._context.hostfs, process)
        except SourceError:  # the thread hangs
            return False


def _has_ended(hostfs: HostFs, process: ProcessId) -> bool:
    try:
        stat = parse_pid_stat(read_bytes(hostfs.proc(str(process.pid), "stat")))
    except NoData:
        return True
    except InferwatchError:
        return False
    return stat.start_ticks != process.start_ticks or stat.state in DEAD_STATES
