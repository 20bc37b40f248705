"""What may be skipped: with PYLINK_REQUIRE_CLIENTS=1, as where all clients are installed, little.

A test that is skipped says why, and a run on a machine without the clients is a good one. Where
they are there, a skip is a test that has stopped to look, so the run fails and names it.
"""

from __future__ import annotations

import os

import pytest

REQUIRED = os.environ.get("PYLINK_REQUIRE_CLIENTS") == "1"

# What no package brings: a GPU, and a document that is not the project's to ship.
ALLOWED_FOLDER = "tests/gpu/"
ALLOWED_REASON = "the SARIF schema is not beside the project"


class SkipPolicy:
    """A pytest plugin that fails a run in which something else was skipped."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or not isinstance(report.longrepr, tuple):
            return
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not report.nodeid.startswith(ALLOWED_FOLDER) and reason != ALLOWED_REASON:
            self.refused.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.look_at(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.look_at(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.refused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.refused:
            terminalreporter.section("skipped with all clients installed", red=True)
            for line in self.refused:
                terminalreporter.line(line)
