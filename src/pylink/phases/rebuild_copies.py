"""Call frames of functions that had a copy which a later one replaced (sm_100 on).

The plain FDEs come from the mercury ones: the first of a function takes the instructions of all
its copies, at machine-code offsets of the copy that stays, and each further one is the copy's
mercury CIE and an FDE without instructions. docs/format-notes/family-c-debug.md has the evidence.
"""

from __future__ import annotations

from struct import error, pack, unpack_from

from pylink.facts import sectionkinds
from pylink.facts.records import RELA
from pylink.rowformats import MOVED
from pylink.tables import file_sections, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.phases.results import Merged

MERC_FRAME = ".nv.merc.debug_frame"
R_MERCURY_ADDRESS64 = 0x1003D

CIE_POINTER = 12  # of a record, after the marker of 64-bit DWARF and the length
ADDRESS = 20
INSTRUCTIONS = 36
NO_CIE = 0xFFFFFFFFFFFFFFFF
ADVANCE_LOC4 = 4
TWO_OPERANDS = (0x05, 0x09, 0x0C)
ONE_OPERAND = (0x06, 0x07, 0x08, 0x0D, 0x0E)


def merge_frames(
    merged: Merged, contents: bytes, moved: bytes, numbers: bytes
) -> tuple[bytes, bytes]:
    """Rewrite a rebuilt .debug_frame: (contents, moved rows).

    Unchanged when no function has two FDEs, or when an instruction is unknown.
    """
    moves = list(MOVED.iter_unpack(moved))
    source: dict[int, int] = {}  # FDE to input section
    copies: dict[int, list[int]] = {}  # entity to its FDEs, the last is that of the copy that stays
    for address, place in sorted(moves):
        number = unpack_from("<i", numbers, 4 * place)[0]
        row = merged.rebuilds[number]
        source[address - ADDRESS] = row.piece
        copies.setdefault(row.entity, []).append(address - ADDRESS)
    several = {entity: fdes for entity, fdes in copies.items() if len(fdes) > 1}
    if not several:
        return contents, moved
    try:
        records = _replacements(merged, contents, source, several)
    except (error, LookupError, ValueError):
        return contents, moved
    return _assemble(contents, moves, records)


def _replacements(
    merged: Merged,
    contents: bytes,
    source: dict[int, int],
    several: dict[int, list[int]],
) -> dict[int, tuple[bytes, bytes]]:
    """CIE and FDE that take the place of an FDE and the CIE it points to."""
    records: dict[int, tuple[bytes, bytes]] = {}
    pieces = {source[fde] for fdes in several.values() for fde in fdes}
    frames = {piece: _mercury_frames(merged, piece) for piece in pieces}
    for entity, fdes in several.items():
        winner = fdes[-1]
        mercury = [frames[source[fde]][entity] for fde in fdes]
        limit = unpack_from("<Q", mercury[-1][1], ADDRESS + 8)[0]
        program: dict[int, list[bytes]] = {}
        for fde, (_, twin) in zip(fdes, mercury, strict=True):
            places = list(_instructions(_record(contents, fde)[INSTRUCTIONS:], 4))
            origins = list(_instructions(twin[INSTRUCTIONS:], 1))
            _add(program, places, origins, NO_CIE if fde == winner else limit)
        first = _record(contents, winner)[:INSTRUCTIONS]
        records[fdes[0]] = (_cie_of(contents, fdes[0]), _finish(first + _encode(program)))
        for fde, (cie, twin) in zip(fdes[1:], mercury[1:], strict=True):
            records[fde] = (cie, _finish(twin[:INSTRUCTIONS] + bytes(1)))
    return records


def _add(
    program: dict[int, list[bytes]],
    places: list[tuple[int, bytes]],
    origins: list[tuple[int, bytes]],
    limit: int,
) -> None:
    """Enter instructions that stand before mercury offset `limit`; an empty one is an advance."""
    # The mercury program opens with an advance by nothing.
    plain = [entry for entry in places if entry != (0, b"")]
    mercury = [entry for entry in origins if entry != (0, b"")]
    if not plain and not any(origin for origin, _ in mercury):
        plain = mercury  # omitted from the plain program, which they would leave without an advance
    if len(plain) != len(mercury):
        raise ValueError("the two forms of a frame differ")
    for (place, instruction), (origin, _) in zip(plain, mercury, strict=True):
        if origin > limit:
            return
        rows = program.setdefault(place, [])
        if instruction and instruction not in rows:
            rows.append(instruction)


