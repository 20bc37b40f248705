"""Native functions are as short as the account of what they do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "src" / "_native"
LONGEST = 80  # lines with the signature


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function of a module or header."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        head = re.match(r"( *)(?:cdef(?! class)|def|cpdef)\b[^=(]*?(\w+)\(", line)
        if not head or ":" not in "".join(lines[start : start + 12]):
            continue
        end = start + 1
        for number in range(start + 1, len(lines)):
            inside = lines[number]
            if inside.strip() and len(inside) - len(inside.lstrip()) <= len(head[1]):
                break
            end = number + 1 if inside.strip() else end
        yield head[2], end - start


def test_functions_are_found_with_their_length() -> None:
    text = "cdef int a(int x,\n           int y) nogil:\n    return x\n\n\ndef b():\n    pass\n"
    assert list(functions(text)) == [("a", 3), ("b", 2)]


def test_no_native_function_is_long() -> None:
    found = {
        f"{path.relative_to(NATIVE)}: {name}": size
        for path in NATIVE.glob("*/*.p[yx][xd]")
        for name, size in functions(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 500
    assert {name: size for name, size in found.items() if size > LONGEST} == {}


def test_sources_name_what_they_take_of_a_header() -> None:
    sources = [*NATIVE.glob("*/*.p[yx][xd]"), *NATIVE.parent.glob("pylink/_native/*.pxd")]
    assert len(sources) > 100
    star = re.compile(r"^\s*from \S+ cimport \(?\s*\*", re.MULTILINE)
    assert [path.name for path in sources if star.search(path.read_text(encoding="utf-8"))] == []


def test_functions_in_c_stand_in_c_files() -> None:
    """A compiler then reports file and line; text in a source has preprocessor lines only."""
    verbatim = re.compile(r'^cdef extern from [^\n]*:\n    """\n(.*?)"""', re.MULTILINE | re.DOTALL)
    found = [
        f"{path.relative_to(NATIVE)}: {line.strip()}"
        for path in NATIVE.glob("*/*.p[yx][xd]")
        for text in verbatim.findall(path.read_text(encoding="utf-8"))
        for line in text.splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]
    assert found == []


# Who asks for memory without a Scratch, and why.
OWN_MEMORY = {
    "base/blocks.pxd": "what all other memory is made of",
    "base/vector.pxd": "rows that grow, which a table may take",
    "base/nameindex.pxd": "indices and string tables that grow, chunks of texts",
    "base/spans.pxd": "tables of keys, also of objects that outlive a call",
    "base/scratch.pxd": "Scratch itself",
    "tables/tables.pyx": "pages that a table has",
    "mercury/dedup.pyx": "tables of keys that an object makes when they are first needed",
    "mercury/objects.pxd": "the same",
    "image/windows.pxd": "a buffer for each of two threads",
    "reports/arrow.pyx": "structs that whoever reads the stream releases",
    "fleet/census.pyx": "arrays of each folder and each root, in rows that move",
    "size/payloads.pxd": "rooms that a thread uses for one payload after the other",
    "size/ledger.pyx": "what a thread has rooms in",
}


def test_memory_of_a_call_is_in_a_scratch() -> None:
    """Each kernel then frees in one place, and raises MemoryError in one place."""
    asks = re.compile(
        r"\b(?:malloc|calloc|realloc|free|block_\w+|table_init|table_free"
        r"|(?:vec|index|strings)_(?:init|free))\("
    )
    found = {
        str(path.relative_to(NATIVE))
        for path in NATIVE.glob("*/*.p[yx][xd]")
        if asks.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(OWN_MEMORY)


def test_a_kernel_raises_for_want_of_memory_once() -> None:
    """Where several end so, one function raises for all of them."""
    for path in NATIVE.glob("*/*.pyx"):
        text = path.read_text(encoding="utf-8")
        for body in re.split(r"^(?=def |cdef |cpdef |    def )", text, flags=re.MULTILINE):
            assert body.count("raise MemoryError") <= 1, f"{path.name}: {body.splitlines()[0]}"
            assert "scratch_init(&scratch)" not in body or "scratch_free(&scratch)" in body, (
                f"{path.name}: {body.splitlines()[0]}"
            )
