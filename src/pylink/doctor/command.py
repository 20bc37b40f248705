"""`pylink doctor`: the checks as lines for people, or as JSON."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pylink.diagnostics.stream import printable, show
from pylink.doctor.checks import MISSING, OK, run_all
from pylink.terminal.running import run
from pylink.terminal.tables import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink doctor",
        description="Check the installation: what is missing or slow, each with the command that "
        "fixes it. Exit status 1 if something that links need is missing.",
    )
    options.add_argument("--json", action="store_true", help="print the findings as JSON")
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command; the status is 1 if something that links need is missing, else 0."""
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    checks = list(run_all())
    if options.json:
        show(json_text({"checks": list(map(asdict, checks))}))
    else:
        for check in checks:
            show(f"{check.state:<8} {check.name:<12} {printable(check.text)}\n")
            if check.fix and check.state != OK:
                show(f"{'':<21} fix: {printable(check.fix)}\n")
    return 1 if any(check.state == MISSING for check in checks) else 0
