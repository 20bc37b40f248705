"""Call frames of functions with a copy that a later one replaced (sm_100 on).

The plain FDEs come from the mercury ones. A function's first FDE gets the instructions of all its
copies, each at its offset in the code of its own copy, up to the end of the copy that stays. Each
further FDE is replaced by its copy's mercury CIE and FDE, without instructions.
docs/format-notes/family-c-debug.md has the evidence, and how nvlink's offsets differ.

    two copies of F, the second stays     FDE 1 of F: instructions of both copies
                                          FDE 2 of F: its mercury CIE, no instruction

An FDE is named by its offset in the section, a function by its entity.
"""

from __future__ import annotations

from struct import error, pack, unpack_from

from pylink._native.tables import Blob
from pylink.facts import dwarf, sectionkinds
from pylink.facts.records import RELA
from pylink.rowformats import MOVED
from pylink.tables import file_sections, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink._native.debug import Contents, Moved
    from pylink._native.rebuild import RebuildNumbers
    from pylink.phases.results import Merged

MERC_FRAME = ".nv.merc.debug_frame"
R_MERCURY_ADDRESS64 = 0x1003D

CIE_ID = 0xFFFFFFFFFFFFFFFF  # in place of the CIE pointer: the record is a CIE
NO_LIMIT = CIE_ID  # larger than any code offset
# Instructions by the number of their LEB128 operands.
TWO_OPERANDS = (dwarf.CFA_OFFSET_EXTENDED, dwarf.CFA_REGISTER, dwarf.CFA_DEF_CFA)
ONE_OPERAND = (
    dwarf.CFA_RESTORE_EXTENDED,
    dwarf.CFA_UNDEFINED,
    dwarf.CFA_SAME_VALUE,
    dwarf.CFA_DEF_CFA_REGISTER,
    dwarf.CFA_DEF_CFA_OFFSET,
)
NO_OPERAND = (dwarf.CFA_REMEMBER_STATE, dwarf.CFA_RESTORE_STATE)


def merge_frames(
    merged: Merged, contents: Contents, moved: Moved, numbers: RebuildNumbers
) -> tuple[Contents, Moved]:
    """Rewrite a rebuilt .debug_frame; return its contents and MovedRows (offsets of relocations).

    The first FDE of a function with several copies gets the instructions of all its FDEs. Contents
    and rows stay unchanged if no function has two FDEs, or if one FDE cannot be interpreted.
    `numbers` has the number in `merged.rebuilds` of each relocation.
    """
    moves = list(MOVED.iter_unpack(moved))
    piece_of: dict[int, int] = {}  # by FDE: the number of the input section that it comes from
    fdes_of: dict[int, list[int]] = {}  # by entity: FDEs, the last of the copy that stays
    for address, relocation in sorted(moves):
        row = merged.rebuilds[numbers[relocation]]
        piece_of[address - dwarf.FDE_ADDRESS] = row.piece
        fdes_of.setdefault(row.entity, []).append(address - dwarf.FDE_ADDRESS)
    duplicated = {entity: fdes for entity, fdes in fdes_of.items() if len(fdes) > 1}
    if not duplicated:
        return contents, moved
    data = contents.data
    try:
        records = _merge_records(merged, data, piece_of, duplicated)
    except (error, LookupError, ValueError):
        return contents, moved
    new_contents, new_moved = _assemble(data, moves, records)
    return Blob(new_contents), Blob(new_moved)


