"""A complete SARIF 2.1.0 file, with the rules, places and fingerprints that code scanning reads.

Levels are mapped to SARIF's; `properties.edgSeverity` keeps the original. A location in a cubin has
its section and symbol as logical locations, and its byte offset in the file. A record that is shown
at its source line has its location in the cubin as the first related location. SARIF 2.1.0 has no
lines in binaries, but code scanning requires one: line 1, columns 1 to 2, stands for the file.
"""

from __future__ import annotations

import hashlib
import os

import pylink
from pylink.demangle import demangle
from pylink.diagnostics.help import paragraph
from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.record import DETAIL
from pylink.diagnostics.severity import DISCRETIONARY, INTERNAL, NAMES, NOTE, WARNING
from pylink.diagnostics.stream import to_bytes
from pylink.renderers.filerenderer import FileRenderer
from pylink.renderers.sarif import file_uri, message, rule_id, to_json, unicode_text
from pylink.renderers.section_offset import section_offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sink import Sink
    from pylink.files.atomic import WholeFile
    from pylink.renderers.sarif import Json

# The site of the documentation, and the place on it that describes a kind of diagnostic.
HOME = "https://pylink-cuda.readthedocs.io/"
PAGE = HOME + "diagnostics/#{number}-{kind}"

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def level(severity: int) -> str:
    """Return SARIF's level for a severity: note, warning or error."""
    if severity >= DISCRETIONARY:
        return "error"
    return "warning" if severity >= WARNING else "note"


class SarifDocument(FileRenderer):
    """Collects records and writes the document at the end.

    `subject` is the file of records without a location, usually the output. `target` is the
    architecture, by which code scanning distinguishes the links of one build.
    """

    def __init__(
        self, file: WholeFile, *, subject: str | None = None, target: str | None = None
    ) -> None:
        super().__init__(file)
        self.target = target
        self.subject = subject
        self.records: list[Diagnostic] = []
        # The architecture of each record, for documents on links for several architectures.
        self._archs: list[str | None] = []
        self._arch = target

    def for_target(self, target: str | None) -> None:
        """Set the architecture of later records; None for that of the document."""
        self._arch = target or self.target

    def emit(self, diagnostic: Diagnostic) -> None:
        self.records.append(diagnostic)
        self._archs.append(self._arch)

    def contents(self, sink: Sink) -> bytes:
        return to_bytes(to_json(self.document(sink)) + "\n")

    def document(self, sink: Sink) -> Json:
        """Return the whole document as JSON values."""
        kinds = sorted({record.kind for record in self.records}, key=lambda kind: KINDS[kind][0])
        rule_index = {kind: i for i, kind in enumerate(kinds)}
        version = pylink.__version__
        invocation: dict[str, Json] = {
            "executionSuccessful": sink.exit_code() == 0,
            "exitCode": sink.exit_code(),
        }
        internal_errors = [record for record in self.records if record.level == INTERNAL]
        if internal_errors:
            invocation["toolExecutionNotifications"] = [
                _notification(error) for error in internal_errors
            ]
        results: list[Json] = [
            self._result(record, rule_index[record.kind], arch)
            for record, arch in zip(self.records, self._archs, strict=True)
            if record.level != INTERNAL or record.file or record.source
        ]
        run: dict[str, Json] = {
            "tool": {
                "driver": {
                    "name": "pylink",
                    "version": version,
                    "fullName": f"pylink CUDA device linker {version}",
                    "informationUri": HOME,
                    "rules": [_rule(kind) for kind in kinds],
                }
            },
            # In SARIF, text up to the last slash is the category; the id of a run could follow.
            "automationDetails": {"id": f"pylink/{self.target}/" if self.target else "pylink/"},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": results,
        }
        if sink.follows is not None:
            run["properties"] = {"follows": sink.follows.title}
        return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}

    def _result(self, diagnostic: Diagnostic, rule_index: int, arch: str | None) -> Json:
        """Return the result object of a record; `rule_index` is the row of its rule in `rules`."""
        location = _location(diagnostic)
        if "physicalLocation" not in location and self.subject:
            location["physicalLocation"] = _whole_file(self.subject)
        properties: dict[str, Json] = {
            "edgSeverity": NAMES[diagnostic.level],
            "kind": diagnostic.kind,
        }
        if arch:
            properties["arch"] = arch
        if diagnostic.level != diagnostic.original:
            properties["edgOriginalSeverity"] = NAMES[diagnostic.original]
        details: list[Json] = [
            unicode_text(child.message) for child in diagnostic.children if child.type == DETAIL
        ]
        if details:
            properties["details"] = details
        result: dict[str, Json] = {
            "ruleId": rule_id(diagnostic.number),
            "ruleIndex": rule_index,
            "level": level(diagnostic.level),
            "message": message(diagnostic),
            "partialFingerprints": {"primaryLocationLineHash": _fingerprint(diagnostic)},
            "properties": properties,
        }
        if location:
            result["locations"] = [location]
        source = diagnostic.source
        if source is not None and source.text is not None:
            properties["ptx"] = {"line": source.line, "text": unicode_text(source.text)}
        related = [_related(record) for record in _related_records(diagnostic)]
        if source is not None and source.text is None and diagnostic.file and diagnostic.place:
            related.insert(0, _in_cubin(diagnostic, diagnostic.file))
        for number, related_location in enumerate(related):
            related_location["id"] = number
        if related:
            result["relatedLocations"] = [*related]
        return result


