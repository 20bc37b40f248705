"""Diagnostics of damaged inputs, from the reader's reason codes."""

from __future__ import annotations

from pylink.facts import elf
from pylink.tables import extent_at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Files, Sections
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.inputs.loaded import Loaded
    from pylink.rows import FaultRow

# Reason for an unknown OS ABI, which nvlink reports in two messages.
OS_ABI = 46

# Reason -> kind of diagnostic, the name of its argument, and the argument's text (None: the value
# itself). `read/faults.pxd` has the numbers.
REASONS: dict[int, tuple[str, str, str | None]] = {
    1: ("cannot-open-input", "", None),
    2: ("not-elf", "", None),
    3: ("wrong-class", "", None),
    4: ("wrong-endian", "", None),
    5: ("wrong-machine", "", None),
    6: ("wrong-abi", "", None),
    7: ("wrong-type", "type", None),
    8: ("section-table-range", "", None),
    9: ("section-range", "", None),
    10: ("string-offset", "value", None),
    11: ("string-unterminated", "", None),
    12: ("section-alignment", "value", None),
    13: ("no-symbol-table", "", None),
    14: ("entry-size", "value", None),
    15: ("symbol-section", "value", None),
    16: ("section-info", "value", None),
    17: ("relocation-symbol", "value", None),
    18: ("relocation-range", "value", None),
    19: ("malformed", "reason", "size {value} is larger than any real one ({limit} at most)"),
    20: ("section-link", "value", None),
    21: ("nvinfo-format", "reason", "it needs {value} bytes, and {limit} are left"),
    22: ("nvinfo-format", "reason", "format {value}"),
    24: ("capsule-format", "reason", "it has {value} bytes, at least {limit} are needed"),
    25: ("section-size", "value", None),
    26: ("nvinfo-format", "reason", "it names symbol {value}, which does not exist"),
    27: ("nvinfo-format", "reason", "it has {value} bytes of data"),
    28: ("callgraph-format", "reason", "it names symbol {value}, which does not exist"),
    29: ("callgraph-format", "reason", "string {value} lies outside the string table"),
    30: ("callgraph-format", "reason", "it is in no known block (marker {value:#x})"),
    31: ("duplicate-section", "", None),
    32: ("section-name", "value", "{value:#x}"),
    33: ("relocation-type", "value", None),
    34: ("symbol-range", "", None),
    35: ("symbol-kind", "value", None),
    36: (
        "malformed",
        "reason",
        "alignment {value} of the variable is not a power of two <= {limit}",
    ),
    37: ("malformed", "reason", "the function has no mercury capsule"),
    38: ("malformed", "reason", "names of {value} bytes in all, in a file of {limit}"),
    39: ("section-size", "value", None),
    40: ("malformed", "reason", "alignment {value} is larger than {limit}"),
    41: ("malformed", "reason", "section {value} cannot hold a symbol of this type"),
    42: ("malformed", "reason", "the first symbol is not the null symbol"),
    43: ("malformed", "reason", "sections are aligned to {value} bytes in all ({limit} at most)"),
    44: ("malformed", "reason", "it has {value} rows, and there are {limit} symbols"),
    45: ("unknown-section", "value", "{value:#x}"),
    OS_ABI: ("wrong-abi", "", None),
    47: ("malformed", "reason", "sections of {value} bytes in all, in a file of {limit}"),
    48: ("malformed", "reason", "e_flags {value:#x} have bits that no toolkit sets"),
}

# Section types of unified tables: functions and variables that several programs share.
UNIFIED_TABLES = (elf.SHT_CUDA_UFT_ENTRY, elf.SHT_CUDA_UDT_ENTRY)

# Kinds of diagnostics whose text is nvlink's and does not say what the file is; a hint does.
NOT_LINKABLE = ("cannot-open-input", "not-elf", "wrong-machine")

# Reasons about an attribute record, whose index is its offset in the section.
RECORD_REASONS = (21, 22, 26, 27)

# Reasons about a relocation, whose index is its row.
RELOCATION_REASONS = (17, 18, 33)


def report_fault(
    fault: FaultRow,
    loaded: Loaded,
    files: Files,
    sections: Sections,
    sink: Sink,
) -> None:
    """Report a fault that the reader found.

    The numbers of a fault: the file, the section in it (-1 for none), and the index of a row or the
    offset of a record in the section (-1 for none).
    """
    job, names, arena, extents = loaded.job, loaded.names, loaded.arena, loaded.extents
    file, section, index, reason = fault.file, fault.section, fault.index, fault.reason
    value, limit = fault.value, fault.limit
    kind, argument, sentence = REASONS[reason]
    if reason == OS_ABI:
        sink.report("wrong-os-abi", file=names[file])
    if value in UNIFIED_TABLES and kind == "unknown-section" and job.executable:
        from pylink.diagnostics.record import note

        section_title = _section_name(arena, files, sections, file, section)
        hint = note("file-reason", reason=f"'{names[file]}' has the section {section_title}")
        sink.fatal("unified-symbols", file=names[file], hints=[hint])
    args: dict[str, str | int] = {}
    if argument:
        args[argument] = value if sentence is None else sentence.format(value=value, limit=limit)
    if kind in ("entry-size", "section-size"):
        args["expected"] = limit
    name = _section_name(arena, files, sections, file, section) if section >= 0 else None
    entry_index = index if index >= 0 else None
    record_offset = entry_index if reason in RECORD_REASONS else None

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.relocation import explain_relocation

        start, size = extent_at(extents, file)
        image = arena[start : start + size]
        explain_relocation(diagnostic, image, section, index, job.source_files())

    hints: list[Diagnostic] = []
    if kind in NOT_LINKABLE:
        from pylink.inputs.filehints import file_kind_hints

        start, size = extent_at(extents, file)
        hints = file_kind_hints(arena[start : start + size])
    sink.report(
        kind,
        hints=hints,
        explain=explain if reason in RELOCATION_REASONS else None,
        file=names[file],
        section=name,
        index=entry_index if record_offset is None else None,
        offset=record_offset,
        **args,  # type: ignore[arg-type]  # no argument has the name of a parameter
    )


def _section_name(arena: bytes, files: Files, sections: Sections, file: int, section: int) -> str:
    """Return the section's name if known, else its index."""
    if file < len(files):
        number = files[file].first_section + section
        if number < len(sections) and sections[number].name_size:
            return text(arena, sections[number].name, sections[number].name_size)
    return f"section {section}"
