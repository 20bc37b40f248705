"""Prints the table of all remarks in docs/remark-passes.md.

`python -m pylink.remarks.passes.reference` writes it to standard output.
"""

from __future__ import annotations

import sys

from pylink.remarks.passes import PASSES
from pylink.remarks.passes.catalogue import KINDS
from pylink.remarks.record import TAGS


def table() -> str:
    """Return a section for each pass, with a table row for each of its remarks."""
    parts = []
    for name, (phase, _) in PASSES.items():
        parts.append(f"### {name}\n\nRuns after phase {phase}.\n")
        parts.append("| Name | Kind | Function | Message | Hotness |\n|---|---|---|---|---|")
        for kind in KINDS:
            if kind.pass_name == name:
                message = kind.template.replace("|", "\\|")
                parts.append(
                    f"| {kind.name} | {TAGS[kind.kind]} | {kind.function} | {message} "
                    f"| {kind.hotness} |"
                )
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(table())
