"""Diagnostics of damaged fat binaries and host objects, from the scanner's reasons."""

from __future__ import annotations

from pylink.facts.fatbinentries import RELOCATABLE_SECTION
from pylink.facts.outcomes import FatbinFault
from pylink.inputs.kinds import OF_HOST
from pylink.rowformats import FAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Source, Sources

# Faults of a host object itself, not of the fat binary in it.
OBJECT_FAULTS = (
    FatbinFault.SECTIONS,
    FatbinFault.SECTION_RANGE,
    FatbinFault.SECTION_NAME,
    FatbinFault.SECTION_SUM,
)

# Messages by reason; `value` and `limit` are those of the FaultRow.
REASONS = {
    FatbinFault.MAGIC: "it starts with {value:#x}, not {limit:#x}",
    FatbinFault.HEADER: (
        "a container header of {value} bytes; 16 are needed, and {limit} are left"
    ),
    FatbinFault.VERSION: "container version {value}, not {limit}",
    FatbinFault.SIZE: "a container of {value} bytes, and {limit} are left",
    FatbinFault.ENTRY_HEADER: (
        "an entry header of {value} bytes; 64 are needed, and {limit} are left"
    ),
    FatbinFault.ENTRY_SIZE: "a payload of {value} bytes, and {limit} are left",
    FatbinFault.COMPRESSED_SIZE: "a compressed payload of {value} bytes in one of {limit}",
    FatbinFault.TAIL: "{value} bytes are left, and an entry header needs {limit}",
    FatbinFault.SECTIONS: (
        "the section header table lies outside the file ({value}, {limit} at most)"
    ),
    FatbinFault.SECTION_RANGE: "section {value} lies outside the file",
    FatbinFault.SECTION_NAME: "the name of section {value} lies outside the string table",
    FatbinFault.SECTION_SUM: "device code of {value} bytes in all, in a file of {limit}",
}


def report_damage(faults: bytes, sources: Sources, sink: Sink) -> None:
    """Report each damaged source once; `faults` has a FaultRow for each."""
    for source, index, reason, value, limit in FAULT.iter_unpack(faults):
        origin = sources[source]
        sentence = REASONS[reason].format(value=value, limit=limit)
        if reason in OBJECT_FAULTS:
            sink.report("host-format", file=origin.name, reason=sentence)
        else:
            report_entry(origin, index, sentence, sink)


def report_entry(
    source: Source, index: int, reason: str, sink: Sink, kind: str = "fatbin-format"
) -> None:
    """Report damage of entry `index` of a source, or of a container if that is -1.

    `kind` is that of the diagnostic.
    """
    sink.report(
        kind,
        file=source.name,
        section=RELOCATABLE_SECTION if source.kind in OF_HOST else None,
        index=index if index >= 0 else None,
        reason=reason,
    )
