"""Writes the headers with which native code is built.

    python -m pylink.facts.header NATIVE DIRECTORY

writes a header for each subject from the tables of this package to DIRECTORY. It also writes
DIRECTORY/columns.pxd, which lists the columns of each row struct in ROW_FILES, so that Python can
read them by name. setup.py does the same. The tables become constants of C, so that a link need not
pack or read them. An unchanged header is not written, so that the modules which use it are not
built again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pylink.facts import (
    archiveheaders,
    attributes,
    bitstreamnumbers,
    compat,
    dwarf,
    dynamictags,
    elf,
    fatbinentries,
    inheritance,
    inputkinds,
    instructions,
    kernelmodes,
    objectformats,
    outcomes,
    picknumbers,
    releases,
    relocations,
    rownumbers,
    sizenumbers,
    target,
)
from pylink.facts.headerlines import enum_lines, integer_constants, table_lines
from pylink.facts.sectionheader import rules_by_type, section_kinds

HEAD = """\
# Made by pylink.facts.header from the tables beside it; a change there changes this file.

from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef extern from *:
    \"\"\"
    #ifdef __GNUC__
    #define FACTS_UNUSED __attribute__((unused))
    #else
    #define FACTS_UNUSED
    #endif
    \"\"\"

"""
COLUMNS_NAME = "columns.pxd"
COLUMNS_HEAD = """\
# Made by pylink.facts.header from the rows of the native sources.
"""
# Native sources, below the directory NATIVE, with the row structs of tables.
ROW_FILES = ("tables/rows.pxd", "tables/poolrows.pxd", "tables/sharedrows.pxd")
# Codes of Python's struct for the types of columns.
STRUCT_CODES = {
    "uint8_t": "B",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
}


# Columns of the C rows of relocation types. `shift` is the first bit of the patched field (with the
# form BYTE, of the byte in the value), `width` its number of bits, `bytes` the number of bytes from
# r_offset on that may change. `form` is an index in FORMS; the class Relocation explains `loader`,
# `mark` and `clear`. `field` is the plain type that patches the field: for plain types the type
# itself, for mercury types in data their twin, for MERCURY_CODE_OFFSET32 R_CUDA_32, for others 0. A
# further column, `plain`, is the type that replaces this one in a link without unified tables.
RELOCATION_COLUMNS = ("form", "shift", "width", "bytes", "loader", "mark", "clear", "field")
FIRST_MERCURY = 0x10000  # number of the first mercury type of relocation


def _elf_numbers() -> Iterator[str]:
    """Yield the lines of elfnumbers.pxd: all numbers of `elf`, and tags of dynamic segments."""
    for module in (elf, dynamictags):
        yield from enum_lines(integer_constants(module, ("",)))


def _relocation_names() -> dict[str, int]:
    """Return the numbers of relocation types by name, such as R_CUDA_64 or R_MERCURY_64.

    A mercury type has the name of its twin: the plain type at the same place of the machine code.
    If several mercury types have one twin, only the lowest number has a name.
    """
    names = {f"R_CUDA_{row.name}": row.number for row in relocations.RELOCATIONS}
    for number, twin in relocations.MERCURY_TWINS.items():
        names.setdefault(f"R_MERCURY_{twin}", number)
    names["R_MERCURY_CODE_OFFSET32"] = relocations.MERCURY_CODE_OFFSET32
    return names


def _relocation_rows(names: Mapping[str, int]) -> Iterator[str]:
    """Yield a C row of RelocationFacts for each number; mercury numbers follow the plain ones.

    `names` is the result of `_relocation_names`.
    """
    forms = {form: number for number, form in enumerate(relocations.FORMS)}
    plain = relocations.RELOCATIONS
    by_name = {row.name: row for row in plain}
    for row in plain:
        replacement = names[f"R_CUDA_{row.plain}"] if row.plain else row.number
        values = (forms[row.form], row.first, row.bits, row.size, row.loader, row.mark, row.clear)
        yield "{" + ", ".join(str(int(value)) for value in (*values, row.number, replacement)) + "}"
    for number in range(len(plain), PLAIN_END):  # without a name: fields of at most 8 bytes
        yield f"{{0, 0, 0, 8, 0, 0, 0, {number}, {number}}}"
    for number in range(FIRST_MERCURY, MERCURY_END):
        twin = by_name.get(relocations.MERCURY_TWINS.get(number, ""))
        field = twin.number if twin and number in relocations.MERCURY_DATA else 0
        if number == relocations.MERCURY_CODE_OFFSET32:
            field = names["R_CUDA_32"]
        replacement = names[f"R_MERCURY_{twin.plain}"] if twin and twin.plain else number
        loader = twin is not None and twin.loader
        clear = twin is not None and twin.clear
        size = min(twin.size, 4) if twin and number in relocations.MERCURY_DATA else 4
        yield f"{{0, 0, 0, {size}, {loader:d}, 0, {clear:d}, {field}, {replacement}}}"


# Ends (exclusive) of the numbers of plain and of mercury types of relocations.
PLAIN_END = max(release.relocations for release in releases.RELEASES)
MERCURY_END = max(release.mercury_relocations for release in releases.RELEASES)


def _relocation_tables() -> Iterator[str]:
    """Yield the lines of relocationtypes.pxd: FORM_ and R_ numbers, and RelocationFacts by type."""
    names = _relocation_names()
    rows = list(_relocation_rows(names))
    columns = [f"        uint8_t {column}" for column in RELOCATION_COLUMNS]
    columns.append("        uint32_t plain")
    yield from enum_lines({f"FORM_{form}": number for number, form in enumerate(relocations.FORMS)})
    yield from enum_lines(names)
    yield from enum_lines(
        {
            "PLAIN_TYPES": PLAIN_END,
            "FIRST_MERCURY_TYPE": FIRST_MERCURY,
            "MERCURY_TYPES": MERCURY_END - FIRST_MERCURY,
        }
    )
    yield from table_lines("RelocationFacts", columns, "RELOCATION", rows)
    yield "cdef inline const RelocationFacts* facts_of(uint32_t type) noexcept nogil:"
    yield '    """Return the row of a relocation type that the reader accepted."""'
    yield "    return &RELOCATION["
    yield "        type if type < PLAIN_TYPES else type - FIRST_MERCURY_TYPE + PLAIN_TYPES]"
    yield ""


def _attribute_tables() -> Iterator[str]:
    """Yield the lines of attributetypes.pxd: EIATTR_ numbers, how they merge, AttributeFacts."""
    yield from enum_lines(
        {f"EIATTR_{name}": number for number, name in attributes.EIATTR.items() if number > 1}
    )
    yield from enum_lines({"FIRST_ISA_VERSION": attributes.FIRST_ISA_VERSION})
    formats = integer_constants(attributes, ("NVAL", "BVAL", "HVAL", "SVAL"))
    yield from enum_lines({f"EIFMT_{name}": number for name, number in formats.items()})
    yield from enum_lines(integer_constants(inheritance, ("JOIN_",)))
    yield from enum_lines(integer_constants(compat, ("COMPAT_", "FASTPATH_")))
    yield from enum_lines({f"EICOMPAT_{name}": n for n, name in attributes.EICOMPAT.items()})
    rows = (
        f"{{{row.words}, {row.of_function:d}, {row.symbols:d}, {row.entry}}}"
        for row in map(attributes.attribute_facts, range(256))
    )
    yield "cdef extern from *:"
    yield '    """'
    yield "    typedef struct { uint8_t words, of_function, symbols, entry; } AttributeFacts;"
    yield "    static const AttributeFacts ATTRIBUTE[] FACTS_UNUSED = {"
    yield from (f"        {row}," for row in rows)
    yield "    };"
    yield '    """'
    yield "    ctypedef struct AttributeFacts:"
    yield "        uint8_t words, of_function, symbols, entry"
    yield "    const AttributeFacts ATTRIBUTE[]"
    yield ""


