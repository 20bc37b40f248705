"""The facts as a header for the kernels, made from the tables when native code is built.

    python -m pylink.facts.header FOLDER

writes FOLDER/facts.pxd; setup.py does the same. Tables become constants of C, so that nothing is
packed or read when a link starts. An unchanged header keeps its time, and nothing is built again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pylink.facts import elf, sectionkinds
from pylink.facts.sectionkinds import Kind

NAME = "facts.pxd"
HEAD = """\
# Made by pylink.facts.header from the tables beside it; a change there changes this file.

from libc.stdint cimport uint8_t, uint16_t, uint32_t

"""
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
    "align": "uint16_t",
    "type": "uint32_t",
    "program": "uint32_t",
    "flags": "uint32_t",
}
RULE_TEXT = 40


def numbers(module: object, prefixes: tuple[str, ...]) -> dict[str, int]:
    """The integer constants of a module whose names begin so."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, int)}
    return {name: value for name, value in found.items() if name.startswith(prefixes)}


def kind_names() -> dict[str, int]:
    """K_TEXT and the like."""
    kinds = {kind.number for kind in sectionkinds.kinds()}
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


def kind_row(kind: Kind) -> str:
    values = {
        **{name: getattr(kind, name, 0) for name in COLUMNS},
        "ranks[3]": "{" + ", ".join(map(str, kind.ranks)) + "}",
        "mercury": kind.flags & elf.SHF_MERCURY != 0,
        "type": kind.types[0],
    }
    return "{" + ", ".join(v if isinstance(v, str) else str(int(v)) for v in values.values()) + "}"


def rule_rows(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """A row for each name of each kind, the particular ones before those that fit anything."""
    for kind in sorted(kinds, key=lambda kind: (not kind.names, kind.banked)):
        for name, type_ in zip(kind.names or (b"",), kind.types, strict=True):
            stem, _, rest = name.partition(b"{bank}")
            exact = not stem.endswith(b".") and bool(name) and not kind.banked
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
    yield "    #ifdef __GNUC__"
    yield "    #define FACTS_UNUSED __attribute__((unused))"
    yield "    #else"
    yield "    #define FACTS_UNUSED"
    yield "    #endif"
    yield "    typedef struct {"
    yield from (f"{line};" for line in columns)
    yield "    } KindFacts;"
    yield "    static const KindFacts KIND[] FACTS_UNUSED = {"
    yield from (f"        {kind_row(kind)}," for kind in kinds)
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
    yield "    const KindFacts KIND[]"
    yield "    const KindRule RULE[]"
    yield ""
    yield from enum({"RULE_COUNT": len(rules)})


def header() -> str:
    """The text of facts.pxd."""
    kinds = sectionkinds.kinds()
    lines = [
        *enum(kind_names()),
        *enum(
            numbers(
                sectionkinds,
                ("FREE_", "PLACE_", "RANK_", "OMIT_", "HEAD_", "SIZE_"),
            )
        ),
        *enum(numbers(elf, ("SHT_", "SHF_"))),
        *tables(kinds),
    ]
    return HEAD + "\n".join(lines)


def write(folder: Path) -> None:
    """Bring FOLDER/facts.pxd up to date."""
    text = header()
    path = folder / NAME
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
