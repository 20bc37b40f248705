"""Writes the contents of an output with the native function that links use."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from helpers.tables import merged, objects, table

from pylink._native import image as native_image
from pylink._native import relocs
from pylink._native.image import Canvas
from pylink._native.results import PlacedTables
from pylink._native.tables import FilePlaces, Indices, Numbers, Outs, Patches, Spans, Values
from pylink.facts import sectionkinds


class Piece(NamedTuple):
    """Bytes at an offset of the output, which are a section of their own."""

    offset: int
    data: bytes
    is_made: bool = False  # whether the link made them; else an input contains them


def place(pieces: Sequence[Piece], size: int) -> PlacedTables:
    """Return tables of an output of `size` bytes with these pieces, in the order of the file."""
    arena, sections, out_of = b"", [], []
    for number, piece in enumerate(pieces):
        if not piece.is_made:
            sections.append({"offset": len(arena), "size": len(piece.data)})
            out_of.append(number)
            arena += piece.data
    linked_tables = merged(
        objects(arena, sections=sections),
        out_of=table(Numbers, out_of),
        base=table(Values, [0] * len(sections)),
    )
    placed = PlacedTables(
        linked_tables,
        outs=table(Outs, [{"kind": sectionkinds.TEXT} for _ in pieces]),
        places=table(
            FilePlaces,
            [
                {"offset": piece.offset, "size": len(piece.data), "contents": piece.is_made}
                for piece in pieces
            ],
        ),
        section_order=table(Numbers, range(len(pieces))),
        section_index=table(Indices, range(1, len(pieces) + 1)),
    )
    placed.size = size
    for number, piece in enumerate(pieces):
        if piece.is_made:
            placed.add(piece.data, Spans.whole(number, len(piece.data)))
    return placed


def write_pieces(
    pieces: Sequence[Piece], size: int, patches: Patches, *, file: bool = False
) -> bytes:
    """Return the bytes of the output, written to memory or, with `file`, to a file."""
    placed = place(pieces, size)
    if not file:
        canvas = Canvas(size)
        assert native_image.write_contents(canvas, placed, patches) == -1
        return canvas.image
    with tempfile.TemporaryFile() as stream:
        canvas_ = Canvas.on_file(stream.fileno(), size)
        assert canvas_ is not None
        assert native_image.write_contents(canvas_, placed, patches) == -1
        return os.pread(stream.fileno(), size + 1, 0)


def patched(data: bytes, patches: Patches) -> tuple[int, bytes]:
    """Return the number of the first patch that is refused, or -1, and the patched bytes."""
    bad = relocs.find_unfit(patches, len(data))
    return bad, data if bad >= 0 else write_pieces([Piece(0, data)], len(data), patches)
