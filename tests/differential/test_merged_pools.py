"""Literals and tables that fit into a kernel's constant bank only if equal ones are merged.

Random programs of a few shapes: their pools get bytes of which many repeat, so that each shape is
compiled once. A function with thousands of distinct literals, or a long table, fills the bank. The
whole files are compared. nvlink has some code read from where nothing was moved to: there, nvlink's
file must have other bytes than the input, and pylink's the right ones.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.side_by_side import OURS, THEIRS, nvlink, pylink

from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

LIMIT = 0x10000
POOL = ".nv.constant2."
FILLER = "filler"
REFUSED = "uses too much data for compiler-generated constants"

Shape = list[int]  # of a function: 0 is a literal, another number the words of a jump table

REGISTERS = ".reg .f64 %d<4>; .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p<2>;\n"
DECLARATION = ".extern .func (.param .f64 r) {}(.param .f64 a);\n"
CALL = (
    "{{ .param .f64 A; .param .f64 R; st.param.f64 [A], %d1; call (R), {}, (A);"
    " ld.param.f64 %d2, [R]; add.f64 %d1, %d1, %d2; }}\n"
)


def code(shape: Shape) -> str:
    text = ""
    for number, words in enumerate(shape):
        if not words:
            text += (
                f"fma.rn.f64 %d1, %d1, 0d{0x3FF1234500000001 + number * 0x10000001:016x}, %d1;\n"
            )
            continue
        labels = ", ".join(f"L{number}_{word % 4}" for word in range(words))
        text += f"cvt.rzi.u32.f64 %r1, %d1; setp.ge.u32 %p1, %r1, {words}; @%p1 bra E{number};\n"
        text += f"t{number}: .branchtargets {labels};\nbrx.idx %r1, t{number};\n"
        for label in range(4):
            text += f"L{number}_{label}: mul.rn.f64 %d1, %d1, 0d40{label + 1:02x}000000000000;"
            text += f" bra E{number};\n"
        text += f"E{number}:\n"
    return text


def function(name: str, shape: Shape, linkage: str) -> str:
    head = f".{linkage} .func (.param .f64 r) {name}(.param .f64 a)"
    text = f"{head} {{ {REGISTERS} ld.param.f64 %d1, [a];\n{code(shape)}"
    return text + " st.param.f64 [r], %d1; ret; }"


def kernel(name: str, shape: Shape, linkage: str, calls: list[str]) -> str:
    text = "".join(map(DECLARATION.format, calls)) + f".{linkage} .entry {name}(.param .u64 p) "
    text += f"{{ {REGISTERS} ld.param.u64 %rd1, [p]; ld.global.f64 %d1, [%rd1];\n{code(shape)}"
    return text + "".join(map(CALL.format, calls)) + "st.global.f64 [%rd1], %d1; ret; }"


def assembled(text: str, arch: str) -> bytes:
    head = f".version 9.0\n.target sm_{oracle.PTX_ARCH[arch]}\n.address_size 64\n"
    return oracle.compile(head + text, arch, name="m.ptx")


@dataclass
class Constant:
    """What one symbol of a pool names, and the instruction that reads it, if any."""

    function: str
    value: int
    data: bytes
    reader: int
    type: int


def constants(cubin: bytes) -> list[Constant]:
    image = Image(cubin)
    symtab = image.section(".symtab")
    assert symtab is not None
    readers = {}
    for section in image.sections:
        if section.name.startswith((".rel.text.", ".rela.text.")):
            form = "<QQ" if section.name.startswith(".rel.") else "<QQq"
            for entry in image.entries(section, form):
                readers[entry[1] >> 32] = entry[0], entry[1] & 0xFFFFFFFF
    found = []
    for number, row in enumerate(image.entries(symtab, "<IBBHQQ")):
        home = image.sections[row[3]] if row[3] < len(image.sections) else None
        if home is None or not home.name.startswith(POOL) or row[1] & 15 == 3:
            continue
        data = image.content(home)[row[4] : row[4] + row[5]]
        name = home.name.removeprefix(POOL)
        found.append(Constant(name, row[4], data, *readers.get(number, (-1, 0))))
    return found


def with_pool(cubin: bytes, chosen: random.Random, first: int) -> bytes:
    """The cubin, with few different bytes in its pools and whatever there is between them."""
    data = bytearray(cubin)
    image = Image(cubin)
    for section in image.sections:
        if section.name.startswith(POOL):
            data[section.offset : section.offset + section.size] = (
                chosen.choice([b"\0", b"\xee"]) * section.size
            )
    for constant in constants(cubin):
        home = image.section(POOL + constant.function)
        assert home is not None
        at, size = home.offset + constant.value, len(constant.data)
        data[at : at + size] = bytes([chosen.randrange(first, 5)]) * size
        if chosen.random() < 0.2:
            data[at + size - 1] = ord("z")
    return bytes(data)


def shape_of(chosen: random.Random, arch: str, tables: list[int]) -> Shape:
    kind = chosen.random()
    likely = 1.0 if kind < 0.2 or arch == "90a" else 0.4 if kind < 0.6 else 0.0
    count = chosen.choice([1, 2, 5, 12])
    return [chosen.choice(tables) if chosen.random() < likely else 0 for _ in range(count)]


def program(seed: int, arch: str, tables: list[int], first: int) -> list[bytes]:
    """Cubins, of which the first kernel overflows its bank unless equal constants are merged.

    One of six sets of shapes, with contents from `first`, a byte, on.
    """
    shapes, chosen = random.Random(seed % 6), random.Random(seed)
    names = [f"f{number}" for number in range(shapes.randint(5, 9))]
    files = []
    for name in names:
        weak = shapes.random() < 0.3
        text = function(name, shape_of(shapes, arch, tables), "weak" if weak else "visible")
        copies = shapes.choice([2, 3]) if weak else 1
        files += [with_pool(assembled(text, arch), chosen, first) for _ in range(copies)]
    for number in range(shapes.randint(1, 4)):
        calls = [name for name in [*names, FILLER] if not number or shapes.random() < 0.5]
        weak = shapes.random() < 0.15
        shape = shape_of(shapes, arch, tables) if shapes.random() < 0.6 else []
        text = kernel(f"k{number}", shape, "weak" if weak else "visible", calls)
        files += [with_pool(assembled(text, arch), chosen, first) for _ in range(1 + weak)]
    part = 0.9 if arch == "90a" else 0.67
    room = LIMIT - int(
        part * sum(len(constant.data) for file in files for constant in constants(file))
    )
    fill: Shape = [room // 100 * 25] if arch == "90a" else [0] * (min(room, LIMIT) // 80 * 10)
    files.append(assembled(function(FILLER, fill, "visible"), arch))
    chosen.shuffle(files)
    return files


def pools(image: Image) -> list[bytes]:
    return [image.content(section) for section in image.sections if section.name.startswith(POOL)]


def misread(output: bytes, files: list[bytes]) -> set[tuple[str, int]]:
    """Functions, and offsets in them, where code that was not replaced reads other bytes."""
    image = Image(output)
    (pool,) = set(pools(image))
    bad, taken = set(), set()
    for file in files:
        found = constants(file)
        names = {row.function for row in found}
        for row in found:
            text = image.section(f".text.{row.function}")
            if row.reader < 0 or text is None or row.function in taken:
                continue
            (word,) = struct.unpack_from("<Q", image.content(text), row.reader)
            at = (word >> 38) + (0x8000 if row.type == 66 else 0) & 0xFFFF
            if pool[at : at + len(row.data)] != row.data:
                bad.add((f".text.{row.function}", row.reader))
        taken |= names  # weak: the first copy stays
    return bad


SMALL, ALL = [5, 6, 8, 12, 16], [5, 6, 7, 8, 9, 12, 16, 17]


@pytest.mark.parametrize("options", [[], ["-g"], ["--kernels-used=k0"], ["-v"]], ids=" ".join)
@pytest.mark.parametrize("arch", ["75", "89", "90a"])
def test_programs_are_merged_as_nvlink_does(arch: str, options: list[str], tmp_path: Path) -> None:
    seen = []
    for seed in range(4 if options and arch != "90a" else 12):
        tables, first = (ALL, 0) if seed % 3 == 2 else (SMALL, 1)
        files = program(seed, arch, tables, first)
        names = [f"{number}.cubin" for number in range(len(files))]
        for name, data in zip(names, files, strict=True):
            (tmp_path / name).write_bytes(data)
        words = [f"-arch=sm_{arch}", *options, *names]
        theirs, ours = nvlink(tmp_path, words), pylink(tmp_path, words)
        assert ours == theirs
        if theirs.code:
            assert all(REFUSED in line for line in theirs.lines if "error" in line)
            seen.append("refused")
            continue
        ours_image, theirs_image = ((tmp_path / name).read_bytes() for name in (OURS, THEIRS))
        differences = compare(ours_image, theirs_image)
        if len(set(pools(Image(theirs_image)))) > 1:
            assert differences == []
            continue
        assert misread(ours_image, files) == set()
        wrong = {name for name, _ in misread(theirs_image, files)}
        assert {
            text for text in wrong if any(text in difference for difference in differences)
        } == wrong
        assert all(any(text in difference for text in wrong) for difference in differences)
        seen.append("wrong in nvlink" if wrong else "merged")
    assert {"merged", "wrong in nvlink"} & set(seen)
    assert options or "refused" in seen


def test_tables_of_later_archs_are_refused(tmp_path: Path) -> None:
    """nvlink merges them, and ends with an internal error: their relocations say other places."""
    names = [f"f{number}" for number in range(4)]
    shape = [12, 16, 12]
    cubins = [assembled(function(name, shape, "visible"), "100") for name in names]
    cubins.append(assembled(function(FILLER, [16300], "visible"), "100"))
    cubins.append(assembled(kernel("k", [], "visible", [*names, FILLER]), "100"))
    files = [f"{number}.cubin" for number in range(len(cubins))]
    for name, data in zip(files, cubins, strict=True):
        (tmp_path / name).write_bytes(data)
    words = ["-arch=sm_100", *files]
    assert nvlink(tmp_path, words).code == 1
    ours = pylink(tmp_path, words)
    assert ours.code == 255
    assert REFUSED in ours.lines[0]
