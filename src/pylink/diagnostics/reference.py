"""The text of docs/diagnostics.md: `python -m pylink.diagnostics.reference` prints it."""

from __future__ import annotations

import sys

from pylink.diagnostics.examples import EXAMPLES, FILES
from pylink.diagnostics.help import paragraph
from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import DISCRETIONARY, NAMES

_HEAD = """\
# Diagnostics

For people who want to look up a message or change its severity. Every kind of message has an
entry here.

Every diagnostic has a number and a name that do not change. `--diag-suppress`, `--diag-remark`,
`--diag-warning`, `--diag-error` and `--diag-once` take numbers and names, separated by commas. The
severity of a diagnostic marked "fixed" cannot be changed. Catastrophes, command-line errors and
internal errors end the link at once.

This page is generated from the table in `pylink.diagnostics.kinds`; change it there and run
`python -m pylink.diagnostics.reference > docs/diagnostics.md`.

Frequent ones have an example: a command with its output, and a command that works.
{files}"""


def reference() -> str:
    """Return the page: its head, then a section for each kind, in the order of the numbers."""
    parts = [_HEAD.format(files=FILES)]
    for name, (number, severity, template) in sorted(KINDS.items(), key=lambda row: row[1][0]):
        fixed = "" if severity <= DISCRETIONARY else ", fixed"
        parts.append(
            f"\n## {number} {name}\n\n{NAMES[severity].capitalize()}{fixed}: `{template}`\n\n"
            f"{paragraph(name)}\n{_example_text(name)}"
        )
    return "".join(parts)


def _example_text(name: str) -> str:
    """Return the example of the kind `name` as a block of Markdown; empty if it has none."""
    example = EXAMPLES.get(name)
    if example is None:
        return ""
    lines = [f"$ pylink {example.command}", example.output]
    if example.correct:
        lines.append(f"$ pylink {example.correct}")
    return "\n".join(["", "```console", *lines, "```", ""])


if __name__ == "__main__":
    sys.stdout.write(reference())
