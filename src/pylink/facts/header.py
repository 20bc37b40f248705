"""Headers for the kernels, made when native code is built.

    python -m pylink.facts.header NATIVE FOLDER

writes a header for each subject from the tables beside this, and FOLDER/columns.pxd, by which
Python knows the columns of rows, from the rows of the native sources; setup.py does the same.
Tables become constants of C, so that nothing is packed or read when a link starts. An unchanged
header keeps its time, and nothing that uses it alone is built again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pylink.facts import (
    attributes,
    compat,
    elf,
    inherited,
    objectformats,
    releases,
    relocations,
    sectionkinds,
    sectiontable,
    target,
)
from pylink.facts.sectiontable import Kind

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
# Where the rows of tables stand.
ROW_FILES = ("tables/rows.pxd", "tables/poolrows.pxd", "layout/sharedrows.pxd")
CODES = {
    "uint8_t": "B",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
}
# The columns that kernels test, in the order of the C rows.
COLUMNS = {
    "ranks[3]": "uint8_t",
    "nobits": "uint8_t",
    "given": "uint8_t",
    "free": "uint8_t",
    "owner": "uint8_t",
    "patched": "uint8_t",
    "mercury": "uint8_t",
    "place": "uint8_t",
    "omit": "uint8_t",
    "link": "uint8_t",
    "info": "uint8_t",
    "size": "uint8_t",
    "twin": "uint8_t",
    "entsize": "uint8_t",
    "stem": "uint8_t",
    "exact": "uint8_t",
    "brought": "uint8_t",
    "holds": "uint8_t",
    "trait": "uint8_t",
    "slot": "uint8_t",
    "shrinks": "uint8_t",
    "first_bank": "uint8_t",
    "align": "uint16_t",
    "what": "uint16_t",
    "type": "uint32_t",
    "program": "uint32_t",
    "flags": "uint32_t",
    "name": "const char*",
    "merc": "const char*",
    "first": "const char*",
}
# Bits of a 64-bit word for the kinds of sections that a function has one of, behind those of banks.
SLOTS = 64 - 18
RULE_TEXT = 40
RANKS = len(sectiontable.LEAN_RANKS)


def numbers(module: object, prefixes: tuple[str, ...]) -> dict[str, int]:
    """The integer constants of a module whose names begin so."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, int)}
    return {name: value for name, value in found.items() if name.startswith(prefixes)}


def kind_names() -> dict[str, int]:
    """K_TEXT and the like."""
    kinds = {kind.number for kind in sectiontable.kinds()}
    names: dict[str, int] = {}
    for name, value in numbers(sectionkinds, ("",)).items():
        if value == len(names) and value in kinds and len(names) < len(kinds):
            names[f"K_{name}"] = value
    if len(names) != len(kinds):
        raise ValueError("kinds of sections are numbered from 0 on, without gaps")
    return names


def enum(names: Mapping[str, int]) -> Iterator[str]:
    yield "cdef enum:"
    for name, value in names.items():
        yield f"    {name} = {value:#x}U" if value > 0x7FFFFFFF else f"    {name} = {value}"
    yield ""


def table(kind: str, columns: Iterable[str], name: str, rows: Iterable[str]) -> Iterator[str]:
    """An array of structs of a kind, in C, and what Cython knows of it."""
    yield "cdef extern from *:"
    yield '    """'
    yield "    typedef struct {"
    yield from (f"{line};" for line in columns)
    yield f"    }} {kind};"
    yield f"    static const {kind} {name}[] FACTS_UNUSED = {{"
    yield from (f"        {row}," for row in rows)
    yield "    };"
    yield '    """'
    yield f"    ctypedef struct {kind}:"
    yield from columns
    yield f"    const {kind} {name}[]"
    yield ""


def slots(kinds: tuple[Kind, ...]) -> dict[int, int]:
    """A number for each kind of section that belongs to a function, from 0 on."""
    owned = [kind.number for kind in kinds if kind.owner != sectionkinds.NULL]
    found = {number: slot for slot, number in enumerate([sectionkinds.CAPMERC, *owned])}
    if len(found) > SLOTS:
        raise ValueError(f"a function can have {SLOTS} kinds of sections")
    return found


def kind_row(kind: Kind, slot: int) -> str:
    name = kind.names[0].decode().replace("{bank}", "") if kind.names else ""
    values = {
        **{column: getattr(kind, column, 0) for column in COLUMNS},
        "ranks[3]": "{" + ", ".join(map(str, kind.ranks)) + "}",
        "mercury": kind.flags & elf.SHF_MERCURY != 0,
        "slot": slot,
        "type": kind.types[0],
        "name": f'"{name}"',
        "merc": f'"{kind.merc}"',
        "first": f'"{kind.first}"',
    }
    return "{" + ", ".join(v if isinstance(v, str) else str(int(v)) for v in values.values()) + "}"