def _instructions(data: bytes, unit: int) -> Iterator[tuple[int, bytes]]:
    """(offset in the code, instruction) of a call frame program; b"" for an advance."""
    at = place = 0
    while at < len(data):
        start = at
        operation = data[at]
        at += 1
        if operation == ADVANCE_LOC4:
            place += unit * unpack_from("<I", data, at)[0]
            at += 4
            yield place, b""
        elif operation in TWO_OPERANDS or operation in ONE_OPERAND:
            for _ in range(2 if operation in TWO_OPERANDS else 1):
                while data[at] & 0x80:
                    at += 1
                at += 1
            yield place, data[start:at]
        elif operation in (0x0A, 0x0B):
            yield place, data[start:at]
        elif operation:
            raise ValueError("unknown instruction of a call frame")


def _encode(program: dict[int, list[bytes]]) -> bytes:
    encoded = b""
    before = 0
    for place in sorted(program):
        if place > before:
            encoded += pack("<BI", ADVANCE_LOC4, (place - before) // 4)
            before = place
        encoded += b"".join(program[place])
    return encoded


def _finish(record: bytes) -> bytes:
    """Pad to 8 bytes and enter the length."""
    record += bytes(-len(record) % 8)
    return record[:4] + pack("<Q", len(record) - CIE_POINTER) + record[CIE_POINTER:]


def _record(contents: bytes, start: int) -> bytes:
    size = CIE_POINTER + unpack_from("<Q", contents, start + 4)[0]
    if start + size > len(contents):
        raise ValueError("a record of a call frame section is cut off")
    return contents[start : start + size]


def _cie_of(contents: bytes, fde: int) -> bytes:
    return _record(contents, unpack_from("<Q", contents, fde + CIE_POINTER)[0])


def _mercury_frames(merged: Merged, piece: int) -> dict[int, tuple[bytes, bytes]]:
    """CIE and FDE of each function in the mercury twin of input section `piece`, by entity."""
    objects = merged.objects
    arena = objects.arena
    file = objects.sections[piece].file
    first_symbol = objects.files[file].first_symbol
    frames: dict[int, tuple[bytes, bytes]] = {}
    for number in file_sections(objects, file):
        section = objects.sections[number]
        if section.kind != sectionkinds.MERC_RELA or section.target < 0:
            continue
        if section_name(objects, section.target) != MERC_FRAME:
            continue
        target = objects.sections[section.target]
        pairs = _pairs(arena[target.offset : target.offset + target.size])
        for at in range(section.offset, section.offset + section.size, RELA.size):
            offset, kind, symbol, _ = RELA.unpack_from(arena, at)
            if kind == R_MERCURY_ADDRESS64 and offset - ADDRESS in pairs:
                owner = merged.symbol_entity[first_symbol + symbol]
                frames.setdefault(owner, pairs[offset - ADDRESS])
    return frames


def _pairs(contents: bytes) -> dict[int, tuple[bytes, bytes]]:
    """Each FDE and the CIE before it, by the FDE's offset; its pointer may be a relocation's."""
    pairs: dict[int, tuple[bytes, bytes]] = {}
    at = 0
    cie = b""
    while at < len(contents):
        record = _record(contents, at)
        if unpack_from("<Q", record, CIE_POINTER)[0] == NO_CIE:
            cie = record
        elif cie:
            pairs[at] = cie, record
        at += len(record)
    return pairs


def _assemble(
    contents: bytes, moves: list[tuple[int, ...]], records: dict[int, tuple[bytes, bytes]]
) -> tuple[bytes, bytes]:
    """Lay the records out anew, each FDE after its CIE."""
    data = bytearray()
    places: dict[int, int] = {}
    at = written = 0
    cie = b""
    while at < len(contents):
        record = _record(contents, at)
        if unpack_from("<Q", record, CIE_POINTER)[0] == NO_CIE:
            cie = record
            written = -1
        else:
            own_cie, fde = records.get(at, (cie, record))
            if written < 0 or at in records:
                written = len(data)
                data += own_cie
            places[at + ADDRESS] = len(data) + ADDRESS
            data += fde[:CIE_POINTER] + pack("<Q", written) + fde[ADDRESS:]
            if at in records:
                written = -1
        at += len(record)
    moved = b"".join(MOVED.pack(places[address], row) for address, row in moves)
    return bytes(data), moved