# Columns of the C rows of object formats, with their C types; `ObjectFormat` explains them.
FORMAT_COLUMNS = {
    "os_abi": "uint8_t",
    "abi_version": "uint8_t",
    "sm_first": "uint8_t",
    "ptx_first": "uint8_t",
    "sm_mask": "uint32_t",
    "ptx_mask": "uint32_t",
    "specific": "uint32_t",
    "wide": "uint32_t",
    "refused": "uint32_t",
    "optional": "uint32_t",
    "versioned": "uint32_t",
}


def _format_tables() -> Iterator[str]:
    """Yield the lines of objectformats.pxd: fields of ELF headers, by number of the format."""
    rows = [
        "{" + ", ".join(f"{getattr(row, column):#x}u" for column in FORMAT_COLUMNS) + "}"
        for row in objectformats.OBJECT_FORMATS
    ]
    columns = [f"        {c_type} {name}" for name, c_type in FORMAT_COLUMNS.items()]
    yield from enum_lines({"FORMAT_COUNT": len(rows)})
    yield from table_lines("FormatFacts", columns, "FORMAT", rows)


def _trait_tables() -> Iterator[str]:
    """Yield the lines of traits.pxd: the families, and the traits of families and releases."""
    yield from enum_lines(integer_constants(target, ("FAMILY_A", "FAMILY_B", "FAMILY_C")))
    yield from enum_lines({"FAMILY_COUNT": len(target.FAMILY_TRAITS)})
    yield from enum_lines(
        {**integer_constants(releases, ("TRAIT_",)), **integer_constants(target, ("TRAIT_",))}
    )
    bits = ", ".join(map(str, target.FAMILY_TRAITS))
    yield "cdef extern from *:"
    yield '    """'
    yield f"    static const unsigned FAMILY_TRAITS[] FACTS_UNUSED = {{{bits}}};"
    yield '    """'
    yield "    const uint32_t FAMILY_TRAITS[]"
    yield ""


