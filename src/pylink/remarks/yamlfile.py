"""Writes remarks as YAML: a document for each, in the layout of LLVM's writer."""

from __future__ import annotations

from pylink.remarks.record import TAGS
from pylink.remarks.scalars import scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.remarks.output import OutputFile
    from pylink.remarks.record import Remark

# Columns by which lines of a block literal are indented: as value of a key of the remark, and as
# value of an argument.
_LITERAL = 2
_ARGUMENT_LITERAL = 6
# A flow mapping continues on the next line after this column.
_WRAP = 70
# Greatest hotness that readers of YAML accept; it is written for all larger ones.
_MAX_HOTNESS = 0xFFFFFFFF


class YamlWriter:
    """Writes remarks to a file, batch by batch; `discard` gives up the new file."""

    def __init__(self, output: OutputFile) -> None:
        self.path = output.path
        self._output = output

    def write(self, remarks: list[Remark]) -> None:
        self._output.write("".join(map(document, remarks)).encode())

    def close(self) -> None:
        self._output.commit()

    def discard(self) -> None:
        self._output.discard()


def document(remark: Remark) -> str:
    """Return the YAML document of one remark, from `---` to `...`."""
    lines = [
        f"--- !{TAGS[remark.kind]}\n",
        _entry_line("Pass", scalar(remark.pass_name, _LITERAL)),
        _entry_line("Name", scalar(remark.name, _LITERAL)),
    ]
    if remark.file is not None:
        lines.append(_location_lines("", remark.file, remark.line, remark.column))
    lines.append(_entry_line("Function", scalar(remark.function, _LITERAL)))
    if remark.hotness is not None:
        lines.append(_entry_line("Hotness", str(min(remark.hotness, _MAX_HOTNESS))))
    if remark.args:
        lines.append("Args:\n")
        for key, value, file, line, column in remark.args:
            lines.append("  - " + _entry_line(scalar(key), scalar(value, _ARGUMENT_LITERAL)))
            if file is not None:
                lines.append(_location_lines("    ", file, line, column))
    lines.append("...\n")
    return "".join(lines)


def _entry_line(key: str, value: str) -> str:
    """Return a line with a key and its value, which begins in LLVM's column."""
    return f"{key + ':':<16} {value}\n"


def _location_lines(margin: str, file: str, line: int, column: int) -> str:
    """Return a location as a flow mapping, with line breaks as in LLVM's writer.

    `margin` is the indent of the first line.
    """
    text = f"{margin}{'DebugLoc:':<16} "
    start = len(text)  # column of the mapping
    text += f"{{ File: {scalar(file)}"
    used = len(text.encode())  # LLVM counts bytes of the line, not characters
    for key, value in (("Line", line), ("Column", column)):
        text += ", "
        used += 2
        if used > _WRAP:
            text += "\n" + " " * (start + 2)
            used = start + 2
        entry = f"{key}: {value}"
        text += entry
        used += len(entry)
    return text + " }\n"
