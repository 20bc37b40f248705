"""The outcomes of a comparison: code, stage and sentence."""

from __future__ import annotations

from pylink.facts.outcomes import FoldOutcome

# Codes of rejections: contents, relocation sections (targets) or section headers differ.
CODE_DATA = 17
CODE_TARGETS = 18
CODE_HEADERS = 19

# By outcome (`why`) of a native comparison: its code, the stage that rejects (None for none), and a
# sentence, in which `Verdict.reason` fills the braces.
# fmt: off
REASONS: dict[int, tuple[int, int | None, str]] = {
    FoldOutcome.ACCEPTED: (0, None, "all three stages accept"),
    FoldOutcome.BYTES_DIFFER: (CODE_DATA, 1,
        "{entry} differs at byte {offset:#x}: {candidate} here, {reference} in the reference"),
    FoldOutcome.CANDIDATE_LONGER: (CODE_DATA, 1,
        "the candidate has {candidate} primary entries, the reference {reference}: the walk would "
        "read outside the vector of the reference"),
    FoldOutcome.REFERENCE_SHORTER: (CODE_DATA, 1,
        "{entry} has {candidate} bytes, that of the reference {reference}: the comparison would "
        "read outside the entry of the reference"),
    FoldOutcome.HEADER_COUNT: (CODE_HEADERS, 2,
        "the candidate has {candidate} section headers, the reference {reference}"),
    FoldOutcome.HEADER_TWIN: (CODE_HEADERS, 2,
        "section {entry} (+0 {q0:#x}, +8 {q8:#x}, addralign {align}) has no twin in the reference"),
    FoldOutcome.TARGET_COUNT: (CODE_TARGETS, 3,
        "the candidate has {candidate} relocation targets, the reference {reference}"),
    FoldOutcome.TARGET_TWIN: (CODE_TARGETS, 3,
        "relocation target {entry} ({size} bytes) has no twin with the same bytes"),
    FoldOutcome.HEADER_MOVED: (CODE_HEADERS, 2,
        "section {entry} has its twin at another place, so equal bytes are not shown"),
    FoldOutcome.TARGET_MOVED: (CODE_TARGETS, 3,
        "relocation target {entry} has its twin at another place, so equal use is not shown"),
    FoldOutcome.TARGET_PLACE: (CODE_TARGETS, 3,
        "relocation target {entry} applies to another section in the reference"),
    FoldOutcome.ATTRIBUTES_DIFFER: (CODE_TARGETS, 3,
        "the attribute records (.nv.merc.nv.info) of the files differ, so which copy of a function "
        "wins is not shown"),
    FoldOutcome.FUNCTION_DIFFERS: (CODE_TARGETS, 3,
        "the files define different functions: {symbol} here, {twin} in the reference"),
    FoldOutcome.FUNCTION_WEAKER: (CODE_TARGETS, 3,
        "function {symbol} is weak in the reference and strong in the candidate, whose copy wins"),
    FoldOutcome.SYMBOL_DIFFERS: (CODE_TARGETS, 3,
        "entry {offset} of relocation target {entry} names {symbol}, in the reference {twin}"),
    FoldOutcome.SECTION_KIND: (CODE_HEADERS, 2,
        "the sections differ in sh_type, sh_flags or sh_entsize, or in having bytes in the file"),
}
# fmt: on

# Short reasons for a table of what blocks folding. `blocker_of` (pylink.dedup.analysis) appends the
# family of the section, if known.
BLOCKERS = {
    FoldOutcome.ACCEPTED: "",
    FoldOutcome.BYTES_DIFFER: "other bytes",
    FoldOutcome.CANDIDATE_LONGER: "more primary entries",
    FoldOutcome.REFERENCE_SHORTER: "longer section",
    FoldOutcome.HEADER_COUNT: "another number of sections",
    FoldOutcome.HEADER_TWIN: "no such section header",
    FoldOutcome.TARGET_COUNT: "another number of relocation sections",
    FoldOutcome.TARGET_TWIN: "no such relocations",
    FoldOutcome.HEADER_MOVED: "sections in another order",
    FoldOutcome.TARGET_MOVED: "relocation sections in another order",
    FoldOutcome.TARGET_PLACE: "relocations of another section",
    FoldOutcome.ATTRIBUTES_DIFFER: "other attribute records",
    FoldOutcome.FUNCTION_DIFFERS: "function of its own",
    FoldOutcome.FUNCTION_WEAKER: "stronger copy of a function",
    FoldOutcome.SYMBOL_DIFFERS: "symbol of its own",
    FoldOutcome.SECTION_KIND: "sections of another type",
}


def show_name(name: bytes) -> str:
    """Return a name as text; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", "backslashreplace")
