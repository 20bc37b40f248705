"""The source line that a damaged relocation is about, in a file that could not be read whole."""

from __future__ import annotations

from struct import unpack_from

from pylink.locate.places import set_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic

# System V gABI, chapter 4: e_shoff in the header; sh_offset, sh_info and sh_entsize of a section.
_E_SHOFF = 40
_SHDR_SIZE = 64
_SH_OFFSET = 24
_SH_INFO = 44
_SH_ENTSIZE = 56


def explain_relocation(diagnostic: Diagnostic, image: bytes, section: int, row: int) -> None:
    """Give a record the line of the code that a row of a relocation section would patch."""
    try:
        from pylink.locate.linemap import LineMap  # noqa: PLC0415 -- an extra

        header = unpack_from("<Q", image, _E_SHOFF)[0] + section * _SHDR_SIZE
        (start,) = unpack_from("<Q", image, header + _SH_OFFSET)
        (patched,) = unpack_from("<I", image, header + _SH_INFO)
        (size,) = unpack_from("<Q", image, header + _SH_ENTSIZE)
        (offset,) = unpack_from("<Q", image, start + row * size)
        frames = LineMap(image).frames(patched, offset)
    except Exception:  # no pyelftools, or whatever it raises for a file that is damaged
        return
    if frames and diagnostic.file:
        set_lines(diagnostic, frames, diagnostic.file, None)
