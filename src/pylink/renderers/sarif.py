"""Code that both SARIF forms share, and the stream: comma-separated results, no envelope.

The stream is the EDG front end's: `"[" + stream + "]"` is a JSON array. Its levels are EDG's own;
`sarif_document` writes a complete SARIF 2.1.0 file.
"""

from __future__ import annotations

import json
import os
from urllib.parse import quote

from pylink.diagnostics import severity
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import to_bytes, write
from pylink.files.workdir import absolute, present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO, TypeAlias

    from pylink.diagnostics.record import Diagnostic

    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | bool"

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
    """`EC` and the decimal number."""
    return f"EC{number}"


def unicode_text(text: str) -> str:
    """The text as Unicode: bytes of a name that are not UTF-8 appear as `\\xNN`."""
    return to_bytes(text).decode("utf-8", "backslashreplace")


def file_uri(path: str) -> str:
    """The absolute `file:///` URI of a path, percent-encoded by bytes.

    For a member, `archive:member`, it is the archive's URI. An archive in a thin archive is such a
    member, too.
    """
    archive = "" if os.path.lexists(present(path)) else path
    while archive and not os.path.isfile(present(archive)):
        archive = archive.rpartition(":")[0]
    return "file://" + quote(to_bytes(absolute(archive or path)))


def message(diagnostic: Diagnostic) -> Json:
    """The message object."""
    return {"text": unicode_text(diagnostic.message)}


def to_json(value: Json) -> str:
    """Compact JSON on one line; characters beyond ASCII stay as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def stream_result(diagnostic: Diagnostic) -> Json:
    """The result object of a record: rule, level, message, location, locations of its notes."""
    result: dict[str, Json] = {
        "ruleId": rule_id(diagnostic.number),
        "level": STREAM_LEVELS[diagnostic.level],
        "message": message(diagnostic),
    }
    place = _place(diagnostic)
    if place:
        result["locations"] = [{"physicalLocation": place}]
    if diagnostic.notes:
        result["relatedLocations"] = [_related(note) for note in diagnostic.notes]
    return result


def _related(note: Diagnostic) -> Json:
    related: dict[str, Json] = {"message": message(note)}
    place = _place(note)
    if place:
        related["physicalLocation"] = place
    return related


def _place(diagnostic: Diagnostic) -> dict[str, Json]:
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
    """Writes the stream; a comma comes before every object but the first."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.first = True

    def emit(self, diagnostic: Diagnostic) -> None:
        text = to_json(stream_result(diagnostic))
        write(self.stream, text if self.first else "," + text)
        self.first = False
