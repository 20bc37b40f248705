"""Look for hazards in cubins.

    PYTHONPATH=tests python -m hazards FILE.cubin ... [--brief]

Each finding is a line; the exit status is 1 if there is one.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from hazards import check, tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--brief", action="store_true", help="only the number of each file")
    parser.add_argument("--table", help="judge by the table of this architecture, such as 103")
    arguments = parser.parse_args()
    total = 0
    for path in arguments.files:
        arch, flows = check.flows(path.read_bytes())
        table = tables.load(arguments.table or arch)
        found = [finding for part in flows for finding in check.function(part, table)]
        total += len(found)
        count = sum(len(part.steps) for part in flows)
        print(f"{path}: {len(flows)} functions, {count} instructions, {len(found)} findings")
        apart = sum((check.asynchronous(part) for part in flows), Counter[str]())
        if apart:
            names = ", ".join(f"{count} {name}" for name, count in sorted(apart.items()))
            print(f"    not followed beyond their scoreboards: {names}")
        if not arguments.brief:
            for finding in found:
                print(f"    {finding}")
    return 1 if total else 0


if __name__ == "__main__":
    raise SystemExit(main())
