"""Diagnostics of damaged inputs, from the reader's reason codes."""

from __future__ import annotations

from pylink.facts import elf
from pylink.facts.outcomes import ReadFault
from pylink.tables import extent_at, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Files, Sections
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.inputs.loaded import Loaded
    from pylink.rows import FaultRow

# By reason: the kind of diagnostic, and the argument of its message that gets the fault's `value`
# ("" if the message does not show it).
KINDS = {
    ReadFault.TOO_SHORT: ("cannot-open-input", ""),
    ReadFault.NOT_ELF: ("not-elf", ""),
    ReadFault.CLASS: ("wrong-class", ""),
    ReadFault.ENDIAN: ("wrong-endian", ""),
    ReadFault.MACHINE: ("wrong-machine", ""),
    ReadFault.ABI_VERSION: ("wrong-abi", ""),
    ReadFault.NOT_RELOCATABLE: ("wrong-type", "type"),
    ReadFault.SECTION_TABLE: ("section-table-range", ""),
    ReadFault.SECTION_BOUNDS: ("section-range", ""),
    ReadFault.NAME_OFFSET: ("string-offset", "value"),
    ReadFault.STRING_TABLE: ("string-unterminated", ""),
    ReadFault.ALIGN: ("section-alignment", "value"),
    ReadFault.NO_SYMTAB: ("no-symbol-table", ""),
    ReadFault.ENTSIZE: ("entry-size", "value"),
    ReadFault.SYMBOL_SECTION: ("symbol-section", "value"),
    ReadFault.SH_INFO: ("section-info", "value"),
    ReadFault.RELOC_SYMBOL: ("relocation-symbol", "value"),
    ReadFault.RELOC_OFFSET: ("relocation-range", "value"),
    ReadFault.SH_LINK: ("section-link", "value"),
    ReadFault.TEXT_SIZE: ("section-size", "value"),
    ReadFault.DUPLICATE_SECTION: ("duplicate-section", ""),
    ReadFault.SECTION_NAME: ("section-name", "value"),
    ReadFault.RELOC_TYPE: ("relocation-type", "value"),
    ReadFault.SYMBOL_BOUNDS: ("symbol-range", ""),
    ReadFault.BINDING: ("symbol-kind", "value"),
    ReadFault.TABLE_SIZE: ("section-size", "value"),
    ReadFault.SECTION_TYPE: ("unknown-section", "value"),
    ReadFault.OSABI: ("wrong-abi", ""),
}
# By reason, for those not in KINDS: the kind of diagnostic, and the text of its argument `reason`,
# which may show the numbers `value` and `limit` of the fault.
# fmt: off
TEXTS = {
    ReadFault.TOO_LARGE: ("malformed",
        "size {value} is larger than any real one ({limit} at most)"),
    ReadFault.RECORD_END: ("nvinfo-format", "it needs {value} bytes, and {limit} are left"),
    ReadFault.RECORD_FORMAT: ("nvinfo-format", "format {value}"),
    ReadFault.CAPSULE_SIZE: ("capsule-format", "it has {value} bytes, at least {limit} are needed"),
    ReadFault.RECORD_SYMBOL: ("nvinfo-format", "it names symbol {value}, which does not exist"),
    ReadFault.RECORD_SIZE: ("nvinfo-format", "it has {value} bytes of data"),
    ReadFault.CALLGRAPH_SYMBOL: ("callgraph-format",
        "it names symbol {value}, which does not exist"),
    ReadFault.CALLGRAPH_STRING: ("callgraph-format",
        "string {value} lies outside the string table"),
    ReadFault.CALLGRAPH_BLOCK: ("callgraph-format", "it is in no known block (marker {value:#x})"),
    ReadFault.VARIABLE_ALIGN: ("malformed",
        "alignment {value} of the variable is not a power of two <= {limit}"),
    ReadFault.NO_CAPSULE: ("malformed", "the function has no mercury capsule"),
    ReadFault.NAME_BYTES: ("malformed", "names of {value} bytes in all, in a file of {limit}"),
    ReadFault.ALIGN_LIMIT: ("malformed", "alignment {value} is larger than {limit}"),
    ReadFault.SYMBOL_TYPE: ("malformed", "section {value} cannot hold a symbol of this type"),
    ReadFault.NULL_SYMBOL: ("malformed", "the first symbol is not the null symbol"),
    ReadFault.ALIGN_SUM: ("malformed",
        "sections are aligned to {value} bytes in all ({limit} at most)"),
    ReadFault.ROW_COUNT: ("malformed", "it has {value} rows, and there are {limit} symbols"),
    ReadFault.SIZE_SUM: ("malformed", "sections of {value} bytes in all, in a file of {limit}"),
    ReadFault.ELF_FLAGS: ("malformed", "e_flags {value:#x} have bits that no toolkit sets"),
}
# fmt: on
# Reasons of KINDS whose value is shown as a hexadecimal number.
HEXADECIMAL = (ReadFault.SECTION_NAME, ReadFault.SECTION_TYPE)

# Section types of the tables of unified functions and data (symbols `__UFT...` and `__UDT...`),
# which an executable made by pylink cannot have.
UNIFIED_TABLES = (elf.SHT_CUDA_UFT_ENTRY, elf.SHT_CUDA_UDT_ENTRY)

# Kinds of diagnostics whose text is nvlink's and does not say what the file is. They get a hint
# that says what it is.
NOT_LINKABLE = ("cannot-open-input", "not-elf", "wrong-machine")

# Reasons about an attribute record: the `index` of the fault is the record's offset in its section.
RECORD_REASONS = (
    ReadFault.RECORD_END,
    ReadFault.RECORD_FORMAT,
    ReadFault.RECORD_SYMBOL,
    ReadFault.RECORD_SIZE,
)

# Reasons about a relocation: the `index` of the fault is its number, from 0, in its section.
RELOCATION_REASONS = (ReadFault.RELOC_SYMBOL, ReadFault.RELOC_OFFSET, ReadFault.RELOC_TYPE)


def report_fault(
    fault: FaultRow, loaded: Loaded, files: Files, sections: Sections, sink: Sink
) -> None:
    """Report a fault that the reader of cubins found.

    `fault.section` is the number of the section in the file. `fault.index` is the number of an
    entry of that section, or the offset of a byte in it. Each may be -1, for none.
    """
    job, names, arena, extents = loaded.job, loaded.names, loaded.arena, loaded.extents
    file, section, index, reason = fault.file, fault.section, fault.index, fault.reason
    value, limit = fault.value, fault.limit
    args: dict[str, str | int] = {}
    if reason in TEXTS:
        kind, sentence = TEXTS[reason]
        args["reason"] = sentence.format(value=value, limit=limit)
    else:
        kind, argument = KINDS[reason]
        if argument:
            args[argument] = f"{value:#x}" if reason in HEXADECIMAL else value
    if reason == ReadFault.OSABI:  # nvlink reports it in two messages
        sink.report("wrong-os-abi", file=names[file])
    if value in UNIFIED_TABLES and kind == "unknown-section" and job.executable:
        from pylink.diagnostics.record import note

        section_title = _section_name(arena, files, sections, file, section)
        hint = note("file-reason", reason=f"'{names[file]}' has the section {section_title}")
        sink.fatal("unified-symbols", file=names[file], hints=[hint])
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
