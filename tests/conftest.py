"""What holds for the whole run: real things are not skipped as root; each skip is told at the end with its reason."""

import os
from collections import Counter

import pytest


class RealSkips:
    """Makes a skipped test that needs a real thing fail the run when it runs as root, who can have all of them."""

    def __init__(self) -> None:
        self.forbidden: list[str] = []
        self.reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.skipped:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.reasons[reason] += 1
        if "real" in report.keywords and os.geteuid() == 0:
            self.forbidden.append(f"{report.nodeid}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.forbidden and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.reasons:
            terminalreporter.section("skipped, and why")
            for reason, count in sorted(self.reasons.items()):
                terminalreporter.line(f"{count} x {reason}")
        for line in self.forbidden:
            terminalreporter.line(f"FAILED (a `real` test may not be skipped as root): {line}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RealSkips(), "real-skips")
