"""What can be changed in a cubin: a row per kind of change, each of a part that a linker reads.

What a sound edit leaves could have come from a compiler: a program, perhaps a wrong one, of which
both linkers must make the same. What the others leave breaks a rule of the format, and nothing says
what a linker has to make of that, but that it ends with an image or an error. From sm_100 on a
function is there twice, and an edit of its plain form alone breaks such a rule as well.

An edit takes a `Draft`, random numbers and the other cubins of the program, and changes one thing,
or nothing where the cubin has no such part. Values are mostly such as other rows have, or edges:
what a reader refuses at sight finds little.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from helpers.cubin_builder import SYM

from fuzz.draft import (
    ENTSIZE,
    FIELDS,
    INFO,
    LINK,
    NAME,
    OFFSET,
    RELA_FIELDS,
    SIZE,
    SYMBOL_FIELDS,
    TYPE,
    Draft,
)

Edit = Callable[[Draft, Random, Sequence[bytes]], None]


@dataclass(frozen=True)
class Row:
    """An edit, and whether what it leaves is sound; if so, also where functions are there twice."""

    edit: Edit
    sound: bool
    everywhere: bool = False

    def is_sound(self, arch: str) -> bool:
        """Whether what it leaves of a cubin for this target, such as 90a, is sound."""
        return self.sound and (self.everywhere or int(arch.rstrip("af")) < FIRST_TWICE)


FIRST_TWICE = 100

EDGES = (0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
EXTREMES = ((1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 63, (1 << 64) - 1)
RELA, REL = 4, 9
SHT_CUDA_INFO, SHT_CUDA_CALLGRAPH, SHT_CUDA_PROTOTYPE = 0x70000000, 0x70000001, 0x70000002
CUDA_TYPES = (*range(0x70000000, 0x70000013), 0x70000015, 0x70000064, 0x70000065, 0x70000066)
SHT_CUDA_MERC_INFO = 0x70000083
REGCOUNT = 0x2F
# Beside it EIATTR_FRAME_SIZE, EIATTR_MIN_STACK_SIZE, EIATTR_MAX_STACK_SIZE.
COUNTS = (REGCOUNT, 0x11, 0x12, 0x23)
# Relocation types lie below 128; what a mercury capsule has, from 1 << 16 on.
MOST_RELOCATION = 0x50


def number_near(rng: Random, value: int, size: int) -> int:
    """A value that may stand where `value` does, in a field of `size` bytes."""
    return rng.choice(
        (
            value + rng.choice((-16, -8, -4, -1, 1, 4, 8, 16)),
            value ^ (1 << rng.randrange(8 * size)),
            rng.choice(EDGES),
            rng.choice(EXTREMES) if rng.random() < 0.3 else value * 2,
            rng.randrange(64),
        )
    )


def header_field(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    at, size = rng.choice(((4, 1), (7, 1), (8, 1), (16, 2), (20, 4), (48, 4), (60, 2), (62, 2)))
    draft.poke(at, size, number_near(rng, draft.peek(at, size), size))


def header_flags(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """The architecture and what is said beside it."""
    draft.poke(48, 4, draft.peek(48, 4) ^ (1 << rng.randrange(32)))


def section_field(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    number = rng.randrange(1, len(draft.sections))
    field = rng.randrange(len(FIELDS))
    draft.set(number, field, number_near(rng, draft.sections[number][field], FIELDS[field][1]))


def section_like_another(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A field gets the value that another section has there."""
    left, right = (rng.randrange(1, len(draft.sections)) for _ in range(2))
    field = rng.choice((NAME, TYPE, LINK, INFO, OFFSET, SIZE, ENTSIZE))
    draft.set(left, field, draft.sections[right][field])


