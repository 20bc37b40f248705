"""Writes the classes that name the columns of rows, for type checkers and people.

python -m pylink.facts.rowtypes src/_native > src/pylink/rows.py
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pylink.facts.header import ROW_FILES

HEAD = '''\
"""The columns of the rows that tables have, in order; made by `pylink.facts.rowtypes`.

For type checkers and for people: a row of a table (`pylink._native.tables`) has these attributes,
and is of no class here.
"""

from __future__ import annotations
'''


def _parse_structs(text: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield name, description and columns of every packed struct in `text`, a native source.

    The description is the comment above the struct. A column is a pair of its name and its comment.
    """
    comments: list[str] = []
    for line in text.splitlines():
        if line.startswith("# "):
            comments.append(line[2:])
        elif match := re.match(r"cdef packed struct (\w+):", line):
            body = text[text.index(line) + len(line) + 1 :].split("\n\n", maxsplit=1)[0]
            columns = re.findall(r"^ +\w+ (\w+) *(?:# (.*))?$", body, re.MULTILINE)
            yield match[1], " ".join(comments), columns
        else:
            comments = []


def module_text(native: Path) -> str:
    """Return the text of rows.py; `native` is the directory of the native sources."""
    lines = [HEAD]
    for file in ROW_FILES:
        for name, description, columns in _parse_structs(
            (native / file).read_text(encoding="utf-8")
        ):
            lines.append(f"\nclass {name}:")
            if description:
                first_line, *more_lines = textwrap.wrap(description, 90)
                lines.append(f'    """{first_line}' + ("" if more_lines else '"""\n'))
                lines.extend(f"    {line}" for line in more_lines)
                if more_lines:
                    lines.append('    """\n')
            for column, comment in columns:
                lines.append(f"    {column}: int" + (f"  # {comment}" if comment else ""))
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(module_text(Path(sys.argv[1])))
