"""Writes the header of section kinds: their numbers, rows, and the rules that recognize them."""

from __future__ import annotations

from collections.abc import Iterator

from pylink.facts import elf, sectionkinds, sectiontable
from pylink.facts.headerlines import enum_lines, integer_constants
from pylink.facts.sectiontable import Kind

# Columns of the C rows: attributes of `Kind`, except for the ones that `_kind_row` sets. There,
# `given` is `has_bytes` and `what` is `features`; `_slot_numbers` explains `slot`.
_BYTES = """
    ranks[3] nobits given free owner patched mercury place omit link info size twin entsize stem
    exact brought entity_kind trait slot bytes_shrunk first_bank
"""
COLUMNS = {
    **dict.fromkeys(_BYTES.split(), "uint8_t"),
    **dict.fromkeys(("align", "what"), "uint16_t"),
    **dict.fromkeys(("type", "program", "flags"), "uint32_t"),
    **dict.fromkeys(("name", "merc", "first"), "const char*"),
}
# In native code, the bits of a 64-bit word say which sections a function has: 18 bits for banks of
# constants, the others (slots) for kinds.
MAX_SLOTS = 64 - 18
RULE_TEXT_SIZE = 40  # bytes of the array that a rule has for a section name
# The largest N of .nv.constantN that nvlink accepts; the type of bank N is that of bank 0 plus N.
MAX_BANK = 17
RANKS = len(sectiontable.LEAN_RANKS)  # the number of parts (RANK_) of the output file


def _kind_names() -> dict[str, int]:
    """Return the numbers of all kinds by their C names, such as K_TEXT."""
    kinds = {kind.number for kind in sectiontable.kinds()}
    names: dict[str, int] = {}
    # The module's constants come in the order of their definition. PACKED_ALIGN, which is not the
    # number of a kind, is skipped.
    for name, value in integer_constants(sectionkinds, ("",)).items():
        if value == len(names) and value in kinds and len(names) < len(kinds):
            names[f"K_{name}"] = value
    if len(names) != len(kinds):
        raise ValueError("kinds of sections are numbered from 0 on, without gaps")
    return names


def _slot_numbers(kinds: tuple[Kind, ...]) -> dict[int, int]:
    """Return, by kind of section that a function can have, the number of its bit (slot).

    The bits are those of the word that `MAX_SLOTS` limits.
    """
    owned = [kind.number for kind in kinds if kind.owner != sectionkinds.NULL]
    slot_of = {number: slot for slot, number in enumerate([sectionkinds.CAPMERC, *owned])}
    if len(slot_of) > MAX_SLOTS:
        raise ValueError(f"a function can have {MAX_SLOTS} kinds of sections")
    return slot_of


def _kind_row(kind: Kind, slot: int) -> str:
    """Return the C row of a kind; `slot` is the number of its bit, or 0."""
    name = kind.names[0].decode().replace("{bank}", "") if kind.names else ""
    values = {
        **{column: getattr(kind, column, 0) for column in COLUMNS},
        "ranks[3]": "{" + ", ".join(map(str, kind.ranks)) + "}",
        "given": kind.has_bytes,
        "what": kind.features,
        "mercury": kind.flags & elf.SHF_MERCURY != 0,
        "slot": slot,
        "type": kind.types[0],
        "name": f'"{name}"',
        "merc": f'"{kind.merc}"',
        "first": f'"{kind.first}"',
    }
    return "{" + ", ".join(v if isinstance(v, str) else str(int(v)) for v in values.values()) + "}"


def sort_by_rules(kinds: tuple[Kind, ...]) -> list[Kind]:
    """Return the kinds in the order of their rules.

    Names without the number of a bank come first, then names with one, then kinds without names.
    """
    return sorted(kinds, key=lambda kind: (not kind.names, kind.banked))


