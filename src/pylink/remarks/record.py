"""One remark: a decision of a pass on one function or section, and the reason.

A pass builds it piece by piece; the pieces joined are the message::

    Remark(PASSED, "merc-dedup", "SectionFolded", ".text.k", file="a.cubin", hotness=512)
        .text("folded ").arg("Bytes", 512).text(" bytes into '").arg("Reference", "b.cubin")
        .text("'")

The class itself is native, see pylink/_native/remarkstream.pyi. The model is LLVM's, so that LLVM's
tools can read the files.
"""

from __future__ import annotations

from pylink._native.remarkstream import Remark

__all__ = [
    "ANALYSIS", "ANALYSIS_ALIASING", "ANALYSIS_FP_COMMUTE", "FAILURE", "KINDS", "MISSED", "PASSED",
    "TAGS", "TEXT", "MalformedRemarks", "Remark", "parts_of_place", "section_place",
]  # fmt: skip

# Kinds, numbered as in LLVM's bitstream.
PASSED = 1
MISSED = 2
ANALYSIS = 3
ANALYSIS_FP_COMMUTE = 4
ANALYSIS_ALIASING = 5
FAILURE = 6

# The tag of each kind in YAML, without the `!`; there is no kind 0.
TAGS = ("", "Passed", "Missed", "Analysis", "AnalysisFPCommute", "AnalysisAliasing", "Failure")
KINDS = {tag: kind for kind, tag in enumerate(TAGS) if tag}

# The key of a piece of the message that is text, not an argument.
TEXT = "String"


def section_place(file: str, section: str) -> tuple[str, int, int]:
    """Return the location of a section as file, line and column; line and column are 0.

    The file is written as in linker maps, such as `a.cubin:(.text.f)`. No file has such a name, so
    LLVM's tools do not open a binary as source text.
    """
    return f"{file}:({section})", 0, 0


def parts_of_place(place: str) -> tuple[str, str | None]:
    """Split the file of a location into its name and the section that `section_place` added.

    The section is None for a location in source text.
    """
    file, bracket, section = place.rpartition(":(")
    return (file, section.removesuffix(")")) if bracket else (place, None)


class MalformedRemarks(ValueError):
    """A file that is not in LLVM's format of remarks; the text has name, position and reason."""
