"""One remark: what a pass of the link did, or did not do, to one function or section, and why.

A pass builds it piece by piece; the pieces joined are the message::

    Remark(PASSED, "merc-dedup", "SectionFolded", ".text.k", file="a.cubin", hotness=512)
        .text("folded ").arg("Bytes", 512).text(" bytes into '").arg("Reference", "b.cubin")
        .text("'")

The class itself is native, described in pylink/_native/remarkstream.pyi. The model is LLVM's, so
that its tools read what comes of it.
"""

from __future__ import annotations

from pylink._native.remarkstream import Remark

__all__ = [
    "ANALYSIS",
    "ANALYSIS_ALIASING",
    "ANALYSIS_FP_COMMUTE",
    "FAILURE",
    "KINDS",
    "MISSED",
    "PASSED",
    "TAGS",
    "TEXT",
    "MalformedRemarks",
    "Remark",
    "parts_of_place",
    "section_place",
]

# Kinds, numbered as in LLVM's bitstream.
PASSED = 1
MISSED = 2
ANALYSIS = 3
ANALYSIS_FP_COMMUTE = 4
ANALYSIS_ALIASING = 5
FAILURE = 6

# The tag of each kind in YAML, without the `!`; there is no kind 0.
TAGS = (
    "",
    "Passed",
    "Missed",
    "Analysis",
    "AnalysisFPCommute",
    "AnalysisAliasing",
    "Failure",
)
KINDS = {tag: kind for kind, tag in enumerate(TAGS) if tag}

# The key of a piece of the message that is text and no argument.
TEXT = "String"


def section_place(file: str, section: str) -> tuple[str, int, int]:
    """The place of a section, as file, line and column, in which the last two are 0.

    Tools of LLVM open the file and take it for source text. Maps of linkers write places so, and no
    file has such a name.
    """
    return f"{file}:({section})", 0, 0


def parts_of_place(place: str) -> tuple[str, str | None]:
    """The file, and the section if the place is one."""
    file, bracket, section = place.rpartition(":(")
    return (file, section.removesuffix(")")) if bracket else (place, None)


class MalformedRemarks(ValueError):
    """A file that holds no remarks as LLVM writes them; the text names it, the place and why."""
