"""Finds the source line of a damaged relocation, in a file that could not be read."""

from __future__ import annotations

from pylink.locate.places import set_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic
    from pylink.diagnostics.sourcefiles import SourceFiles


def explain_relocation(
    diagnostic: Diagnostic, image: bytes, section: int, row: int, sources: SourceFiles
) -> None:
    """Set the line of a diagnostic to the code that a row of a relocation section would patch."""
    try:
        from pylink.locate.linemap import LineMap

        frames = LineMap(image).frames_of_relocation(section, row)
    except Exception:  # no pyelftools, or any exception that it raises for a damaged file
        return
    if frames and diagnostic.file:
        set_lines(diagnostic, frames, diagnostic.file, None, sources)