def rule_rows(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """Yield, for each name of each kind, a KindRule by which the reader recognizes sections."""
    for kind in sort_by_rules(kinds):
        for name, section_type in zip(kind.names or (b"",), kind.types, strict=True):
            stem, _, after_bank = name.partition(b"{bank}")
            exact = not name.endswith(b".") and not kind.banked
            if len(stem) > RULE_TEXT_SIZE:
                raise ValueError(f"{name!r} is too long for a rule")
            # 0 for a name without a bank, or else 1 more than the characters after its number.
            banked = 1 + len(after_bank) if kind.banked else 0
            match = f"{section_type}u, {kind.flags & kind.mask}u, {kind.mask}u, {kind.number}"
            yield f'{{{match}, {len(stem)}, {exact:d}, {banked}, "{stem.decode()}"}}'


def tables(kinds: tuple[Kind, ...]) -> Iterator[str]:
    """Yield lines that define the C tables of section kinds, and of rules to recognize sections."""
    columns = [f"        {c_type} {name}" for name, c_type in COLUMNS.items()]
    rule = [
        "        uint32_t type, flags, mask",
        "        uint8_t kind, size, exact, banked",
        f"        char text[{RULE_TEXT_SIZE}]",
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
    slot_of = _slot_numbers(kinds)
    yield from (f"        {_kind_row(kind, slot_of.get(kind.number, 0))}," for kind in kinds)
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
    yield from enum_lines({"RULE_COUNT": len(rules)})


def rules_by_type() -> Iterator[str]:
    """Yield the lines of sectionrules.pxd: the rules for each low byte of a section type, in order.

    Rules for sections of functions, such as `.text.*`, come first, since a cubin has many of them.
    But rules of kinds that also take sections with other names keep their order, because the first
    such kind takes the section. No result changes: of the other rules only those for banks fit the
    same names, and they stay last. Without this index the reader spent a third of its time on rules
    for other types.
    """
    rules: list[list[int]] = [[] for _ in range(256)]  # by low byte: numbers of rules
    of_functions = set()  # numbers of the rules that come first
    number = 0  # of the rule, its index in RULE
    for kind in sort_by_rules(sectiontable.kinds()):
        for name, first_type in zip(kind.names or (b"",), kind.types, strict=True):
            types = range(first_type, first_type + MAX_BANK + 1) if kind.banked else [first_type]
            for low in {section_type & 0xFF for section_type in types}:
                rules[low].append(number)
            if name.endswith(b".") and not kind.banked and kind.free == sectiontable.FREE_NEVER:
                of_functions.add(number)
            number += 1
    for rules_of_byte in rules:
        rules_of_byte.sort(key=lambda rule: rule not in of_functions)
    # By low byte: the index in `in_order` of its first rule.
    first = [sum(map(len, rules[:low])) for low in range(257)]
    in_order = [rule for rules_of_byte in rules for rule in rules_of_byte]
    yield from enum_lines({"MAX_BANK": MAX_BANK})
    yield "cdef extern from *:"
    yield '    """'
    yield f"    static const unsigned char FIRST_RULE[] FACTS_UNUSED = {{{_byte_list(first)}}};"
    yield f"    static const unsigned char RULES[] FACTS_UNUSED = {{{_byte_list(in_order)}}};"
    yield '    """'
    yield "    const uint8_t FIRST_RULE[]"
    yield "    const uint8_t RULES[]"
    yield ""


def _byte_list(values: list[int]) -> str:
    """Return the initializer of a C array of bytes, without braces."""
    if max(values) > 0xFF:
        raise ValueError("too many rules for a byte")
    return ", ".join(map(str, values))


def section_kinds() -> Iterator[str]:
    """Yield the lines of sectionkinds.pxd: K_ numbers, constants of the table, and KindFacts."""
    kinds = sectiontable.kinds()
    yield from enum_lines({**_kind_names(), "KIND_COUNT": len(kinds)})
    banks = ("POOL_", "USER_", "PIC_")
    prefixes = ("FREE_", "PLACE_", "RANK_", "OMIT_", "HEAD_", "SIZE_", "IS_", *banks)
    yield from enum_lines(integer_constants(sectiontable, prefixes))
    yield from enum_lines(integer_constants(sectionkinds, ("PACKED_",)))
    yield from tables(kinds)
