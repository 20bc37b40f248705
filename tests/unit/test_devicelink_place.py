"""Links of a step that leave stored code where it is, beside links that copy what they take."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

import pylink
from pylink._native import payloads
from pylink.facts.inputkinds import CUBIN
from pylink.facts.picknumbers import PickOrigin, PickState
from pylink.phases import sharing
from pylink.rowformats import PICK

GOLDEN = Path(__file__).parents[1] / "golden"
ARCHS = ["sm_80", "sm_100"]
STORED, ZSTD = 0, 2
ELF = b"\x7fELF"


def pick(
    arena: int,
    offset: int,
    size: int,
    *,
    codec: int = STORED,
    state: int = PickState.GOOD,
    made: int = 0,
) -> bytes:
    place = offset, offset, size, size, made or size
    return PICK.pack(0, arena, 0, 0, 90, CUBIN, codec, state, PickOrigin.HOST, 0, *place)


def hosted(number: int, *entries: bytes) -> bytes:
    ids = ("__nv_module_id", f"_{number:08x}_4_m{number}_cu\0".encode())
    return host_object([("__nv_relfatbin", container(*entries)), SEGMENT, ids])


def objects(case: str, mode: str) -> list[tuple[str, bytes]]:
    """Objects with code of both architectures; `mode` is how that for sm_80 is compressed."""
    made = []
    for number in range(2):
        old = (GOLDEN / "80" / "weak" / f"m{number}.cubin").read_bytes()
        new = (GOLDEN / "100" / case / f"m{number}.cubin").read_bytes()
        made.append((f"m{number}.o", hosted(number, entry(old, 80, mode=mode), entry(new, 100))))
    return made


def step(
    inputs: list[tuple[str, bytes]], patch: pytest.MonkeyPatch, large: int, *, debug: bool
) -> pylink.DlinkResult:
    patch.setattr(sharing, "STORED_IN_PLACE", large)
    return pylink.dlink(inputs, archs=ARCHS, cudadevrt=False, debug=debug)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("mode", ["none", "zstd"])
@pytest.mark.parametrize("case", ["calls", "debug"])
def test_results_are_those_of_links_that_copy(
    monkeypatch: pytest.MonkeyPatch, case: str, mode: str, *, debug: bool
) -> None:
    """With -G and in kernels with error barriers code changes: the arena grows by that."""
    inputs = objects(case, mode)
    in_place: list[object] = []
    gather = payloads.gather_in_place

    def watch(picks: bytes, arenas: list[bytes], tail: payloads.Tail) -> object:
        in_place.append(gather(picks, arenas, tail))
        return in_place[-1]

    monkeypatch.setattr(payloads, "gather_in_place", watch)
    copied = step(inputs, monkeypatch, 1 << 60, debug=debug)
    assert in_place == []
    placed = step(inputs, monkeypatch, 0, debug=debug)
    assert len(in_place) == len(ARCHS)
    assert None not in in_place
    assert placed.data == copied.data
    assert placed.cubins == copied.cubins


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_gathered_in_place_is_what_is_copied(seed: int, *, mixed: bool) -> None:
    """Files that lie elsewhere come last, as libraries do, or are `mixed` with the others."""
    choose = random.Random(seed)
    files = [ELF + choose.randbytes(choose.randrange(4, 200)) for _ in range(12)]
    arena, other, picks = b"", b"", b""
    for number, data in enumerate(files):
        if choose.random() < 0.5 if mixed else number < 8:
            arena += bytes(-len(arena) % 8)
            picks += pick(0, len(arena), len(data))
            arena += data
        else:
            picks += pick(1, len(other), len(data))
            other += data
    whole = arena + bytes(4096)
    tail = payloads.Tail(whole, 4096)
    made = [payloads.gather_in_place(picks, [whole, other], tail) for _ in range(2)]
    assert mixed or None not in made
    copies = payloads.gather(picks, [whole, other], lambda number: b"")
    for found in (copies, *made):
        if found is not None:
            rows = memoryview(found[1]).cast("Q").tolist()
            places = zip(rows[::2], rows[1::2], strict=True)
            assert [found[0][at : at + size] for at, size in places] == files
            assert found is copies or found[0] is whole


def test_what_cannot_stay_is_left_to_be_copied() -> None:
    body = ELF + bytes(28)
    arena = body * 4 + bytes(64)

    def gathered(*rows: bytes) -> object:
        return payloads.gather_in_place(b"".join(rows), [arena, body], payloads.Tail(arena, 64))

    assert gathered(pick(0, 0, 32), pick(0, 64, 32)) is not None
    wrong = {
        "twice": [pick(0, 0, 32), pick(0, 0, 32)],
        "the other way round": [pick(0, 64, 32), pick(0, 0, 32)],
        "not at a multiple of 8": [pick(0, 4, 20)],
        "with the caller": [pick(-1, 0, 32)],
        "too large to unpack": [pick(0, 0, 32, state=PickState.TOO_LARGE)],
        "not an ELF file": [pick(0, 8, 16)],
        "not a frame": [pick(1, 0, 32, codec=ZSTD, made=40)],
        "no room": [pick(1, 0, 32), pick(1, 0, 32), pick(1, 0, 32)],
        "lies about its size": [pick(1, 0, 32, codec=STORED, made=40)],
    }
    assert [name for name, rows in wrong.items() if gathered(*rows) is not None] == []
    with pytest.raises(ValueError, match="outside"):
        gathered(pick(0, 1000, 32))
    with pytest.raises(IndexError):
        gathered(pick(2, 0, 32))


def test_plain_files_may_be_anything() -> None:
    row = PICK.pack(
        0, 0, 0, 0, 0, CUBIN, STORED, PickState.GOOD, PickOrigin.FILE, 0, 8, 8, 16, 16, 16
    )
    assert payloads.gather_in_place(row, [bytes(32)], payloads.Tail(bytes(32), 0)) is None
    arena = bytes(32)
    assert payloads.gather_in_place(row, [arena], payloads.Tail(arena, 0)) is not None
    with pytest.raises(ValueError, match="tail"):
        payloads.Tail(arena, 33)
