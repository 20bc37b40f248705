"""Code that both SARIF forms share, and the stream: comma-separated results, no envelope.

The stream is in the format of the EDG front end, with EDG's own levels; `"[" + stream + "]"` is a
JSON array. `sarif_document` writes a complete SARIF 2.1.0 file.
"""

from __future__ import annotations

import json
import os
from urllib.parse import quote

from pylink.diagnostics import severity
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import to_bytes, write
from pylink.files.workdir import absolute_path, present_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO, TypeAlias

    from pylink.diagnostics.record import Diagnostic

    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | bool"

# By severity of a record: the level of its result object in the stream.
STREAM_LEVELS = {
    severity.NOTE: "remark",
    severity.REMARK: "remark",
    severity.WARNING: "warning",
    severity.CAUTION: "warning",
    severity.DISCRETIONARY: "error",
    severity.ERROR: "error",
    severity.CATASTROPHE: "catastrophe",
    severity.COMMAND_LINE: "catastrophe",
    severity.INTERNAL: "internal_error",
}


def rule_id(number: int) -> str:
    """Return the rule of a diagnostic: `EC` and the decimal number."""
    return f"EC{number}"


def unicode_text(text: str) -> str:
    """Return a text as Unicode: bytes of a name that are not UTF-8 appear as `\\xNN`."""
    return to_bytes(text).decode("utf-8", "backslashreplace")


def file_uri(path: str) -> str:
    """Return the absolute `file:///` URI of a path, percent-encoded by bytes.

    A member of an archive, such as `archive:member`, has the URI of the archive. Members may be
    archives themselves.
    """
    archive = "" if os.path.lexists(present_path(path)) else path
    while archive and not os.path.isfile(present_path(archive)):
        archive = archive.rpartition(":")[0]
    return "file://" + quote(to_bytes(absolute_path(archive or path)))


def message(diagnostic: Diagnostic) -> Json:
    """Return the message object of a record."""
    return {"text": unicode_text(diagnostic.message)}


def to_json(value: Json) -> str:
    """Return compact JSON on one line; characters beyond ASCII are not escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def stream_result(diagnostic: Diagnostic) -> Json:
    """Return the result object of a record: rule, level, message, its location and its notes."""
    result: dict[str, Json] = {
        "ruleId": rule_id(diagnostic.number),
        "level": STREAM_LEVELS[diagnostic.level],
        "message": message(diagnostic),
    }
    location = _physical_location(diagnostic)
    if location:
        result["locations"] = [{"physicalLocation": location}]
    if diagnostic.notes:
        result["relatedLocations"] = [_related(note) for note in diagnostic.notes]
    return result


def _related(note: Diagnostic) -> Json:
    """Return the related location of a note, with its message."""
    related: dict[str, Json] = {"message": message(note)}
    location = _physical_location(note)
    if location:
        related["physicalLocation"] = location
    return related


def _physical_location(diagnostic: Diagnostic) -> dict[str, Json]:
    """Return the location in a source file, else the input; empty if a record has neither.

    A source with `text`, a line of PTX in the input, is not in a source file.
    """
    source = diagnostic.source
    if source is not None and source.text is None:
        region: dict[str, Json] = {"startLine": max(1, source.line)}
        if source.column > 0:
            region["startColumn"] = source.column
        return {"artifactLocation": {"uri": file_uri(source.file)}, "region": region}
    if diagnostic.file:
        return {"artifactLocation": {"uri": file_uri(diagnostic.file)}}
    return {}


class SarifStream(Renderer):
    """Writes each record as a SARIF result object, with commas between the objects."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.is_first = True  # no object was written

    def emit(self, diagnostic: Diagnostic) -> None:
        text = to_json(stream_result(diagnostic))
        write(self.stream, text if self.is_first else "," + text)
        self.is_first = False
