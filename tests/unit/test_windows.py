"""Contents of any length and distance, window by window, against bytes that are put one by one."""

from __future__ import annotations

import errno
import resource
import tempfile
from random import Random

import pytest
from helpers.contents import Piece, place, write_pieces
from helpers.relocs_reference import FIELDS, Patch, pack, patch_reference

from pylink._native import image as native_image
from pylink._native.image import Canvas
from pylink._native.tables import Patches

WINDOW = 1 << 20
SMALL = range(1, 200)
LENGTHS = (range(1000, 60_000), range(WINDOW - 8, WINDOW + 9), range(WINDOW, 4 * WINDOW))
GAPS = (range(1), range(64), range(4090, 4103), range(2 * WINDOW))
FITTING = [number for number, (_, first, bits) in FIELDS.items() if first + bits <= 64]


def draw_pieces(rng: Random) -> list[Piece]:
    """Pieces in the order of the file; where two share bytes, they are the same in both."""
    pieces: list[Piece] = []
    image = bytearray(64)
    for _ in range(rng.randrange(2, 120)):
        at = len(image)
        length = rng.choice(rng.choice(LENGTHS) if rng.random() < 0.08 else SMALL)
        if pieces and rng.random() < (0.4 if len(pieces[-1].data) > WINDOW else 0.1):
            at = rng.randrange(max(pieces[-1].offset, at - rng.choice([16, 4 * WINDOW])), at)
        elif rng.random() < 0.3:
            at += rng.choice(rng.choice(GAPS))
        data = bytes(image[at : at + length])
        data += rng.randbytes(length - len(data))
        image.extend(bytes(max(0, at - len(image))))
        image[at : at + length] = data
        pieces.append(Piece(at, data, is_made=rng.random() < 0.2))
    return pieces


def draw_patches(rng: Random, pieces: list[Piece]) -> list[Patch]:
    """In some of the pieces, in any order; many fields end where their piece does."""
    patches = []
    share = rng.choice([0, 0.3, 0.8])
    for piece in pieces:
        if rng.random() >= share:
            continue
        for _ in range(rng.randrange(4)):
            type_ = rng.choice(FITTING)
            _, first, bits = FIELDS[type_]
            room = len(piece.data) - (first + bits + 7) // 8
            if room >= 0:
                at = piece.offset + rng.choice([0, room, rng.randrange(room + 1)])
                patches.append((at, rng.getrandbits(64), type_, rng.randrange(3), rng.randrange(2)))
    rng.shuffle(patches)
    return patches


def drawn(seed: int) -> tuple[list[Piece], int, list[Patch]]:
    """Pieces, the size of the output, and patches."""
    rng = Random(seed)
    pieces = draw_pieces(rng)
    size = max(piece.offset + len(piece.data) for piece in pieces) + rng.choice([0, 1, 5000])
    return pieces, size, draw_patches(rng, pieces)


def reference(pieces: list[Piece], size: int, patches: list[Patch]) -> bytes:
    image = bytearray(size + 8)  # fields are in words that may end behind the last byte
    for piece in pieces:
        image[piece.offset : piece.offset + len(piece.data)] = piece.data
    patch_reference(image, patches)
    assert image[size:] == bytes(8)
    return bytes(image[:size])


def over_ones(pieces: list[Piece], size: int, patches: Patches) -> bytes:
    """The output in memory that held something else before."""
    canvas = Canvas(size)
    for placed in (place([Piece(0, b"\xff" * size)], size), place(pieces, size)):
        assert native_image.write_contents(canvas, placed, patches) == -1
    return canvas.image


@pytest.mark.parametrize("seed", range(24))
def test_windows_agree_with_reference(seed: int) -> None:
    pieces, size, patches = drawn(seed)
    expected = reference(pieces, size, patches)
    if seed % 3 == 0:  # an order that is not that of the file
        Random(seed).shuffle(pieces)
    # Not assert ==, which would explain the difference of megabytes.
    for found in (
        over_ones(pieces, size, pack(patches)),
        write_pieces(pieces, size, pack(patches), file=True),
    ):
        different = next((at for at in range(0, size, 512) if differs(found, expected, at)), None)
        assert (len(found), different) == (size, None)


def differs(found: bytes, expected: bytes, at: int) -> bool:
    return found[at : at + 512] != expected[at : at + 512]


def test_the_shapes_that_windows_meet_are_drawn() -> None:
    """Long pieces alone and with others in them, patched and not; words that pass an end."""
    shared = inside = patched = plain = ends = threads = 0
    for seed in range(24):
        pieces, _, patches = drawn(seed)
        starts = {patch[0] for patch in patches}
        threads += sum(len(piece.data) for piece in pieces) >= 4 * WINDOW
        for piece, other in zip(pieces, [*pieces[1:], Piece(1 << 40, b"")], strict=True):
            end, other_end = piece.offset + len(piece.data), other.offset + len(other.data)
            ends += any(end - 8 < start < end for start in starts)
            if len(piece.data) <= WINDOW:
                continue
            within = any(piece.offset <= start < max(end, other_end) for start in starts)
            patched += within
            shared += not within and other.offset < end < other_end
            inside += not within and other.offset < end and other_end <= end
            plain += not within and other.offset >= end
    assert min(shared, inside, patched, plain, ends, threads, 24 - threads) > 0


def test_nothing_is_an_output_as_well() -> None:
    assert over_ones([], 5000, Patches()) == bytes(5000)
    assert write_pieces([], 5000, Patches(), file=True) == bytes(5000)


def test_a_file_that_may_not_have_all_of_it() -> None:
    """A limit that comes after room was taken is met in the middle of a window."""
    size, limit = 12 * WINDOW, 6 * WINDOW + 100
    pieces = [Piece(at, bytes([at >> 16]) * 65536) for at in range(0, size, 65536)]
    placed = place(pieces, size)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with tempfile.TemporaryFile() as stream:
        canvas = Canvas.on_file(stream.fileno(), size)
        assert canvas is not None
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large") as caught:
                native_image.write_contents(canvas, placed, Patches())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.errno == errno.EFBIG
