"""What was wrong with an input: the reader's reason codes as diagnostics."""

from __future__ import annotations

from pylink.tables import FAULT, FILE, SECTION, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink

# Reason -> kind of diagnostic, and the name of the argument that takes the found value.
# elfread.pyx has the same numbers.
KINDS: dict[int, tuple[str, str]] = {
    1: ("truncated", "what"),
    2: ("not-elf", ""),
    3: ("wrong-class", ""),
    4: ("wrong-endian", ""),
    5: ("wrong-machine", "machine"),
    6: ("wrong-abi", "abi"),
    7: ("wrong-type", "type"),
    8: ("section-table-range", ""),
    9: ("section-range", ""),
    10: ("string-offset", "value"),
    11: ("string-unterminated", ""),
    12: ("section-alignment", "value"),
    13: ("no-symbol-table", ""),
    14: ("entry-size", "value"),
    15: ("symbol-section", "value"),
    16: ("section-info", "value"),
    17: ("relocation-symbol", "value"),
    18: ("relocation-range", "value"),
    20: ("section-link", "value"),
    23: ("wrong-abi", "abi"),
}

# Reasons that share the kind for damage without a number of its own.
REASONS: dict[int, str] = {
    19: "size {value} is larger than any real file's ({limit} at most)",
    21: "attribute record is damaged (length or symbol {value}, limit {limit})",
    22: "call graph row names {value}, but only {limit} exist",
    24: "mercury capsule has {value} bytes, at least {limit} are needed",
    25: "code size {value} is no multiple of {limit}",
}


def report_fault(
    fault: bytes,
    arena: bytes,
    files: bytes,
    sections: bytes,
    extents: bytes,
    names: list[str],
    sink: Sink,
) -> None:
    """Report the first thing that the reader could not accept."""
    file, section, index, reason, _, value, limit = FAULT.unpack(fault)
    name = _section_name(arena, files, sections, file, section) if section >= 0 else None
    if reason in KINDS:
        kind, argument = KINDS[reason]
        args: dict[str, str | int] = {argument: value} if argument else {}
        if kind == "truncated":
            args = {"what": "the ELF header"}
        if kind == "entry-size":
            args["expected"] = limit
    else:
        kind = "malformed"
        args = {"reason": REASONS[reason].format(value=value, limit=limit)}
    place = index if index >= 0 else None
    sink.report(kind, file=names[file], section=name, index=place, **args)  # type: ignore[arg-type]


def _section_name(arena: bytes, files: bytes, sections: bytes, file: int, section: int) -> str:
    """The section's name where it is known, else its index."""
    if file < len(files) // FILE.size:
        first = FILE.unpack_from(files, file * FILE.size)[2]
        if (first + section + 1) * SECTION.size <= len(sections):
            row = SECTION.unpack_from(sections, (first + section) * SECTION.size)
            if row[4]:
                return text(arena, row[0], row[4])
    return f"section {section}"
