"""An audit as text and as JSON."""

from __future__ import annotations

from pylink.audit.targets import architectures
from pylink.diagnostics.severity import NAMES
from pylink.diagnostics.stream import printable, to_bytes
from pylink.terminal.tables import align_columns, json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pylink.audit.model import LinkedFile
    from pylink.audit.process import Process
    from pylink.audit.search import Finder
    from pylink.diagnostics.record import Diagnostic

_COLUMNS = ("file", "images", "modules", "state", "code")


def file_lines(process: Process) -> list[str]:
    """Return a table of the files with device code."""
    rows = [
        (
            file.display_path,
            str(len(file.images)),
            str(len(file.calls)),
            _link_state(file),
            _architecture_list(file),
        )
        for file in process.files
        if file.has_device_code
    ]
    if not rows:
        return ["No file has device code."]
    cells = [tuple(printable(cell) for cell in row) for row in [_COLUMNS, *rows]]
    return align_columns(cells, right=" rr")


def _link_state(file: LinkedFile) -> str:
    """Return the column `state`: how the device code of a file is linked.

    Its modules are relocatable code, its image is what a link made of modules. `closed`: the image
    has some of the file's modules, or the file has no modules. `mixed`: the image has only modules
    of other files. `open`: it has modules and no image, so other files link them. `whole`: neither.
    """
    if file.answers:
        return "closed" if set(file.calls) & set(file.answers) or not file.calls else "mixed"
    return "open" if file.calls else "whole"


def unread_lines(process: Process, finder: Finder) -> list[str]:
    """Return lines about libraries that were not found, and paths that may not be read."""
    lines = []
    if process.missing:
        lines.append("Not read: " + ", ".join(map(printable, sorted(process.missing))))
    for path, needed_by in finder.not_looked_at.items():
        lines.append(f"Not read: {printable(path)}, which {printable(needed_by)} names")
    return lines


def document(process: Process, finder: Finder, findings: Iterable[Diagnostic], status: int) -> str:
    """Return the audit as one JSON object; names that are not UTF-8 have escapes."""
    content = {
        "status": status,
        "files": [
            {
                "path": file.path,
                "images": len(file.images),
                "modules": len(file.calls),
                "state": _link_state(file),
                "architectures": architectures(
                    entry for image in file.images for entry in image.entries
                ),
            }
            for file in process.files
            if file.has_device_code
        ],
        "findings": [_describe_finding(record) for record in findings],
        "not_found": sorted(process.missing),
        "not_looked_at": sorted(finder.not_looked_at),
    }
    return json_text(_escape_bytes(content))


def _describe_finding(record: Diagnostic) -> dict[str, Any]:
    """Return a finding as values for JSON."""
    finding: dict[str, Any] = {
        "rule": record.kind,
        "number": record.number,
        "level": NAMES[record.level],
        "file": record.file,
        "message": record.message,
        "steps": [hint.message for hint in record.notes],
    }
    finding.update({key: value for key, value in record.args.items() if key not in finding})
    if record.symbol is not None:
        finding["symbol"] = record.symbol
    return finding


def _escape_bytes(value: Any) -> Any:
    """Replace bytes of names that are not UTF-8 by `\\xNN`."""
    if isinstance(value, str):
        return to_bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return [_escape_bytes(item) for item in value]
    if isinstance(value, dict):
        return {key: _escape_bytes(item) for key, item in value.items()}
    return value


def _architecture_list(file: LinkedFile) -> str:
    """Return the architectures of a file's images, or else of its relocatable code."""
    code = file.images or file.modules
    return ", ".join(architectures(entry for part in code for entry in part.entries)) or "-"
