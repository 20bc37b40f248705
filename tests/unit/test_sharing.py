"""What native code does for links that share inputs, beside references in Python."""

from __future__ import annotations

import random
import struct

import pytest

from pylink._native import sharing
from pylink.diagnostics import Sink
from pylink.facts.inputkinds import CUBIN
from pylink.facts.picknumbers import PickOrigin, PickState
from pylink.inputs.picks import Pick
from pylink.options.model import Input
from pylink.options.plan import OutputPlan
from pylink.phases.sharing import SharedInputs
from pylink.rowformats import PICK

STORED, LZ4, ZSTD = 0, 1, 2


def row(
    arena: int, offset: int, *, codec: int = ZSTD, state: int = PickState.GOOD, size: int = 40
) -> bytes:
    return PICK.pack(
        0, arena, 0, 0, 90, CUBIN, codec, state, PickOrigin.HOST, 0, offset, offset, size, size, 100
    )


def homes(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def place(number: int, offset: int) -> int:
    return number << 48 | offset


@pytest.mark.parametrize("seed", range(20))
def test_compact_copies_files_into_an_arena_of_their_own(seed: int) -> None:
    choose = random.Random(seed)
    arena = choose.randbytes(choose.choice([100, 10_000, 12 << 20]))
    files = []
    for _ in range(choose.randrange(20)):
        start = choose.randrange(len(arena))
        files.append((start, choose.randrange((len(arena) - start) // 8 + 1)))
    extents = b"".join(struct.pack("<QQ", *file) for file in files)
    made, rows = sharing.compact(arena, extents)
    padded = sum(-(-size // 16) * 16 for _, size in files)
    if padded > len(arena) // 2:
        assert made is arena
        assert rows is extents
        return
    assert len(made) == padded
    at = 0
    for (start, size), (offset, kept) in zip(files, struct.iter_unpack("<QQ", rows), strict=True):
        assert (offset, kept) == (at, size)
        end = at + -(-size // 16) * 16
        assert made[at:end] == arena[start : start + size].ljust(end - at, b"\0")
        at = end


def test_compact_refuses_a_file_outside_the_arena() -> None:
    with pytest.raises(IndexError):
        sharing.compact(b"abc", struct.pack("<QQ", 1, 3))


def test_only_compressed_payloads_of_shared_arenas_have_places() -> None:
    rows = [
        row(0, 8),
        row(1, 16),  # an arena of the link's own
        row(2, 24, codec=LZ4),
        row(0, 32, codec=STORED),
        row(0, 48, state=PickState.TOO_LARGE),
        row(-1, 64),  # with the caller
        row(3, 72),  # an arena that nobody told of
    ]
    assert sharing.list_packed(b"".join(rows), homes(5, -1, 0)) == [place(5, 8), place(0, 24)]


def test_payloads_are_found_again_where_they_were_put() -> None:
    known: dict[int, int] = {}
    picks = b"".join([row(1, 8), row(1, 16), row(0, 24), row(1, 16)])
    numbers = homes(-1, 3)
    taken, missing = sharing.replace_packed(picks, numbers, 2, known, None)
    assert taken == picks
    assert missing == b"".join([row(1, 8), row(1, 16), row(1, 16)])
    # The second could not be decompressed.
    extents = struct.pack("<6Q", 0, 100, 112, 0, 112, 0)
    sharing.record_unpacked(missing, numbers, extents, 4, known)
    assert known == {place(3, 8): place(4, 0)}
    taken, missing = sharing.replace_packed(picks, numbers, 2, known, None)
    first = Pick(taken, 0)
    assert (first.arena, first.offset, first.size, first.full_size) == (6, 0, 100, 100)
    assert first.codec == STORED
    assert (first.embedded, first.kind, first.sm) == (PickOrigin.HOST, CUBIN, 90)
    assert taken[PICK.size :] == picks[PICK.size :]
    assert missing == b"".join([row(1, 16), row(1, 16)])


def test_only_what_is_wanted_is_missing() -> None:
    picks = row(0, 8) + row(0, 16)
    assert sharing.replace_packed(picks, homes(0), 1, {}, {place(0, 16)})[1] == row(0, 16)
    assert sharing.replace_packed(picks, homes(0), 1, {}, frozenset())[1] == b""


def test_contents_are_never_taken_for_others_that_were_where_they_are() -> None:
    """Contents go by what object they are; those of inputs that nobody has any more still do."""
    shared, sink = SharedInputs(), Sink()
    inputs = [Input("first", b"first contents %d" % number) for number in range(200)]
    shared.add(inputs, OutputPlan({}, (), sink), sink)
    del inputs
    others = [Input("second", b"other contents %d" % number) for number in range(400)]
    assert [source for source in others if shared._find_batches([source]) is not None] == []
    kept = Input("third", b"third contents")
    shared.add([kept], OutputPlan({}, (), sink), sink)
    (run,) = shared._find_batches([kept]) or []
    assert run[0].data == b"third contents"


def test_what_was_learnt_has_an_extent_for_each_payload() -> None:
    with pytest.raises(ValueError, match="one extent per payload"):
        sharing.record_unpacked(row(0, 8), homes(0), b"", 0, {})
