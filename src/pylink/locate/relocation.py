"""The source line that a damaged relocation is about, in a file that could not be read whole."""

from __future__ import annotations

from pylink.locate.places import set_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic
    from pylink.diagnostics.sourcefiles import SourceFiles


def explain_relocation(
    diagnostic: Diagnostic, image: bytes, section: int, row: int, sources: SourceFiles
) -> None:
    """Give a record the line of the code that a row of a relocation section would patch."""
    try:
        from pylink.locate.linemap import LineMap

        frames = LineMap(image).frames_of_relocation(section, row)
    except Exception:  # no pyelftools, or whatever it raises for a file that is damaged
        return
    if frames and diagnostic.file:
        set_lines(diagnostic, frames, diagnostic.file, None, sources)
