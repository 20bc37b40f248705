"""A naive reference of the rebuild of debug data from sm_100 on.

From sm_100 on nvlink does not concatenate four plain debug sections, but rebuilds them.
Each function here states one rule and takes and returns the packed tables of
``pylink._native.debug``, whose stub defines the rows; all numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

PIECE = struct.Struct("<QQQ")  # offset, size, count
RELOC = struct.Struct("<QII")  # r_offset, target, outcome
PATCH = struct.Struct("<QQ")  # r_offset, value
MOVED = struct.Struct("<QQ")  # r_offset, row
UNIT = struct.Struct("<QQQ")  # piece, start, base

# Outcomes of relocations: the function is in the output, is not, or lost to another definition of
# its name; or the symbol is not a function.
LIVE, DEAD, OVERRIDDEN, OTHER = range(4)

SET_ADDRESS = bytes.fromhex("00 09 02")  # extended opcode, its length, DW_LNE_set_address
END_SEQUENCE = bytes.fromhex("00 01 01")
SET_ADDRESS_PREFIX = len(SET_ADDRESS)
SEQUENCE = SET_ADDRESS_PREFIX + 8  # the shortest: nothing but the address
CIE_ID = 0xFFFFFFFFFFFFFFFF
FDE_ADDRESS = 20  # 4 escape, 8 length, 8 CIE pointer


class Piece(NamedTuple):
    """The contents of one input's section, and its relocation rows with their numbers."""

    data: bytes
    rows: list[tuple[int, tuple[int, ...]]]


def read_pieces(arena: bytes, pieces: bytes, table: bytes, row: struct.Struct) -> list[Piece]:
    """Cut the arena, the bytes of all inputs, into pieces, each with its numbered rows of `table`.

    ``pieces`` has offset, size and number of rows of each; ``row`` is the format of a row.
    """
    rows = list(enumerate(row.iter_unpack(table)))
    cut = []
    for offset, size, count in PIECE.iter_unpack(pieces):
        if offset > len(arena) or size > len(arena) - offset:
            raise ValueError("piece runs past the arena")
        if count > len(rows):
            raise ValueError("pieces count more rows than there are")
        cut.append(Piece(arena[offset : offset + size], rows[:count]))
        rows = rows[count:]
    if rows:
        raise ValueError("rows belong to no piece")
    return cut


