"""Moves between registers, uniform registers and predicates, selections, special registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from emulator.build import Build
from emulator.lanes import Flags, Row, row, spread
from emulator.machine import Fragment, Step
from emulator.memory import SHARED_HIGH
from emulator.operands import Register


def mov(b: Build) -> Step:
    if b.take("64"):
        put_wide, pair = b.put_wide(), b.integer_wide()
        return lambda f: put_wide(f, pair(f))
    put, x = b.put(), b.integer()
    if b.operands and b.number() != 15:  # the mask of bytes that are written
        raise b.unsupported("mask")
    return lambda f: put(f, x(f))


def r2ur(b: Build) -> Step:
    """The first of its lanes decides; the predicate tells which lanes have another value."""
    put_flag = b.put_flags() if b.next_is_predicate() else None
    put, x = b.put(), b.bits()

    def run(f: Fragment) -> None:
        value = x(f)
        first = value if len(value) == 1 else value[int(f.mask.argmax()) :][:1]
        put(f, first)
        if put_flag:
            put_flag(f, value != first)

    return run


def sel(b: Build) -> Step:
    if b.take("64"):
        put_wide, first, second, choice = (
            b.put_wide(),
            b.integer_wide(),
            b.integer_wide(),
            b.flags(),
        )
        return lambda f: put_wide(f, np.where(choice(f), first(f), second(f)))
    put, x, y, choice = b.put(), b.integer(), b.integer(), b.flags()
    return lambda f: put(f, np.where(choice(f), x(f), y(f)))


def fsel(b: Build) -> Step:
    flush = b.take("FTZ")
    if flush:
        raise b.unsupported("modifier 'FTZ'")
    put, x, y, choice = b.put(), b.single(), b.single(), b.flags()
    return lambda f: put(f, np.where(choice(f), x(f).view(np.uint32), y(f).view(np.uint32)))


def _byte_of(b: Build, operand: Register) -> int:
    """The first bit of the byte that a suffix such as B1 names."""
    if not operand.suffixes:
        return 0
    if len(operand.suffixes) > 1 or operand.suffixes[0] not in ("B0", "B1", "B2", "B3"):
        raise b.unsupported(f"operand {operand}")
    return 8 * int(operand.suffixes[0][1])


def p2r(b: Build) -> Step:
    """All predicates into a byte of a register, of which a mask says what is taken."""
    target = b.next()
    if not isinstance(target, Register):
        raise b.unsupported(f"operand {target}")
    first = _byte_of(b, target)
    put = b.put(0, Register(target.file, target.number))
    if b.special() != "PR":
        raise b.unsupported("operand")
    other, mask = b.bits(), b.bits()

    def run(f: Fragment) -> None:
        found = row(0)
        for index in range(7):
            found = found | f.P[index].astype(np.uint32) << index
        chosen = (mask(f) & 0xFF) << first
        put(f, other(f) & ~chosen | found << first & chosen)

    return run


def r2p(b: Build) -> Step:
    if b.special() != "PR":
        raise b.unsupported("operand")
    source = b.next()
    if not isinstance(source, Register):
        raise b.unsupported(f"operand {source}")
    first, get, mask = _byte_of(b, source), b.plain(source), b.number()
    puts = [b.put_flags(Register("P", index)) for index in range(7)]

    def run(f: Fragment) -> None:
        value = get(f) >> first
        for index in range(7):
            if mask >> index & 1:
                puts[index](f, (value >> index & 1).astype(np.bool_))

    return run


def _lane_mask(name: str, f: Fragment) -> Row:
    bit = np.uint64(1) << f.warp.lane.astype(np.uint64)
    masks = {
        "SR_LTMASK": bit - np.uint64(1),
        "SR_LEMASK": bit * np.uint64(2) - np.uint64(1),
        "SR_EQMASK": bit,
        "SR_GEMASK": ~(bit - np.uint64(1)),
        "SR_GTMASK": ~(bit * np.uint64(2) - np.uint64(1)),
    }
    return masks[name].astype(np.uint32)


def _shared_bytes(f: Fragment) -> Row:
    grid = f.warp.block.grid
    return row(grid.shared_size)


SPECIAL: dict[str, Callable[[Fragment], Row]] = {
    "SRZ": lambda f: row(0),
    "SR_TID.X": lambda f: f.warp.thread[0],
    "SR_TID.Y": lambda f: f.warp.thread[1],
    "SR_TID.Z": lambda f: f.warp.thread[2],
    "SR_CTAID.X": lambda f: row(f.warp.block.index[0]),
    "SR_CTAID.Y": lambda f: row(f.warp.block.index[1]),
    "SR_CTAID.Z": lambda f: row(f.warp.block.index[2]),
    "SR_LANEID": lambda f: f.warp.lane,
    # The number of the warp is in bits 8 to 14, the number of its processor in others.
    "SR_VIRTID": lambda f: row(f.warp.index << 8),
    "SR_VIRTUALSMID": lambda f: row(0),
    "SR_VIRTCFG": lambda f: row(64 << 8),
    "SR_SMEMSZ": _shared_bytes,
    "SR_SWINHI": lambda f: row(SHARED_HIGH),
    # The lowest address that the stack may reach.
    "SR_LMEMHIOFF": lambda f: row(f.warp.block.grid.local_size - f.warp.block.grid.stack_size),
    # The kernels of tests run as clusters of one block.
    "SR_CgaCtaId": lambda f: row(0),
    "SR_CgaSize": lambda f: row(1),
    "SR_CLOCKLO": lambda f: row(f.warp.block.grid.tick()),
    "SR_CLOCKHI": lambda f: row(0),
    "SR_GLOBALTIMERLO": lambda f: row(f.warp.block.grid.tick()),
    "SR_GLOBALTIMERHI": lambda f: row(0),
}
SPECIAL |= {
    name: partial(_lane_mask, name)
    for name in ("SR_LTMASK", "SR_LEMASK", "SR_EQMASK", "SR_GEMASK", "SR_GTMASK")
}


def _special(b: Build) -> Callable[[Fragment], Row]:
    name = b.special()
    if name not in SPECIAL:
        raise b.unsupported(f"special register {name}")
    return SPECIAL[name]


def s2r(b: Build) -> Step:
    put, get = b.put(), _special(b)
    return lambda f: put(f, get(f))


def s2ur(b: Build) -> Step:
    put, get = b.put(), _special(b)

    def run(f: Fragment) -> None:
        value = get(f)
        put(f, value if len(value) == 1 else value[int(f.mask.argmax()) :][:1])

    return run


def cs2r(b: Build) -> Step:
    """A special register of 64 bits, or with 32 its lower half."""
    if b.take("32"):
        return s2r(b)
    target = b.next()
    low, high = b.put(0, target), b.put(1, target)
    get = _special(b)

    def run(f: Fragment) -> None:
        low(f, get(f))
        high(f, row(0))

    return run


def cs2ur(b: Build) -> Step:
    """On sm_120, a special register of 32 bits."""
    b.take("32")
    return s2ur(b)


def votes(mask: Flags, f: Fragment) -> Flags:
    """The flags of the fragment's lanes, one for each."""
    return spread(mask, f.warp.size)[f.mask]


OPCODES: dict[str, Callable[[Build], Step]] = {
    "MOV": mov,
    "UMOV": mov,
    "MOV32": mov,
    "R2UR": r2ur,
    "SEL": sel,
    "USEL": sel,
    "FSEL": fsel,
    "P2R": p2r,
    "R2P": r2p,
    "S2R": s2r,
    "S2UR": s2ur,
    "CS2R": cs2r,
    "CS2UR": cs2ur,
}