def _class_numbers(groups: Mapping[str, type]) -> Iterator[str]:
    """Yield lines of enums with the numbers in classes; `groups` has the classes by prefix.

    The number LIVE of a class with the prefix EF_ becomes EF_LIVE.
    """
    for prefix, group in groups.items():
        values = {name: value for name, value in vars(group).items() if isinstance(value, int)}
        yield from enum_lines({f"{prefix}{name}": value for name, value in values.items()})


def row_numbers() -> Iterator[str]:
    """Yield the lines of rownumbers.pxd: the constants of the classes in `rownumbers`."""
    yield from _class_numbers(rownumbers.PREFIXES)
    yield from enum_lines({"NO_STACK_BOUND": rownumbers.NO_STACK_BOUND})


def _input_kinds() -> Iterator[str]:
    """Yield the lines of inputkinds.pxd: IN_ numbers of the kinds of inputs."""
    kinds = {name: value for name, value in vars(inputkinds).items() if isinstance(value, int)}
    yield from enum_lines({f"IN_{name}": value for name, value in kinds.items()})


def _container_numbers() -> Iterator[str]:
    """Yield the lines of containernumbers.pxd: headers of fat binaries and archives."""
    yield from enum_lines(
        {
            "FATBIN_MAGIC": int.from_bytes(fatbinentries.FATBIN_MAGIC, "little"),
            "CONTAINER_HEADER": fatbinentries.CONTAINER.size,
            "ENTRY_HEADER": fatbinentries.ENTRY.size,
            **integer_constants(fatbinentries, ("FLAG_", "FLAGS_")),
            **integer_constants(archiveheaders, ("",)),
        }
    )


def _size_numbers() -> Iterator[str]:
    """Yield the lines of sizenumbers.pxd: PART_ numbers of the purposes of bytes, MOST_DOTS."""
    parts = {f"PART_{name}": number for number, name in enumerate(sizenumbers.PARTS)}
    yield from enum_lines({**parts, "MOST_DOTS": sizenumbers.MOST_DOTS})


# By name of a header: the function that yields its lines. There is one header for each subject, so
# that a changed fact rebuilds only the modules that use it.
HEADERS: dict[str, Callable[[], Iterator[str]]] = {
    "elfnumbers.pxd": _elf_numbers,
    "sectionkinds.pxd": section_kinds,
    "sectionrules.pxd": rules_by_type,
    "relocationtypes.pxd": _relocation_tables,
    "attributetypes.pxd": _attribute_tables,
    "objectformats.pxd": _format_tables,
    "traits.pxd": _trait_tables,
    "kernelmodes.pxd": lambda: enum_lines(integer_constants(kernelmodes, ("MODE_", "UPDATE_"))),
    "rownumbers.pxd": row_numbers,
    "inputkinds.pxd": _input_kinds,
    "picknumbers.pxd": lambda: _class_numbers(picknumbers.PREFIXES),
    "outcomes.pxd": lambda: _class_numbers(outcomes.PREFIXES),
    "containernumbers.pxd": _container_numbers,
    "sizenumbers.pxd": _size_numbers,
    "instructions.pxd": lambda: enum_lines(integer_constants(instructions, ("",))),
    "dwarf.pxd": lambda: enum_lines(integer_constants(dwarf, ("",))),
    "bitstreamnumbers.pxd": lambda: enum_lines(integer_constants(bitstreamnumbers, ("",))),
}


def header_texts() -> dict[str, str]:
    """Return the text of each header, by name."""
    return {name: HEAD + "\n".join(lines()) for name, lines in HEADERS.items()}


def _columns_text(native: Path) -> str:
    """Return the text of columns.pxd: for each row struct its columns as `name:code name:code ...`.

    Codes are those of Python's struct. `native` is the directory of the native sources.
    """
    lines = [COLUMNS_HEAD, "cdef extern from *:", '    """']
    names = []  # of rows, such as ENTITY_ROW
    codes = dict(STRUCT_CODES)  # by name of a type; names that `ctypedef` makes are added
    for file in ROW_FILES:
        text = re.sub(r"#.*", "", (native / file).read_text(encoding="utf-8"))
        for kind, name in re.findall(r"^ctypedef (\w+) (\w+)\s*$", text, re.MULTILINE):
            codes[name] = STRUCT_CODES.get(kind, "")  # "": a type of no column
        for name, body in re.findall(r"packed struct (\w+):\n((?:[ \t]+.*\n|\n)+)", text):
            fields = re.findall(r"^ +(\w+) (\w+)\s*$", body, re.MULTILINE)
            names.append(re.sub(r"(?<!^)([A-Z])", r"_\1", name).upper())
            row = " ".join(f"{field}:{codes[kind]}" for kind, field in fields)
            lines.append(f'    #define {names[-1]} "{row}"')
    lines.append('    """')
    lines.extend(f"    const char* {name}" for name in names)
    return "\n".join(lines) + "\n"


def write_headers(native: Path, directory: Path) -> None:
    """Write the headers that changed to `directory`; `native` has the native sources."""
    for name, text in (*header_texts().items(), (COLUMNS_NAME, _columns_text(native))):
        path = directory / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_headers(Path(sys.argv[1]), Path(sys.argv[2]))