def _merge_records(
    merged: Merged, contents: bytes, piece_of: dict[int, int], duplicated: dict[int, list[int]]
) -> dict[int, tuple[bytes, bytes]]:
    """Return, by FDE (its offset in `contents`), the CIE and FDE that replace it and its CIE.

    `piece_of` has the number of the input section of each FDE. `duplicated` has the FDEs of each
    function (entity) with several; the last one is of the copy that stays.
    """
    records: dict[int, tuple[bytes, bytes]] = {}
    pieces = {piece_of[fde] for fdes in duplicated.values() for fde in fdes}
    frames = {piece: _mercury_frames(merged, piece) for piece in pieces}
    for entity, fdes in duplicated.items():
        winner = fdes[-1]
        mercury = [frames[piece_of[fde]][entity] for fde in fdes]
        size = unpack_from("<Q", mercury[-1][1], dwarf.FDE_RANGE)[0]  # of the copy that stays
        program: dict[int, list[bytes]] = {}  # instructions by code offset
        for fde, (_, mercury_fde) in zip(fdes, mercury, strict=True):
            plain_rows = list(
                _instructions(_read_record(contents, fde)[dwarf.FDE_INSTRUCTIONS :], 4)
            )
            mercury_rows = list(_instructions(mercury_fde[dwarf.FDE_INSTRUCTIONS :], 1))
            limit = NO_LIMIT if fde == winner else size
            _add_instructions(program, plain_rows, mercury_rows, limit)
        head = _read_record(contents, winner)[: dwarf.FDE_INSTRUCTIONS]
        merged_fde = _pad_record(head + _encode_program(program))
        records[fdes[0]] = (_cie_of(contents, fdes[0]), merged_fde)
        for fde, (cie, mercury_fde) in zip(fdes[1:], mercury[1:], strict=True):
            records[fde] = (cie, _pad_record(mercury_fde[: dwarf.FDE_INSTRUCTIONS] + bytes(1)))
    return records


def _add_instructions(
    program: dict[int, list[bytes]],
    plain_rows: list[tuple[int, bytes]],
    mercury_rows: list[tuple[int, bytes]],
    limit: int,
) -> None:
    """Add the plain instructions up to mercury offset `limit` to `program`.

    Rows are code offset and instruction; b"" is an advance, which adds its offset without an
    instruction. ValueError if the lists do not have equally many rows.
    """
    # A mercury program starts with an advance by 0, which has no counterpart: it is skipped.
    plain = [entry for entry in plain_rows if entry != (0, b"")]
    mercury = [entry for entry in mercury_rows if entry != (0, b"")]
    if not plain and not any(mercury_offset for mercury_offset, _ in mercury):
        plain = mercury  # the plain program omits instructions without an advance
    if len(plain) != len(mercury):
        raise ValueError("the two forms of a frame differ")
    for (plain_offset, instruction), (mercury_offset, _) in zip(plain, mercury, strict=True):
        if mercury_offset > limit:
            return
        instructions = program.setdefault(plain_offset, [])
        if instruction and instruction not in instructions:
            instructions.append(instruction)


def _instructions(data: bytes, unit: int) -> Iterator[tuple[int, bytes]]:
    """Yield (code offset, instruction) of a call frame program; b"" for an advance.

    Advances count in steps of `unit` bytes, the code alignment factor.
    """
    position = code_offset = 0
    while position < len(data):
        start = position
        operation = data[position]
        position += 1
        if operation == dwarf.CFA_ADVANCE_LOC4:
            code_offset += unit * unpack_from("<I", data, position)[0]
            position += 4
            yield code_offset, b""
        elif operation in TWO_OPERANDS or operation in ONE_OPERAND:
            for _ in range(2 if operation in TWO_OPERANDS else 1):
                while data[position] & 0x80:  # another byte of the LEB128 number follows
                    position += 1
                position += 1
            yield code_offset, data[start:position]
        elif operation in NO_OPERAND:
            yield code_offset, data[start:position]
        elif operation:  # 0 is DW_CFA_nop
            raise ValueError("unknown instruction of a call frame")