def _rule(kind: str) -> Json:
    """Return the rule object of a kind of diagnostic."""
    number, severity, template = KINDS[kind]
    text = paragraph(kind)
    summary = text.partition(". ")[0].rstrip(".") + "."
    return {
        "id": rule_id(number),
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": f"**{kind}**: `{template}`\n\n{text}"},
        "helpUri": PAGE.format(number=number, kind=kind),
        "defaultConfiguration": {"level": level(severity)},
        "properties": {"tags": ["cuda", "linker"]},
    }


def _notification(diagnostic: Diagnostic) -> Json:
    """Return the notification object of an internal error."""
    return {
        "descriptor": {"id": rule_id(diagnostic.number)},
        "level": "error",
        "message": message(diagnostic),
    }


def _related_records(diagnostic: Diagnostic) -> list[Diagnostic]:
    """Return the records below a record, except details, which are in `properties.details`."""
    records = [child for child in diagnostic.children if child.type != DETAIL]
    for note in diagnostic.notes:
        records += [note, *note.context]
    return records + diagnostic.context + diagnostic.extra


def _in_cubin(diagnostic: Diagnostic, cubin: str) -> dict[str, Json]:
    """Return the location in the cubin of a record that is shown at its source line."""
    location = _location(diagnostic)
    location["physicalLocation"] = _whole_file(cubin, _byte_offset(diagnostic))
    location["message"] = {"text": unicode_text(f"at {diagnostic.where}")}
    return location


def _related(diagnostic: Diagnostic) -> dict[str, Json]:
    """Return the related location of a record below a result, with its message."""
    location = _location(diagnostic)
    location["message"] = message(diagnostic)
    if diagnostic.level != NOTE:
        location["properties"] = {"edgSeverity": NAMES[diagnostic.level]}
    return location


def _location(diagnostic: Diagnostic) -> dict[str, Json]:
    """Return the location in a source file, else in a cubin, with the section and the symbol."""
    location: dict[str, Json] = {}
    source = diagnostic.source
    if source is not None and source.text is None:
        region: dict[str, Json] = {"startLine": max(1, source.line)}
        if source.column > 0:
            region["startColumn"] = source.column
            region["endLine"] = max(1, source.line)
            region["endColumn"] = max(source.column, source.column_end) + 1
        location["physicalLocation"] = {
            "artifactLocation": {"uri": file_uri(source.file)},
            "region": region,
        }
    elif diagnostic.file:
        location["physicalLocation"] = _whole_file(diagnostic.file, _byte_offset(diagnostic))
    logical: list[Json] = []
    if diagnostic.section:
        logical.append(_logical(diagnostic, diagnostic.section, "section"))
    if diagnostic.symbol:
        symbol = _logical(diagnostic, diagnostic.symbol, "symbol")
        readable = demangle(diagnostic.symbol)
        if readable != diagnostic.symbol:
            symbol["decoratedName"] = symbol["name"]
            symbol["name"] = unicode_text(readable)
        logical.append(symbol)
    if logical:
        location["logicalLocations"] = logical
    return location


def _logical(diagnostic: Diagnostic, name: str, kind: str) -> dict[str, Json]:
    """Return the logical location of a section or symbol, qualified by its file."""
    full = f"{os.path.basename(diagnostic.file)}::{name}" if diagnostic.file else name
    return {"name": unicode_text(name), "fullyQualifiedName": unicode_text(full), "kind": kind}


def _whole_file(path: str, byte_offset: int | None = None) -> dict[str, Json]:
    """Return a physical location that stands for a file without lines."""
    region: dict[str, Json] = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}
    if byte_offset is not None:
        region["byteOffset"] = byte_offset
    return {"artifactLocation": {"uri": file_uri(path)}, "region": region}


def _byte_offset(diagnostic: Diagnostic) -> int | None:
    """Return the byte offset of a record's place from the start of its file; None if unknown."""
    if diagnostic.file is None:
        return None
    if diagnostic.section is None:
        return diagnostic.offset
    start = section_offset(diagnostic.file, diagnostic.section)
    return None if start is None else start + (diagnostic.offset or 0)


def _fingerprint(diagnostic: Diagnostic) -> str:
    """Return a hash of a record's kind and names, which does not change with offsets or lines."""
    source = diagnostic.source.file if diagnostic.source is not None else diagnostic.file
    parts = (diagnostic.kind, os.path.basename(source or ""), diagnostic.symbol or "")
    digest = hashlib.sha256(
        "\0".join((*parts, diagnostic.section or "")).encode("utf-8", "replace")
    )
    return f"{digest.hexdigest()[:16]}:1"