def section_type(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    draft.set(rng.randrange(1, len(draft.sections)), TYPE, rng.choice((1, 4, 8, 9, *CUDA_TYPES)))


def section_cut(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Fewer whole entries, or a few bytes less."""
    number = rng.randrange(1, len(draft.sections))
    row = draft.sections[number]
    step = rng.choice((row[ENTSIZE] or 4, 1, 4))
    draft.set(number, SIZE, max(0, row[SIZE] - step * rng.randrange(1, 4)))


def section_doubled(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """The entries of a table once more, or some of them."""
    tables = [n for n, row in enumerate(draft.sections) if row[ENTSIZE] and row[TYPE] != 8]
    if not tables:
        return
    number = rng.choice(tables)
    entry = draft.sections[number][ENTSIZE]
    held = draft.contents(number)
    if entry > len(held) or entry > 1 << 10:
        return
    start = rng.randrange(len(held) // entry) * entry
    draft.put(number, held + held[start : start + entry * rng.randrange(1, 4)])


def section_emptied(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    draft.set(rng.randrange(1, len(draft.sections)), SIZE, 0)


def sections_swapped(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Two rows of the section table change places; who refers to them by number is not told."""
    left, right = (rng.randrange(1, len(draft.sections)) for _ in range(2))
    rows = list(draft.sections[left]), list(draft.sections[right])
    for field in range(len(FIELDS)):
        draft.set(left, field, rows[1][field])
        draft.set(right, field, rows[0][field])


def name_byte(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A byte of a name of a section or symbol."""
    tables = draft.of_type(3)
    if not tables:
        return
    row = draft.sections[rng.choice(tables)]
    at = row[OFFSET] + rng.randrange(row[SIZE])
    draft.poke(at, 1, rng.choice((0, 0x2E, 0x41, 0x5F, 0x1B, 0x80, draft.peek(at, 1) ^ 1)))


def section_name_offset(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A name that is the end of another one."""
    number = rng.randrange(1, len(draft.sections))
    draft.set(number, NAME, draft.sections[number][NAME] + rng.choice((1, 3, 5, -1)))


def _symbol(draft: Draft, rng: Random) -> int | None:
    count = draft.symbol_count
    return rng.randrange(count) if count else None


def symbol_field(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    number = _symbol(draft, rng)
    if number is None:
        return
    at, size = rng.choice(SYMBOL_FIELDS)
    at += draft.symbol_at(number)
    draft.poke(at, size, number_near(rng, draft.peek(at, size), size))


def symbol_like_another(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    left, right = _symbol(draft, rng), _symbol(draft, rng)
    if left is None or right is None:
        return
    at, size = rng.choice(SYMBOL_FIELDS)
    draft.poke(draft.symbol_at(left) + at, size, draft.peek(draft.symbol_at(right) + at, size))


def symbol_binding(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Local, global or weak, whatever the section thinks of it."""
    number = _symbol(draft, rng)
    if number is not None:
        at = draft.symbol_at(number) + 4
        draft.poke(at, 1, rng.choice((0, 0x10, 0x20)) | draft.peek(at, 1) & 15)


def symbol_visibility(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    number = _symbol(draft, rng)
    if number is not None:
        at = draft.symbol_at(number) + 5
        draft.poke(at, 1, draft.peek(at, 1) ^ rng.choice((1, 2, 3, 0x10, 0x20, 0x40, 0x80, 8)))


def symbol_undefined(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    number = _symbol(draft, rng)
    if number is not None:
        draft.poke(draft.symbol_at(number) + 6, 2, rng.choice((0, 0xFFF2, 0xFFF1, 0xFFFF)))


def symbols_swapped(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    left, right = _symbol(draft, rng), _symbol(draft, rng)
    if left is None or right is None:
        return
    places = draft.symbol_at(left), draft.symbol_at(right)
    rows = [bytes(draft.data[at : at + SYM.size]) for at in places]
    for at, row in zip(places, reversed(rows), strict=True):
        if len(row) == SYM.size and at + SYM.size <= len(draft.data):
            draft.data[at : at + SYM.size] = row


def symbol_name_of_another_file(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A name that another file of the program has: clashes of all kinds."""
    number = _symbol(draft, rng)
    if number is None or not others:
        return
    other = Draft(rng.choice(list(others)))
    if not other.symbol_count or draft.symtab is None:
        return
    name = other.symbol_name(rng.randrange(other.symbol_count))
    strings = draft.sections[draft.symtab][LINK]
    if not 0 < strings < len(draft.sections):
        return
    held = draft.contents(strings)
    draft.put(strings, held + name + b"\0")
    draft.poke(draft.symbol_at(number), 4, len(held))


def _relocation(draft: Draft, rng: Random, *names: bytes) -> tuple[int, int] | None:
    """The place of an entry in the file and its size, of sections whose names begin so."""
    tables = [n for n in draft.of_type(RELA, REL) if not names or draft.name(n).startswith(names)]
    if not tables:
        return None
    row = draft.sections[rng.choice(tables)]
    size = 24 if row[TYPE] == RELA else 16
    if row[SIZE] < size or row[SIZE] > len(draft.data):
        return None
    return row[OFFSET] + rng.randrange(row[SIZE] // size) * size, size


def _entries(draft: Draft, table: int) -> range:
    """The places of all entries of a relocation section."""
    row = draft.sections[table]
    size = 24 if row[TYPE] == RELA else 16
    return range(row[OFFSET], min(row[OFFSET] + row[SIZE], len(draft.data)), size)


def relocation_field(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    entry = _relocation(draft, rng)
    if entry is None:
        return
    at, size = rng.choice(RELA_FIELDS[: 4 if entry[1] == 24 else 3])
    at += entry[0]
    draft.poke(at, size, number_near(rng, draft.peek(at, size), size))


def relocation_like_another(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    left, right = _relocation(draft, rng), _relocation(draft, rng)
    if left is None or right is None:
        return
    at, size = rng.choice(RELA_FIELDS[: 4 if left[1] == right[1] == 24 else 3])
    draft.poke(left[0] + at, size, draft.peek(right[0] + at, size))


def relocation_type(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    entry = _relocation(draft, rng)
    if entry is not None:
        draft.poke(entry[0] + 8, 4, rng.randrange(MOST_RELOCATION))


def relocation_symbol(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    entry, symbol = _relocation(draft, rng), _symbol(draft, rng)
    if entry is not None and symbol is not None:
        draft.poke(entry[0] + 12, 4, symbol)


def _records(contents: bytes) -> list[tuple[int, int]]:
    """Start and size of each attribute record, up to the first that is damaged."""
    found = []
    at = 0
    while at + 4 <= len(contents):
        size = 4
        if contents[at] == 4:
            size += int.from_bytes(contents[at + 2 : at + 4], "little")
        if at + size > len(contents):
            break
        found.append((at, size))
        at += size
    return found


def _attribute(draft: Draft, rng: Random) -> tuple[int, int, int] | None:
    """Section, start and size of an attribute record."""
    tables = draft.of_type(SHT_CUDA_INFO)
    if not tables:
        return None
    number = rng.choice(tables)
    records = _records(draft.contents(number))
    return (number, *rng.choice(records)) if records else None


def attribute_byte(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Format, attribute, size or value of a record."""
    record = _attribute(draft, rng)
    if record is None:
        return
    number, start, size = record
    at = draft.sections[number][OFFSET] + start + rng.randrange(min(size, 16))
    draft.poke(at, 1, number_near(rng, draft.peek(at, 1), 1))


def attribute_value(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A word of the value, where symbols and counts stand."""
    record = _attribute(draft, rng)
    if record is None or record[2] < 8:
        return
    number, start, size = record
    at = draft.sections[number][OFFSET] + start + 4 * rng.randrange(1, size // 4)
    draft.poke(at, 4, number_near(rng, draft.peek(at, 4), 4))


def attribute_kind(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    record = _attribute(draft, rng)
    if record is not None:
        at = draft.sections[record[0]][OFFSET] + record[1] + 1
        draft.poke(at, 1, rng.randrange(0x70))


def attribute_moved(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A record of one function in the section of another, or twice, or left out."""
    record = _attribute(draft, rng)
    target = _attribute(draft, rng)
    if record is None or target is None:
        return
    number, start, size = record
    piece = draft.contents(number)[start : start + size]
    held = draft.contents(target[0])
    if rng.random() < 0.3:
        draft.put(number, draft.contents(number)[:start] + draft.contents(number)[start + size :])
    else:
        draft.put(target[0], held[: target[1]] + piece + held[target[1] :])


def _words(draft: Draft, rng: Random, sections: Sequence[int], entry: int = 4) -> int | None:
    """The place of an aligned word in one of these sections."""
    usable = [n for n in sections if entry <= draft.sections[n][SIZE] <= len(draft.data)]
    if not usable:
        return None
    row = draft.sections[rng.choice(usable)]
    return int(row[OFFSET]) + rng.randrange(row[SIZE] // entry) * entry


def callgraph_word(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    at = _words(draft, rng, draft.of_type(SHT_CUDA_CALLGRAPH))
    symbol = _symbol(draft, rng)
    if at is not None and symbol is not None:
        marks = (0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFC, 0, symbol, symbol, symbol)
        draft.poke(at, 4, rng.choice(marks))


def callgraph_rows(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Two rows change places, or one is left out or said twice."""
    tables = [n for n in draft.of_type(SHT_CUDA_CALLGRAPH) if draft.sections[n][SIZE] >= 16]
    if not tables:
        return
    number = rng.choice(tables)
    held = draft.contents(number)
    rows = [held[at : at + 8] for at in range(0, len(held), 8)]
    left, right = rng.randrange(len(rows)), rng.randrange(len(rows))
    what = rng.randrange(3)
    if what == 0:
        rows[left], rows[right] = rows[right], rows[left]
    elif what == 1:
        del rows[left]
    else:
        rows.insert(right, rows[left])
    draft.put(number, b"".join(rows))


def prototype_word(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    at = _words(draft, rng, draft.of_type(SHT_CUDA_PROTOTYPE))
    if at is not None:
        draft.poke(at, 4, number_near(rng, draft.peek(at, 4), 4))


def code_bits(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A bit of an instruction, but for those that are relocated: their bits are an addend."""
    code = draft.named(b".text.")
    patched = {
        draft.sections[draft.sections[table][INFO]][OFFSET] + draft.peek(at, 8) // 8 * 8
        for table in draft.of_type(RELA, REL)
        if draft.sections[table][INFO] in code
        for at in _entries(draft, table)
    }
    at = _words(draft, rng, code, 8)
    if at is not None and not patched & {at - 8, at, at + 8}:
        draft.poke(at, 8, draft.peek(at, 8) ^ (1 << rng.randrange(64)))


def attribute_count(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A number that a compiler chooses freely, in all places that have it."""
    counts = [
        struct.unpack_from("<BBHI", body, start)
        for number in draft.of_type(SHT_CUDA_INFO)
        for body in [draft.contents(number)]
        for start, size in _records(body)
        if size == 12 and body[start + 1] in COUNTS
    ]
    if not counts:
        return
    head = rng.choice(counts)
    _, attribute, _, symbol = head
    value = rng.choice((0, 8, 16, 24, 40, 128, 200, 248 if attribute == REGCOUNT else 1024))
    for number in range(len(draft.sections)):
        row = draft.sections[number]
        if row[TYPE] in (SHT_CUDA_INFO, SHT_CUDA_MERC_INFO):
            body = draft.contents(number)
            for start, size in _records(body):
                if size == 12 and struct.unpack_from("<BBHI", body, start) == head:
                    draft.poke(row[OFFSET] + start + 8, 4, value)
        elif (
            attribute == REGCOUNT
            and row[INFO] >> 24
            and draft.name(number) == b".text." + draft.symbol_name(symbol)
        ):
            draft.set(number, INFO, row[INFO] & 0xFFFFFF | value << 24)


def relocation_symbol_of_a_kind(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A reference of code to a global symbol goes to another one of its type and section type."""
    entry = _relocation(draft, rng, b".rel.text.", b".rela.text.")
    if entry is None or draft.symtab is None:
        return
    at = entry[0] + 12

    def kind(number: int) -> tuple[int, int, int]:
        place = draft.symbol_at(number)
        section = draft.peek(place + 6, 2)
        known = section < len(draft.sections)
        return (
            draft.peek(place + 4, 1),
            draft.peek(place + 5, 1),
            draft.sections[section][TYPE] if known else section,
        )

    old = draft.peek(at, 4)
    if old >= draft.symbol_count or draft.peek(draft.symbol_at(old) + 4, 1) >> 4 != 1:
        return
    same = [n for n in range(1, draft.symbol_count) if kind(n) == kind(old)]
    draft.poke(at, 4, rng.choice(same))


def relocation_addend(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Another place in the variable, or behind it."""
    entry = _relocation(draft, rng, b".rela.text.")
    if entry is not None and entry[1] == 24:
        draft.poke(entry[0] + 16, 8, draft.peek(entry[0] + 16, 8) + rng.choice((4, 8, 16, 64)))


def data_of_variables(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    at = _words(draft, rng, draft.named(b".nv.global.init", b".nv.constant3"))
    if at is not None:
        draft.poke(at, 4, rng.randrange(1 << 32))


def capsule_word(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """A word or byte of what only targets from sm_100 on have."""
    at = _words(draft, rng, draft.named(b".nv.capmerc", b".nv.merc."))
    if at is not None:
        size = rng.choice((1, 2, 4))
        draft.poke(at, size, number_near(rng, draft.peek(at, size), size))


def capsule_head(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """The first words of a capsule, which have its sizes and offsets."""
    capsules = draft.named(b".nv.capmerc")
    if capsules:
        row = draft.sections[rng.choice(capsules)]
        at = row[OFFSET] + 4 * rng.randrange(16)
        draft.poke(at, 4, number_near(rng, draft.peek(at, 4), 4))


def debug_byte(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    sections = draft.named(b".debug_", b".nv_debug", b".nv.merc.debug", b".nv.merc.nv_debug")
    at = _words(draft, rng, sections, 1)
    if at is not None:
        draft.poke(at, 1, number_near(rng, draft.peek(at, 1), 1))


def debug_head(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Where lengths, versions and counts stand."""
    sections = draft.named(b".debug_", b".nv_debug", b".nv.merc.debug", b".nv.merc.nv_debug")
    if sections:
        row = draft.sections[rng.choice(sections)]
        at = row[OFFSET] + rng.randrange(min(row[SIZE], 24))
        size = rng.choice((1, 2, 4))
        draft.poke(at, size, number_near(rng, draft.peek(at, size), size))


def note_word(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    at = _words(draft, rng, draft.of_type(7))
    if at is not None:
        draft.poke(at, 4, number_near(rng, draft.peek(at, 4), 4))


def data_byte(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """Any byte of any section."""
    at = _words(draft, rng, range(1, len(draft.sections)), 1)
    if at is not None:
        draft.poke(at, 1, draft.peek(at, 1) ^ (1 << rng.randrange(8)))


def splice(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    """The contents of a section of another file, of the same name where there is one."""
    if not others:
        return
    other = Draft(rng.choice(list(others)))
    number = rng.randrange(1, len(draft.sections))
    same = [n for n in range(1, len(other.sections)) if other.name(n) == draft.name(number)]
    if rng.random() < 0.2 or not same:
        same = list(range(1, len(other.sections)))
    if draft.sections[number][TYPE] != 8:
        draft.put(number, other.contents(rng.choice(same)))


def truncation(draft: Draft, rng: Random, others: Sequence[bytes]) -> None:
    del draft.data[rng.randrange(len(draft.data)) :]


EDITS = {
    row.edit.__name__.replace("_", "-"): row
    for row in (
        Row(header_field, sound=False),
        Row(header_flags, sound=False),
        Row(section_field, sound=False),
        Row(section_like_another, sound=False),
        Row(section_type, sound=False),
        Row(section_cut, sound=False),
        Row(section_doubled, sound=False),
        Row(section_emptied, sound=False),
        Row(sections_swapped, sound=False),
        Row(name_byte, sound=False),
        Row(section_name_offset, sound=False),
        Row(symbol_field, sound=False),
        Row(symbol_like_another, sound=False),
        Row(symbol_binding, sound=False),
        Row(symbol_visibility, sound=False),
        Row(symbol_undefined, sound=False),
        Row(symbols_swapped, sound=False),
        Row(symbol_name_of_another_file, sound=False),
        Row(relocation_field, sound=False),
        Row(relocation_like_another, sound=False),
        Row(relocation_type, sound=False),
        Row(relocation_symbol, sound=False),
        Row(relocation_symbol_of_a_kind, sound=True),
        Row(relocation_addend, sound=True),
        Row(attribute_byte, sound=False),
        Row(attribute_value, sound=False),
        Row(attribute_kind, sound=False),
        Row(attribute_moved, sound=False),
        Row(attribute_count, sound=True),
        Row(callgraph_word, sound=False),
        Row(callgraph_rows, sound=False),
        Row(prototype_word, sound=False),
        Row(code_bits, sound=True),
        Row(data_of_variables, sound=True, everywhere=True),
        Row(capsule_word, sound=False),
        Row(capsule_head, sound=False),
        Row(debug_byte, sound=False),
        Row(debug_head, sound=False),
        Row(note_word, sound=False),
        Row(data_byte, sound=False),
        Row(splice, sound=False),
        Row(truncation, sound=False),
    )
}


def apply(image: bytes, name: str, seed: str, others: Sequence[bytes]) -> bytes:
    """The cubin after an edit; one that is too damaged to be edited stays as it is."""
    try:
        draft = Draft(image)
        EDITS[name].edit(draft, Random(seed), others)
    except (struct.error, ValueError, IndexError, OverflowError, MemoryError):
        return image
    return draft.build()
