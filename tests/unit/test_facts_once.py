"""A number of a file format is written in one module: those in `facts` are imported from there.

Kernels get them from headers that `facts/header.py` generates.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import entry

from pylink.facts import fatbinentries, header, headers, records
from pylink.facts.elf import EM_CUDA, ET_REL, SHT_STRTAB
from pylink.facts.picknumbers import EntryKind

PACKAGE = Path(__file__).parents[2] / "src" / "pylink"
NATIVE = PACKAGE.parent / "_native"
# A module that must not load a table of facts says so beside the number.
SAYS_WHY = "as in pylink.facts."


def constants(text: str) -> Iterator[tuple[str, object, int]]:
    """Yield the name, value and line of each constant of a module that is written as a number."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for name, part in zip(names, parts, strict=False):
            try:
                value = ast.literal_eval(part)
            except ValueError:
                continue
            if isinstance(name, ast.Name) and type(value) is int:
                yield name.id, value, node.lineno


def facts() -> dict[str, set[object]]:
    """Return the values of each name of a number in `facts`."""
    found: dict[str, set[object]] = {}
    for path in (PACKAGE / "facts").glob("[a-z]*.py"):
        module = importlib.import_module(f"pylink.facts.{path.stem}")
        for name, value in vars(module).items():
            if type(value) is int:
                found.setdefault(name, set()).add(value)
    return found


def repeated(text: str, known: dict[str, set[object]]) -> list[str]:
    """Return the constants of a module that have the name and the value of a fact."""
    lines = text.splitlines()
    return [
        name
        for name, value, line in constants(text)
        if value in known.get(name.lstrip("_"), ()) and SAYS_WHY not in lines[line - 1]
    ]


def formats(text: str) -> Iterator[str]:
    """Yield the formats of records in a module, by which `struct` reads them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value[:1] == "<":
            yield node.value


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith("facts/"):
            yield name, path.read_text(encoding="utf-8")


def test_a_repeated_number_is_recognized() -> None:
    known = facts()
    assert repeated("_SHT_RELA, SHT_MINE = 4, 4\nSTT_SECTION = 3\n", known) == [
        "_SHT_RELA",
        "STT_SECTION",
    ]
    assert repeated("STT_SECTION = 3  # as in pylink.facts.elf, which is slow\n", known) == []
    assert repeated("from pylink.facts.elf import STT_SECTION\n", known) == []


def test_no_number_of_the_facts_is_written_again() -> None:
    known = facts()
    assert {name: found for name, text in modules() if (found := repeated(text, known))} == {}


def native_constants(text: str) -> Iterator[tuple[str, int]]:
    """Yield name and value of each enumerator of a native source that is written as a number."""
    for name, value in re.findall(
        r"^    ([A-Z][A-Z0-9_]*) = (0x[0-9a-f]+|\d+)U?\b(?! *[-+*<|/])", text, re.MULTILINE
    ):
        yield name, int(value, 0)


def test_a_repeated_number_of_a_kernel_is_recognized() -> None:
    text = "cdef enum:\n    EM_CUDA = 0xbe          # source\n    SIZE = 4 << 20\n    LAST = 7U\n"
    assert list(native_constants(text)) == [("EM_CUDA", 0xBE), ("LAST", 7)]


def test_no_number_of_python_is_written_again_in_native_code() -> None:
    generated = {pair for text in header.header_texts().values() for pair in native_constants(text)}
    python = {
        (name.lstrip("_"), value)
        for path in PACKAGE.rglob("*.py")
        for name, value, _ in constants(path.read_text(encoding="utf-8"))
    }
    assert len(generated) > 500
    assert ("EM_CUDA", 190) in generated & python
    sources = sorted([*NATIVE.glob("*/*.pxd"), *NATIVE.glob("*/*.pyx")])
    found = [
        f"{path.relative_to(NATIVE)}: {pair[0]}"
        for path in sources
        for pair in native_constants(path.read_text(encoding="utf-8"))
        if pair in generated | python
    ]
    assert found == []


def c_constants(text: str) -> Iterator[tuple[str, int]]:
    """Yield name, without PYLINK_, and value of each number that a header in C names."""
    for name, value in re.findall(
        r"(?:\bPYLINK_|#define +)(?:PYLINK_)?([A-Z][A-Z0-9_]*)(?: = | +)(0x[0-9a-f]+|\d+)\b", text
    ):
        yield name, int(value, 0)


def test_no_number_of_the_facts_is_written_again_in_c() -> None:
    """Nor by its name without the prefix of its class: LZ4_BLOCK for CODEC_LZ4_BLOCK."""
    assert list(c_constants("enum { PYLINK_ONE = 1, PYLINK_TWO = 2 };\n#define THREE 0x3\n")) == [
        ("ONE", 1),
        ("TWO", 2),
        ("THREE", 3),
    ]
    generated = {pair for text in header.header_texts().values() for pair in native_constants(text)}
    known = generated | {(name.partition("_")[2], value) for name, value in generated}
    assert ("LZ4_BLOCK", 1) in known
    sources = sorted([*NATIVE.glob("*/*.h"), *NATIVE.glob("*/*.c")])
    assert len(sources) > 10
    found = [
        f"{path.relative_to(NATIVE)}: {name}"
        for path in sources
        for name, value in c_constants(path.read_text(encoding="utf-8"))
        if (name, value) in known
    ]
    assert found == []


def test_no_record_of_elf_files_is_written_again() -> None:
    """Of records with more than two fields: two numbers in a row are a record of many formats."""
    known = {value.format for value in vars(records).values() if isinstance(value, Struct)}
    known = {form for form in known if len(form) > 3}
    assert len(known) > 6
    found = {name: both for name, text in modules() if (both := known.intersection(formats(text)))}
    assert found == {}


def test_headers_with_names_have_the_fields_of_their_formats() -> None:
    for record, fields in (
        (records.EHDR, headers.FileHeader),
        (records.PHDR, headers.SegmentHeader),
        (records.SHDR, headers.SectionHeader),
        (fatbinentries.ENTRY, headers.EntryHeader),
    ):
        assert len(fields._fields) == len(record.unpack(bytes(record.size)))
    # Where a cubin says what it is.
    cubin = one_kernel().build()
    file_header = headers.FileHeader._make(records.EHDR.unpack_from(cubin))
    assert (file_header.type, file_header.machine) == (ET_REL, EM_CUDA)
    assert (file_header.shentsize, file_header.ehsize) == (records.SHDR.size, records.EHDR.size)
    names = file_header.shoff + file_header.shstrndx * file_header.shentsize
    section = headers.SectionHeader._make(records.SHDR.unpack_from(cubin, names))
    assert section.type == SHT_STRTAB
    assert b"\0.shstrtab\0" in cubin[section.offset : section.offset + section.size]
    made = headers.EntryHeader._make(fatbinentries.ENTRY.unpack_from(entry(cubin, 80)))
    assert (made.kind, made.mark) == (EntryKind.ELF, fatbinentries.ENTRY_MARK)
    assert (made.sm, made.flags & fatbinentries.FLAG_64_BIT) == (80, fatbinentries.FLAG_64_BIT)
    assert made.size == len(entry(cubin, 80)) - made.header_size
