"""The header of the kinds of sections: their numbers, their rows, and the rules that tell them."""

from __future__ import annotations

from collections.abc import Iterator

from pylink.facts import elf, sectionkinds, sectiontable
from pylink.facts.headerlines import enum, numbers
from pylink.facts.sectiontable import Kind

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
# Bits of a 64-bit word for the kinds of sections that a function has one of, after those of banks.
SLOTS = 64 - 18
RULE_TEXT = 40
# Of .nv.constantN, whose type is that of bank 0 plus N: R_CUDA_CONST_FIELD has five bits for N.
MAX_BANK = 17
RANKS = len(sectiontable.LEAN_RANKS)


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


def slots(kinds: tuple[Kind, ...]) -> dict[int, int]:
    """A number for each kind of section that belongs to a function, from 0 on."""
    owned = [kind.number for kind in kinds if kind.owner != sectionkinds.NULL]
    slot_of = {number: slot for slot, number in enumerate([sectionkinds.CAPMERC, *owned])}
    if len(slot_of) > SLOTS:
        raise ValueError(f"a function can have {SLOTS} kinds of sections")
    return slot_of


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


def ordered(kinds: tuple[Kind, ...]) -> list[Kind]:
    """Kinds in the order of their rules: the particular ones before those that fit anything."""
    return sorted(kinds, key=lambda kind: (not kind.names, kind.banked))


def rule_rows(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """A row for each name of each kind."""
    for kind in ordered(kinds):
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


def rules_by_type() -> Iterator[str]:
    """The rules that a section's type leaves, by the low byte of the type, in their order.

    A reader that tried every rule spent a third of its time on those of other types.
    """
    rules: list[list[int]] = [[] for _ in range(256)]
    number = 0
    for kind in ordered(sectiontable.kinds()):
        for type_ in kind.types:
            types = range(type_, type_ + MAX_BANK + 1) if kind.banked else [type_]
            for low in {each & 0xFF for each in types}:
                rules[low].append(number)
            number += 1
    first = [sum(map(len, rules[:low])) for low in range(257)]
    listed = [number for each in rules for number in each]
    yield from enum({"MAX_BANK": MAX_BANK})
    yield "cdef extern from *:"
    yield '    """'
    yield f"    static const unsigned char FIRST_RULE[] FACTS_UNUSED = {{{_joined(first)}}};"
    yield f"    static const unsigned char RULES[] FACTS_UNUSED = {{{_joined(listed)}}};"
    yield '    """'
    yield "    const uint8_t FIRST_RULE[]"
    yield "    const uint8_t RULES[]"
    yield ""


def _joined(values: list[int]) -> str:
    if max(values) > 0xFF:
        raise ValueError("too many rules for a byte")
    return ", ".join(map(str, values))


def section_kinds() -> Iterator[str]:
    kinds = sectiontable.kinds()
    yield from enum({**kind_names(), "KIND_COUNT": len(kinds)})
    banks = ("POOL_", "USER_", "PIC_")
    prefixes = ("FREE_", "PLACE_", "RANK_", "OMIT_", "HEAD_", "SIZE_", "IS_", *banks)
    yield from enum(numbers(sectiontable, prefixes))
    yield from tables(kinds)
