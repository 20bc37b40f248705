"""The policy for skipped tests: with PYLINK_REQUIRE_CLIENTS=1 most skips fail the run.

Clients are programs that read the output of pylink (`.ci/clients`). Without them, tests are skipped
with a reason. With all of them installed, a skipped test checks nothing by mistake, so the run
fails and names it.
"""

from __future__ import annotations

import os

import pytest

REQUIRED = os.environ.get("PYLINK_REQUIRE_CLIENTS") == "1"

# Skips that are always allowed: without a GPU, and without a document that is not ours to publish.
ALLOWED_FOLDER = "tests/gpu/"
ALLOWED_REASON = "the SARIF schema is not beside the project"


class SkipPolicy:
    """A pytest plugin that fails a run if a test was skipped for another reason."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Record a skipped test, unless its reason is allowed."""
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