def _encode_program(program: dict[int, list[bytes]]) -> bytes:
    """Return the bytes of a call frame program, given as instructions by code offset.

    Advances count in steps of 4 bytes.
    """
    encoded = b""
    position = 0
    for code_offset in sorted(program):
        if code_offset > position:
            encoded += pack("<BI", dwarf.CFA_ADVANCE_LOC4, (code_offset - position) // 4)
            position = code_offset
        encoded += b"".join(program[code_offset])
    return encoded


def _pad_record(record: bytes) -> bytes:
    """Pad a record to a multiple of 8 bytes and set its length."""
    record += bytes(-len(record) % 8)
    return record[:4] + pack("<Q", len(record) - dwarf.FDE_POINTER) + record[dwarf.FDE_POINTER :]


def _read_record(contents: bytes, start: int) -> bytes:
    """Return the CIE or FDE at an offset of a section.

    `struct.error` or ValueError if it is truncated: in its head, or after that.
    """
    size = dwarf.FDE_POINTER + unpack_from("<Q", contents, start + 4)[0]
    if start + size > len(contents):
        raise ValueError("a record of a call frame section is truncated")
    return contents[start : start + size]


def _cie_of(contents: bytes, fde: int) -> bytes:
    """Return the CIE that an FDE of a section points to."""
    return _read_record(contents, unpack_from("<Q", contents, fde + dwarf.FDE_POINTER)[0])


def _mercury_frames(merged: Merged, piece: int) -> dict[int, tuple[bytes, bytes]]:
    """Return, by entity, CIE and FDE in the mercury frame section of the file of `piece`.

    `piece` is the number of a plain input section.
    """
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
        pairs = _read_frames(arena[target.offset : target.offset + target.size])
        for offset_of_row in range(section.offset, section.offset + section.size, RELA.size):
            offset, kind, symbol, _ = RELA.unpack_from(arena, offset_of_row)
            if kind == R_MERCURY_ADDRESS64 and offset - dwarf.FDE_ADDRESS in pairs:
                owner = merged.symbol_entity[first_symbol + symbol]
                frames.setdefault(owner, pairs[offset - dwarf.FDE_ADDRESS])
    return frames


def _read_frames(contents: bytes) -> dict[int, tuple[bytes, bytes]]:
    """Return, by the offset of each FDE, the last CIE in front of it, and the FDE.

    The CIE pointer of an input is not used, since its relocation may not have been applied.
    """
    pairs: dict[int, tuple[bytes, bytes]] = {}
    offset = 0
    cie = b""
    while offset < len(contents):
        record = _read_record(contents, offset)
        if unpack_from("<Q", record, dwarf.FDE_POINTER)[0] == CIE_ID:
            cie = record
        elif cie:
            pairs[offset] = cie, record
        offset += len(record)
    return pairs


def _assemble(
    contents: bytes, moves: list[tuple[int, ...]], records: dict[int, tuple[bytes, bytes]]
) -> tuple[bytes, bytes]:
    """Lay the records out again, each FDE after its CIE; return contents and MovedRows.

    `moves` has the offset of the address field in each FDE, and the number of its relocation.
    `records` has the CIE and the FDE that replace some FDEs, by the offset of the old FDE.
    """
    data = bytearray()
    new_addresses: dict[int, int] = {}  # offsets of address fields, by old offset
    offset = cie_offset = 0
    cie = b""
    while offset < len(contents):
        record = _read_record(contents, offset)
        if unpack_from("<Q", record, dwarf.FDE_POINTER)[0] == CIE_ID:
            cie = record
            cie_offset = -1  # not written yet: its FDEs may be replaced
        else:
            fde_cie, fde = records.get(offset, (cie, record))
            if cie_offset < 0 or offset in records:
                cie_offset = len(data)
                data += fde_cie
            new_addresses[offset + dwarf.FDE_ADDRESS] = len(data) + dwarf.FDE_ADDRESS
            data += fde[: dwarf.FDE_POINTER] + pack("<Q", cie_offset) + fde[dwarf.FDE_ADDRESS :]
            if offset in records:
                cie_offset = -1  # the next FDE needs a CIE of its own
        offset += len(record)
    moved = b"".join(
        MOVED.pack(new_addresses[address], relocation) for address, relocation in moves
    )
    return bytes(data), moved
