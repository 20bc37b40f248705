"""The outcomes of a comparison: code, stage and sentence."""

from __future__ import annotations

from pylink.facts.outcomes import Comparison

CODE_DATA = 17
CODE_TARGETS = 18
CODE_HEADERS = 19

# Code, stage and sentence by `why` of a kernel's result. `Verdict.reason` fills the braces.
# fmt: off
REASONS: dict[int, tuple[int, int | None, str]] = {
    Comparison.ACCEPTED: (0, None, "all three stages accept"),
    Comparison.BYTES_DIFFER: (CODE_DATA, 1,
        "{entry} differs at byte {offset:#x}: {candidate} here, {reference} in the reference"),
    Comparison.CANDIDATE_LONGER: (CODE_DATA, 1,
        "the candidate has {candidate} primary entries, the reference {reference}: the walk would "
        "read outside the vector of the reference"),
    Comparison.REFERENCE_SHORTER: (CODE_DATA, 1,
        "{entry} has {candidate} bytes, that of the reference {reference}: the comparison would "
        "read outside the entry of the reference"),
    Comparison.HEADER_COUNT: (CODE_HEADERS, 2,
        "the candidate has {candidate} section headers, the reference {reference}"),
    Comparison.HEADER_TWIN: (CODE_HEADERS, 2,
        "section {entry} (+0 {q0:#x}, +8 {q8:#x}, addralign {align}) has no twin in the reference"),
    Comparison.TARGET_COUNT: (CODE_TARGETS, 3,
        "the candidate has {candidate} relocation targets, the reference {reference}"),
    Comparison.TARGET_TWIN: (CODE_TARGETS, 3,
        "relocation target {entry} ({size} bytes) has no twin with the same bytes"),
    Comparison.HEADER_MOVED: (CODE_HEADERS, 2,
        "section {entry} has its twin at another place, so equal bytes are not shown"),
    Comparison.TARGET_MOVED: (CODE_TARGETS, 3,
        "relocation target {entry} has its twin at another place, so equal use is not shown"),
    Comparison.TARGET_PLACE: (CODE_TARGETS, 3,
        "relocation target {entry} applies to another section in the reference"),
    Comparison.ATTRIBUTES_DIFFER: (CODE_TARGETS, 3,
        "the attribute records (.nv.merc.nv.info) of the files differ, so which copy of a function "
        "wins is not shown"),
    Comparison.FUNCTION_DIFFERS: (CODE_TARGETS, 3,
        "the files define different functions: {symbol} here, {twin} in the reference"),
    Comparison.FUNCTION_WEAKER: (CODE_TARGETS, 3,
        "function {symbol} is weak in the reference and strong in the candidate, whose copy wins"),
    Comparison.SYMBOL_DIFFERS: (CODE_TARGETS, 3,
        "entry {offset} of relocation target {entry} names {symbol}, in the reference {twin}"),
    Comparison.SECTION_KIND: (CODE_HEADERS, 2,
        "the sections differ in sh_type, sh_flags or sh_entsize, or in having bytes in the file"),
}
# fmt: on

# Short reasons for a table of what blocks folding; the name of the entry follows.
BLOCKERS = {
    Comparison.ACCEPTED: "",
    Comparison.BYTES_DIFFER: "other bytes",
    Comparison.CANDIDATE_LONGER: "more primary entries",
    Comparison.REFERENCE_SHORTER: "longer section",
    Comparison.HEADER_COUNT: "another number of sections",
    Comparison.HEADER_TWIN: "no such section header",
    Comparison.TARGET_COUNT: "another number of relocation sections",
    Comparison.TARGET_TWIN: "no such relocations",
    Comparison.HEADER_MOVED: "sections in another order",
    Comparison.TARGET_MOVED: "relocation sections in another order",
    Comparison.TARGET_PLACE: "relocations of another section",
    Comparison.ATTRIBUTES_DIFFER: "other attribute records",
    Comparison.FUNCTION_DIFFERS: "function of its own",
    Comparison.FUNCTION_WEAKER: "stronger copy of a function",
    Comparison.SYMBOL_DIFFERS: "symbol of its own",
    Comparison.SECTION_KIND: "sections of another type",
}


def show_name(name: bytes) -> str:
    """Return a name as text; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", "backslashreplace")
