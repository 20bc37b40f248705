"""Shell scripts in place of ptxas; `$in` and `$out` are the names of input and output."""

from __future__ import annotations

from pathlib import Path

# Sets the names from a command `TOOL ... INPUT -o OUTPUT`.
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