def line_units(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, program start and end of each unit of a line section."""
    start = 0
    while start < len(data):
        if len(data) - start < 10:
            raise ValueError(f"line unit at {start:#x} is cut off")
        length, version, header = struct.unpack_from("<IHI", data, start)
        if length >= 0xFFFFFFF0:
            raise ValueError(f"line unit at {start:#x} has a 64-bit length")
        if length < 6 or length > len(data) - start - 4:
            raise ValueError(f"line unit at {start:#x} runs past the section")
        if not 2 <= version <= 4:
            raise ValueError(f"line unit at {start:#x} has DWARF version {version}")
        if header > length - 6:
            raise ValueError(f"line header at {start:#x} runs past its unit")
        yield start, start + 10 + header, start + 4 + length
        start += 4 + length


def rebuild_line(
    arena: bytes,
    pieces: bytes,
    relocs: bytes,
    headers: bytes = b"",
    patches: bytes = b"",
    ended: bool = False,
) -> tuple[bytes, bytes, bytes]:
    """Rebuild .debug_line or .nv_debug_line_sass: live sequences by output symbol index.

    A sequence starts at the extended opcode that holds a set-address relocation and ends
    where the next one starts. Header bytes stay, apart from the fields for which `patches` has
    relocations of the mercury section, whose pieces are `headers`. With `ended` a program that
    keeps no sequence gets an end_sequence opcode.
    """
    out = bytearray()
    moved = bytearray()
    moved_units = bytearray()
    twins = read_pieces(arena, headers, patches, PATCH) if headers else None
    for number, piece in enumerate(read_pieces(arena, pieces, relocs, RELOC)):
        units = list(line_units(piece.data))
        bases = []
        rows = function_rows(piece)
        for start, program, end in units:
            bases.append(len(out))
            moved_units += UNIT.pack(number, start, len(out))
            piece_rows = [row for row in rows if start <= row[1][0] < end]
            rows = rows[len(piece_rows) :]
            cuts = [r_offset - SET_ADDRESS_PREFIX for _, (r_offset, _, _) in piece_rows]
            bounds = [*cuts, end]
            out += piece.data[start : bounds[0]]
            sequences = []
            for cut, stop, (row, (_, target, outcome)) in zip(
                cuts, bounds[1:], piece_rows, strict=True
            ):
                opcode = piece.data[cut : cut + SET_ADDRESS_PREFIX]
                if cut < program or stop - cut < SEQUENCE or opcode != SET_ADDRESS:
                    raise ValueError(f"no set-address opcode at {cut:#x}")
                if outcome == LIVE:
                    sequences.append((target, cut, stop, row))
            for _, cut, stop, row in sorted(sequences):
                moved += MOVED.pack(len(out) + SET_ADDRESS_PREFIX, row)
                out += piece.data[cut:stop]
            if ended and len(out) - bases[-1] == program - start:
                out += END_SEQUENCE
            struct.pack_into("<I", out, bases[-1], len(out) - bases[-1] - 4)
        if rows:
            raise ValueError("set-address relocation outside every unit")
        if twins is not None:
            patch_headers(out, twins[number], units, bases)
    return bytes(out), bytes(moved), bytes(moved_units)


def function_rows(piece: Piece) -> list[tuple[int, tuple[int, ...]]]:
    """Return the relocations against functions, by offset."""
    rows = [row for row in piece.rows if row[1][2] != OTHER]
    return sorted(rows, key=lambda row: row[1][0])


def patch_headers(
    out: bytearray, twin: Piece, units: list[tuple[int, int, int]], bases: list[int]
) -> None:
    """Write the fields that only the mercury section relocates: the .debug_str offset.

    ``twin`` is the piece of that section, ``units`` are those of the plain piece, and ``bases``
    their new offsets. Unit i of both has identical headers; only the programs differ.
    """
    twins = list(line_units(twin.data))
    if len(twins) != len(units):
        raise ValueError("mercury line section has another number of units")
    for _, (r_offset, value) in twin.rows:
        for unit, plain, base in zip(twins, units, bases, strict=True):
            start, program, _ = unit
            if start <= r_offset and r_offset + 4 <= program:
                if program - start != plain[1] - plain[0]:
                    raise ValueError(f"mercury line header at {start:#x} has another size")
                struct.pack_into("<I", out, base + r_offset - start, value & 0xFFFFFFFF)
                break
        else:
            raise ValueError(f"header relocation at {r_offset:#x} is in no line header")


def rebuild_frame(arena: bytes, pieces: bytes, relocs: bytes) -> tuple[bytes, bytes]:
    """Rebuild .debug_frame without the FDEs of functions that are not in the output.

    A CIE belongs to the FDEs after it: it is omitted with them, and the CIE pointer of a kept FDE
    is the offset of the CIE before it. Rows are in the order of the output relocations: the last
    piece first, and the rows of a piece in reverse.
    """
    out = bytearray()
    moved: list[list[bytes]] = []
    for piece in read_pieces(arena, pieces, relocs, RELOC):
        at = {r_offset: (row, outcome) for row, (r_offset, _, outcome) in function_rows(piece)}
        new: dict[int, int] = {}
        cie = b""
        cie_base: int | None = None
        for start, record in frame_records(piece.data):
            if record[12:20] == CIE_ID.to_bytes(8, "little"):
                cie, cie_base = record, None
                continue
            if not cie:
                raise ValueError(f"FDE at {start:#x} has no CIE before it")
            row, outcome = at.get(start + FDE_ADDRESS, (-1, LIVE))
            if outcome in (DEAD, OVERRIDDEN):
                continue
            if cie_base is None:
                cie_base = len(out)
                out += cie
            if row >= 0:
                new[row] = len(out) + FDE_ADDRESS
            out += record[:12] + cie_base.to_bytes(8, "little") + record[20:]
        moved.append([MOVED.pack(new[row], row) for row, _ in reversed(piece.rows) if row in new])
    return bytes(out), b"".join(b"".join(rows) for rows in reversed(moved))


def frame_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of each CIE and FDE; ptxas writes the 64-bit DWARF format."""
    start = 0
    while start < len(data):
        if len(data) - start < 20:
            raise ValueError(f"frame record at {start:#x} is cut off")
        escape, length, ident = struct.unpack_from("<IQQ", data, start)
        if escape != 0xFFFFFFFF:
            raise ValueError(f"frame record at {start:#x} is not in 64-bit format")
        if length > len(data) - start - 12 or length < (8 if ident == CIE_ID else 24):
            raise ValueError(f"frame record at {start:#x} runs past the section")
        yield start, data[start : start + 12 + length]
        start += 12 + length


def rebuild_reg_sass(arena: bytes, pieces: bytes, names: bytes) -> bytes:
    """Concatenate .nv_debug_info_reg_sass, and clear register ranges of removed code.

    ``names`` has the names of the output's functions, each with a NUL after it. The first entry
    with such a name keeps its ranges, even if it describes another static function of that name.
    """
    fresh = set(names.split(b"\0")[:-1])
    out = bytearray()
    for piece in read_pieces(arena, pieces, b"", RELOC):
        base = len(out)
        out += piece.data
        for name, ranges in reg_entries(piece.data):
            if name not in fresh:
                for offset in ranges:
                    out[base + offset : base + offset + 8] = bytes(8)
            fresh.discard(name)
    return bytes(out)


def reg_entries(data: bytes) -> Iterator[tuple[bytes, list[int]]]:
    """Yield each function's name and the offsets of its registers' start and end words."""
    offset = 0
    while offset < len(data):
        entry = offset
        stop = data.find(b"\0", offset)
        if stop < 0 or len(data) - stop - 1 < 4:
            raise ValueError(f"register entry at {entry:#x} is cut off")
        name = data[offset:stop]
        (count,) = struct.unpack_from("<I", data, stop + 1)
        offset = stop + 5
        ranges = []
        if count > (len(data) - offset) // 17:
            raise ValueError(f"register entry at {entry:#x} counts past the section")
        for _ in range(count):
            stop = data.find(b"\0", offset + 4)
            if stop < 0 or len(data) - stop - 1 < 12:
                raise ValueError(f"register entry at {entry:#x} is cut off")
            ranges.append(stop + 5)
            offset = stop + 13
        yield name, ranges