def rule_rows(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """A row for each name of each kind, the particular ones before those that fit anything."""
    for kind in sorted(kinds, key=lambda kind: (not kind.names, kind.banked)):
        for name, type_ in zip(kind.names or (b"",), kind.types, strict=True):
            stem, _, rest = name.partition(b"{bank}")
            exact = not name.endswith(b".") and not kind.banked
            if len(stem) > RULE_TEXT:
                raise ValueError(f"{name!r} is too long for a rule")
            banked = 1 + len(rest) if kind.banked else 0
            match = f"{type_}u, {kind.flags & kind.mask}u, {kind.mask}u, {kind.number}"
            yield f'{{{match}, {len(stem)}, {exact:d}, {banked}, "{stem.decode()}"}}'


def tables(kinds: tuple[Kind, ...]) -> Iterator[str]:
    columns = [f"        {type_} {name}" for name, type_ in COLUMNS.items()]
    rule = [
        "        uint32_t type, flags, mask",
        "        uint8_t kind, size, exact, banked",
        f"        char text[{RULE_TEXT}]",
    ]
    rules = list(rule_rows(kinds))
    yield "cdef extern from *:"
    yield '    """'
    yield "    #include <stdint.h>"
    yield "    typedef struct {"
    yield from (f"{line};" for line in columns)
    yield "    } KindFacts;"
    places = (str(sectiontable.LEAN_RANKS.index(rank)) for rank in range(RANKS))
    yield f"    static const uint8_t LEAN_PLACE[] FACTS_UNUSED = {{{', '.join(places)}}};"
    yield "    static const KindFacts KIND[] FACTS_UNUSED = {"
    numbered = slots(kinds)
    yield from (f"        {kind_row(kind, numbered.get(kind.number, 0))}," for kind in kinds)
    yield "    };"
    yield "    typedef struct {"
    yield from (f"{line};" for line in rule)
    yield "    } KindRule;"
    yield "    static const KindRule RULE[] FACTS_UNUSED = {"
    yield from (f"        {row}," for row in rules)
    yield "    };"
    yield '    """'
    yield "    ctypedef struct KindFacts:"
    yield from columns
    yield "    ctypedef struct KindRule:"
    yield from rule
    yield "    const uint8_t LEAN_PLACE[]"
    yield "    const KindFacts KIND[]"
    yield "    const KindRule RULE[]"
    yield ""
    yield from enum({"RULE_COUNT": len(rules)})


# The columns of relocation types.
RELOCATION_COLUMNS = ("form", "shift", "width", "bytes", "loader", "mark", "clear", "field")
MERCURY = 0x10000


def relocation_names() -> dict[str, int]:
    """R_CUDA_ABS32_LO_32 and the like; R_MERCURY_ names are those of the plain twins."""
    names = {f"R_CUDA_{row.name}": row.number for row in relocations.RELOCATIONS}
    for number, twin in relocations.MERCURY_TWINS.items():
        names.setdefault(f"R_MERCURY_{twin}", number)
    names["R_MERCURY_CODE_OFFSET32"] = relocations.MERCURY_CODE_OFFSET32
    return names


def relocation_rows(names: Mapping[str, int]) -> Iterator[str]:
    """By number, the mercury ones behind the plain ones: see RelocationFacts."""
    forms = {form: number for number, form in enumerate(relocations.FORMS)}
    plain = relocations.RELOCATIONS
    by_name = {row.name: row for row in plain}
    for row in plain:
        instead = names[f"R_CUDA_{row.plain}"] if row.plain else row.number
        values = (forms[row.form], row.first, row.bits, row.size, row.loader, row.mark, row.clear)
        yield "{" + ", ".join(str(int(value)) for value in (*values, row.number, instead)) + "}"
    for number in range(len(plain), LAST_PLAIN):
        yield f"{{0, 0, 0, 8, 0, 0, 0, {number}, {number}}}"
    for number in range(MERCURY, LAST_MERCURY):
        twin = by_name.get(relocations.MERCURY_TWINS.get(number, ""))
        field = twin.number if twin and number in relocations.MERCURY_DATA else 0
        if number == relocations.MERCURY_CODE_OFFSET32:
            field = names["R_CUDA_32"]
        instead = names[f"R_MERCURY_{twin.plain}"] if twin and twin.plain else number
        loader = number == names["R_MERCURY_G64"]
        clear = twin is not None and twin.clear
        yield f"{{0, 0, 0, 4, {loader:d}, 0, {clear:d}, {field}, {instead}}}"


LAST_PLAIN = max(release.relocations for release in releases.RELEASES)
LAST_MERCURY = max(release.mercury_relocations for release in releases.RELEASES)


def relocation_tables() -> Iterator[str]:
    names = relocation_names()
    rows = list(relocation_rows(names))
    row = [f"        uint8_t {column}" for column in RELOCATION_COLUMNS]
    row.append("        uint32_t plain")
    yield from enum({f"FORM_{form}": number for number, form in enumerate(relocations.FORMS)})
    yield from enum(names)
    yield from enum(
        {
            "PLAIN_TYPES": LAST_PLAIN,
            "FIRST_MERCURY_TYPE": MERCURY,
            "MERCURY_TYPES": LAST_MERCURY - MERCURY,
        }
    )
    yield from table("RelocationFacts", row, "RELOCATION", rows)
    yield "cdef inline const RelocationFacts* facts_of(uint32_t type) noexcept nogil:"
    yield '    """The row of a type that the reader let through."""'
    yield "    return &RELOCATION["
    yield "        type if type < PLAIN_TYPES else type - FIRST_MERCURY_TYPE + PLAIN_TYPES]"
    yield ""


def attribute_tables() -> Iterator[str]:
    """EIATTR_ numbers, how they merge, and by number how many words the link reads of a record."""
    yield from enum(
        {f"EIATTR_{name}": number for number, name in attributes.EIATTR.items() if number > 1}
    )
    yield from enum({"FIRST_ISA_VERSION": attributes.FIRST_ISA_VERSION})
    yield from enum(numbers(inherited, ("JOIN_",)))
    yield from enum(numbers(compat, ("COMPAT_",)))
    rows = (
        f"{{{row.words}, {row.of_function:d}, {row.symbols:d}, {row.entry}}}"
        for row in map(attributes.facts, range(256))
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


# The columns of object formats.
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


def format_tables() -> Iterator[str]:
    """The layouts of ELF headers, by number."""
    rows = [
        "{" + ", ".join(f"{getattr(row, column):#x}u" for column in FORMAT_COLUMNS) + "}"
        for row in objectformats.OBJECT_FORMATS
    ]
    columns = [f"        {type_} {name}" for name, type_ in FORMAT_COLUMNS.items()]
    yield from enum({"FORMAT_COUNT": len(rows)})
    yield from table("FormatFacts", columns, "FORMAT", rows)


def section_kinds() -> Iterator[str]:
    kinds = sectiontable.kinds()
    yield from enum({**kind_names(), "KIND_COUNT": len(kinds)})
    prefixes = ("FREE_", "PLACE_", "RANK_", "OMIT_", "HEAD_", "SIZE_", "IS_", "POOL_", "USER_")
    yield from enum(numbers(sectiontable, prefixes))
    yield from tables(kinds)


def traits() -> Iterator[str]:
    """Families, and what tells them and releases apart."""
    yield from enum(numbers(target, ("FAMILY_A", "FAMILY_B", "FAMILY_C")))
    yield from enum({"FAMILY_COUNT": len(target.FAMILY_TRAITS)})
    yield from enum({**numbers(releases, ("TRAIT_",)), **numbers(target, ("TRAIT_",))})
    bits = ", ".join(map(str, target.FAMILY_TRAITS))
    yield "cdef extern from *:"
    yield '    """'
    yield f"    static const unsigned FAMILY_TRAITS[] FACTS_UNUSED = {{{bits}}};"
    yield '    """'
    yield "    const uint32_t FAMILY_TRAITS[]"
    yield ""


# By subject, so that a change of one fact builds what uses it.
HEADERS = {
    "elfnumbers.pxd": lambda: enum(numbers(elf, ("SHT_", "SHF_"))),
    "sectionkinds.pxd": section_kinds,
    "relocationtypes.pxd": relocation_tables,
    "attributetypes.pxd": attribute_tables,
    "objectformats.pxd": format_tables,
    "traits.pxd": traits,
}


def headers() -> dict[str, str]:
    """The text of each header, by its name."""
    return {name: HEAD + "\n".join(lines()) for name, lines in HEADERS.items()}


def columns(native: Path) -> str:
    """The text of columns.pxd: by row, `name:code ...` in the codes of Python's struct."""
    lines = [COLUMNS_HEAD, "cdef extern from *:", '    """']
    names = []
    for file in ROW_FILES:
        text = re.sub(r"#.*", "", (native / file).read_text(encoding="utf-8"))
        for name, body in re.findall(r"packed struct (\w+):\n((?:[ \t]+.*\n|\n)+)", text):
            fields = re.findall(r"^ +(\w+) (\w+)\s*$", body, re.MULTILINE)
            names.append(re.sub(r"(?<!^)([A-Z])", r"_\1", name).upper())
            row = " ".join(f"{field}:{CODES[kind]}" for kind, field in fields)
            lines.append(f'    #define {names[-1]} "{row}"')
    lines.append('    """')
    lines.extend(f"    const char* {name}" for name in names)
    return "\n".join(lines) + "\n"


def write(native: Path, folder: Path) -> None:
    """Bring the headers in `folder` up to date."""
    for name, text in (*headers().items(), (COLUMNS_NAME, columns(native))):
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
