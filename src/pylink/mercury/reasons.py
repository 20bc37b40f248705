"""The outcomes of a comparison: code, stage and sentence."""

from __future__ import annotations

ACCEPTED = 0
BYTES_DIFFER = 1
TARGET_TWIN = 7
NEEDS_DIGESTS = 16

CODE_DATA = 17
CODE_TARGETS = 18
CODE_HEADERS = 19

# Code, stage and sentence of each outcome, by `why` of a kernel's result. `Verdict.reason` fills
# the braces.
REASONS: tuple[tuple[int, int | None, str], ...] = (
    (0, None, "all three stages accept"),
    (
        CODE_DATA,
        1,
        "{entry} differs at byte {offset:#x}: {candidate} here, {reference} in the reference",
    ),
    (
        CODE_DATA,
        1,
        "the candidate has {candidate} primary entries, the reference {reference}: the walk would "
        "read outside the vector of the reference",
    ),
    (
        CODE_DATA,
        1,
        "{entry} has {candidate} bytes, that of the reference {reference}: the comparison would "
        "read outside the entry of the reference",
    ),
    (CODE_HEADERS, 2, "the candidate has {candidate} section headers, the reference {reference}"),
    (
        CODE_HEADERS,
        2,
        "section {entry} (+0 {q0:#x}, +8 {q8:#x}, addralign {align}) has no twin in the reference",
    ),
    (
        CODE_TARGETS,
        3,
        "the candidate has {candidate} relocation targets, the reference {reference}",
    ),
    (
        CODE_TARGETS,
        3,
        "relocation target {entry} ({size} bytes) has no twin with the same bytes",
    ),
    (
        CODE_HEADERS,
        2,
        "section {entry} has its twin at another place, so equal bytes are not shown",
    ),
    (
        CODE_TARGETS,
        3,
        "relocation target {entry} has its twin at another place, so equal use is not shown",
    ),
    (CODE_TARGETS, 3, "relocation target {entry} applies to another section in the reference"),
    (
        CODE_TARGETS,
        3,
        "the attribute records (.nv.merc.nv.info) of the files differ, so which copy of a function "
        "wins is not shown",
    ),
    (
        CODE_TARGETS,
        3,
        "the files define different functions: {symbol} here, {twin} in the reference",
    ),
    (
        CODE_TARGETS,
        3,
        "function {symbol} is weak in the reference and strong in the candidate, whose copy wins",
    ),
    (
        CODE_TARGETS,
        3,
        "entry {offset} of relocation target {entry} names {symbol}, in the reference {twin}",
    ),
    (
        CODE_HEADERS,
        2,
        "the sections differ in sh_type, sh_flags or sh_entsize, or in having bytes in the file",
    ),
)

# Short reasons for a table of what blocks folding; the name of the entry follows.
BLOCKERS = (
    "",
    "other bytes",
    "more primary entries",
    "longer section",
    "another number of sections",
    "no such section header",
    "another number of relocation sections",
    "no such relocations",
    "sections in another order",
    "relocation sections in another order",
    "relocations of another section",
    "other attribute records",
    "function of its own",
    "stronger copy of a function",
    "symbol of its own",
    "sections of another type",
)


def show_name(name: bytes) -> str:
    """Return a name as text; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", "backslashreplace")
