"""Programs that stand in for ptxas: shell scripts with the input and output in `$in` and `$out`."""

from __future__ import annotations

from pathlib import Path

# A tool is called as `TOOL ... INPUT -o OUTPUT`.
HEAD = """#!/bin/sh
for word; do in=$middle; middle=$last; last=$word; done
out=$last
"""


def fake_tool(path: Path, body: str) -> Path:
    """Write an executable script that runs `body`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body + "\n")
    path.chmod(0o755)
    return path
