"""Pools of literals that fit into a constant bank only if equal pieces are merged, executed."""

from __future__ import annotations

import struct

import pytest
from differential.test_merged_pools import DECLARATION, LIMIT, REGISTERS
from helpers import oracle

from emulator.errors import Fault
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program
from emulator.rows import LANES, assembled, executes, ours, theirs

pytestmark = oracle.needs_oracle

LITERALS = [0x3FF1234500000001 + number * 0x10000001 for number in range(60)]
FACTORS = [0x4001000000000000 + (case << 48) for case in range(4)]
CALL = (
    "{{ .param .f64 A; .param .f64 R; st.param.f64 [A], %d1; call (R), {}, (A);"
    " ld.param.f64 %d1, [R]; }}\n"
)
# Functions with the number of their literals, all alike, and the words of their jump tables. Tables
# of 16 words are merged, others are not.
FUNCTIONS = {
    "89": {"f0": (60, 7), "f1": (60, 9), "f2": (60, 16), "f3": (60, 16)},
    "90a": {"f0": (0, 7), "f1": (0, 16), "f2": (0, 16), "f3": (0, 9), "f4": (0, 16)},
}
FUNCTIONS |= {"75": FUNCTIONS["89"], "80": FUNCTIONS["89"]}
OVER = 24  # bytes that the bank is too small for if nothing is merged


def function(name: str, literals: int, words: int) -> str:
    text = f".visible .func (.param .f64 r) {name}(.param .f64 a) {{ {REGISTERS}"
    text += "ld.param.f64 %d1, [a];\n"
    text += "".join(f"mul.rn.f64 %d1, %d1, 0d{number:016x};\n" for number in LITERALS[:literals])
    labels = ", ".join(f"L{word % 4}" for word in range(words))
    text += "cvt.rzi.u32.f64 %r1, %d1; and.b32 %r1, %r1, 63;\n"
    text += f"setp.ge.u32 %p1, %r1, {words}; @%p1 bra E;\nt: .branchtargets {labels};\n"
    text += "brx.idx %r1, t;\n"
    for case, factor in enumerate(FACTORS):
        text += f"L{case}: mul.rn.f64 %d1, %d1, 0d{factor:016x}; bra E;\n"
    return text + "E: st.param.f64 [r], %d1; ret; }"


def value(x: float, literals: int, words: int) -> float:
    """What a function returns."""
    for number in LITERALS[:literals]:
        x *= struct.unpack("<d", struct.pack("<Q", number))[0]
    case = int(x) & 63
    if case < words:
        x *= struct.unpack("<d", struct.pack("<Q", FACTORS[case % 4]))[0]
    return x


def program(arch: str) -> list[bytes]:
    """The cubins. A table that nothing reads fills the bank."""
    functions = FUNCTIONS[arch]
    kernel = "".join(map(DECLARATION.format, [*functions, "filler"]))
    kernel += f".visible .entry k(.param .u64 p) {{ {REGISTERS} ld.param.u64 %rd1, [p];"
    kernel += "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd1, %rd1, %rd2;"
    kernel += "ld.global.f64 %d1, [%rd1];\n" + "".join(map(CALL.format, functions))
    kernel += "setp.gt.f64 %p1, %d1, 0d7f00000000000000; @!%p1 bra S;\n" + CALL.format("filler")
    kernel += "S: st.global.f64 [%rd1], %d1; ret; }"
    used = sum(4 * words + 8 * literals for literals, words in functions.values())
    texts = [function("filler", 0, (LIMIT - used + OVER) // 4)]
    texts += [function(name, *shape) for name, shape in functions.items()]
    return [assembled(text, arch) for text in (*texts, kernel)]


def doubles(image: bytes, arch: str) -> list[float] | str:
    """What the kernel makes of some numbers, or why it ends."""
    loaded = Loaded(image, arch)
    data = loaded.memory.place(struct.pack(f"<{LANES}d", *(1 + 0.37 * i for i in range(LANES))))
    parameters = struct.pack("<Q", data)
    grid = Grid(Program(loaded), "k", parameters=parameters, instructions=50_000)
    try:
        grid.run()
    except Fault as error:
        return str(error)
    return list(struct.unpack(f"<{LANES}d", loaded.memory.read(data, 8 * LANES)))


@executes("pools of literals that fit into a constant bank")
@pytest.mark.parametrize("arch", ["75", "80", "89", "90a"])
def test_pools_that_fit_only_merged(arch: str) -> None:
    """Behind what was merged, nvlink's code reads its tables where they were."""
    expected = []
    for lane in range(LANES):
        x = 1 + 0.37 * lane
        for shape in FUNCTIONS[arch].values():
            x = value(x, *shape)
        expected.append(x)
    files = program(arch)
    for order in (files, files[::-1]):
        assert doubles(ours(order, arch), arch) == expected
    assert doubles(theirs(files, arch), arch) != expected
