"""Writes remarks as YAML: a document for each, in the layout of LLVM's writer."""

from __future__ import annotations

from pylink.remarks.record import TAGS
from pylink.remarks.scalars import scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.remarks.output import OutputFile
    from pylink.remarks.record import Remark

# Indents of the lines of a block literal: below a key of the remark, and below an argument.
_LITERAL = 2
_ARGUMENT_LITERAL = 6
# A flow mapping continues on the next line after this column.
_WRAP = 70
# Greatest hotness that readers of YAML accept.
_MAX_HOTNESS = 0xFFFFFFFF


class YamlWriter:
    """Writes remarks to a file, batch by batch."""

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
    """The YAML document of one remark, from `---` to `...`."""
    lines = [
        f"--- !{TAGS[remark.kind]}\n",
        _entry("Pass", scalar(remark.pass_name, _LITERAL)),
        _entry("Name", scalar(remark.name, _LITERAL)),
    ]
    if remark.file is not None:
        lines.append(_location("", remark.file, remark.line, remark.column))
    lines.append(_entry("Function", scalar(remark.function, _LITERAL)))
    if remark.hotness is not None:
        lines.append(_entry("Hotness", str(min(remark.hotness, _MAX_HOTNESS))))
    if remark.args:
        lines.append("Args:\n")
        for key, value, file, line, column in remark.args:
            lines.append("  - " + _entry(scalar(key), scalar(value, _ARGUMENT_LITERAL)))
            if file is not None:
                lines.append(_location("    ", file, line, column))
    lines.append("...\n")
    return "".join(lines)


def _entry(key: str, value: str) -> str:
    return f"{key + ':':<16} {value}\n"


def _location(margin: str, file: str, line: int, column: int) -> str:
    """A location as a flow mapping, with line breaks as in LLVM's writer."""
    text = f"{margin}{'DebugLoc:':<16} "
    start = len(text)
    text += f"{{ File: {scalar(file)}"
    used = len(text.encode())
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
