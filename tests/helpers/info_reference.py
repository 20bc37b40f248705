"""A naive reference of the attribute records of the output, for a small program.

Written from "Lists of attributes" and "Attributes of kernels" in docs/format-notes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from helpers.graph_reference import Graph

# Forms of a record: no value, a byte, a half word, and a size with that many bytes.
NVAL, BVAL, HVAL, SVAL = 1, 2, 3, 4
# Numbers of attributes.
REGCOUNT, FRAME_SIZE, MIN_STACK_SIZE, CRS_STACK_SIZE = 0x2F, 0x11, 0x12, 0x1E
EXTERNS, FRAGMENTS, BITS, SINGLE, PAIR = 0x0F, 0x4F, 0x50, 0x51, 0x52
FINALIZER_OPTIONS, ISA_VERSION = 0x5A, 0x5F
UNKNOWN_BITS, UNKNOWN_NUMBER = 0x8000, 0xFFFF


def add(first: int, second: int) -> int:
    """Add two counts of 16 bits; UNKNOWN_NUMBER if either is unknown."""
    unknown = UNKNOWN_NUMBER in (first, second)
    return UNKNOWN_NUMBER if unknown else (first + second) % 65536


# By attribute: format of the record that a kernel inherits, and the function that joins two values.
VALUES: dict[int, tuple[int, Callable[[int, int], int]]] = {
    0x04: (NVAL, lambda first, _: first),
    0x41: (NVAL, lambda first, _: first),
    SINGLE: (NVAL, lambda first, _: first),
    PAIR: (NVAL, lambda first, _: first),
    0x4A: (BVAL, max),
    0x4C: (BVAL, max),
    0x38: (HVAL, add),
    BITS: (HVAL, lambda first, second: first | second),
    0x54: (NVAL, lambda _, second: second),
}
# Attributes without a value: a function has them or not.
FLAGS = (0x04, 0x41, SINGLE, PAIR)
# The order of attributes in a link with one kernel.
ALONE = (BITS, 0x04, 0x41, 0x4A, SINGLE, PAIR, 0x4C, 0x54, 0x38)


@dataclass
class Record:
    """One record; `items` is None for a record with a value."""

    number: int
    format: int
    value: int = 0
    items: list[int] | None = None

    def data(self) -> bytes:
        """Return the bytes of the record."""
        head = bytes((self.format, self.number))
        if self.items is None:
            return head + self.value.to_bytes(2, "little")
        words = b"".join(item.to_bytes(4, "little") for item in self.items)
        return head + len(words).to_bytes(2, "little") + words


@dataclass
class Program:
    """A program: numbers are functions, and after them undefined ones, which EXTERNS may name, too.

    `sections` are the live functions in the order of their sections. Functions without an entry in
    `records` have no attribute section. `symbols` are indices in the output. `unbounded` are
    kernels whose stack has no bound. `mixed` collects the kernels that `is_refused` refuses.
    """

    graph: Graph
    sections: list[int]
    records: dict[int, list[Record]]
    symbols: list[int]
    unbounded: set[int] = field(default_factory=set)
    executable: bool = True
    mixed: list[int] = field(default_factory=list)

    @property
    def kernels(self) -> list[int]:
        """The live kernels, in the order of their sections."""
        return [section for section in self.sections if section in self.graph.kernels]

    @property
    def knows_bits(self) -> bool:
        """Whether any live function has a BITS record."""
        return any(find(self.records.get(section, []), BITS) for section in self.sections)

    def external(self, number: int) -> bool:
        """Return whether EXTERNS of the output names a function, undefined or a launched kernel."""
        return number >= self.graph.count or number in self.graph.kernels

    def listed_items(self, record: Record) -> list[int]:
        """Return the items of a list record in the output."""
        items = record.items or []
        if record.number != EXTERNS:
            return items
        return [self.symbols[item] for item in items if self.external(item)]


def find(records: list[Record], number: int) -> Record | None:
    """Return the record of an attribute; None without one."""
    return next((record for record in records if record.number == number), None)


def others(program: Program, kernel: int, *, alone: bool) -> list[int]:
    """Return the live functions from which a kernel inherits; with `alone` all, reached or not."""
    reached = program.graph.reached(kernel)
    return [
        section
        for section in program.sections
        if section != kernel and (alone or section in reached)
    ]


def records_of(program: Program, functions: list[int]) -> Iterator[Record]:
    """Yield the records of the functions in order.

    If some function of the program has BITS, one without gets a record of unknown bits at its end.
    """
    for function in functions:
        if function in program.records:
            yield from program.records[function]
            if program.knows_bits and not find(program.records[function], BITS):
                yield Record(BITS, HVAL, UNKNOWN_BITS, items=None)


def is_refused(program: Program, kernel: int, records: list[Record], number: int) -> bool:
    """Return whether a kernel of single CTAs meets a record of CTA pairs, or the reverse."""
    group = {SINGLE: PAIR, PAIR: SINGLE}.get(number)
    clash = group is not None and find(records, group) is not None and not find(records, number)
    if clash and kernel not in program.mixed:
        program.mixed.append(kernel)
    return clash


def join_in_turn(program: Program, kernel: int, records: list[Record]) -> None:
    """Join records of a kernel with those of other functions, function by function."""
    for record in records_of(program, others(program, kernel, alone=False)):
        if record.number not in (*VALUES, EXTERNS, FRAGMENTS):
            continue
        if is_refused(program, kernel, records, record.number):
            continue
        joined = find(records, record.number)
        if record.number in (EXTERNS, FRAGMENTS):
            if joined is None:
                joined = Record(record.number, SVAL, items=[])
                records.append(joined)
            assert joined.items is not None
            joined.items += [
                item for item in program.listed_items(record) if item not in joined.items
            ]
            continue
        form, join = VALUES[record.number]
        if joined:
            joined.value = join(joined.value, record.value)
        else:
            records.append(
                Record(record.number, form, 0 if record.number in FLAGS else record.value)
            )


def join_alone(program: Program, kernel: int, records: list[Record]) -> None:
    """Join records of the only kernel with those of other functions, attribute by attribute."""
    functions = others(program, kernel, alone=True)
    before = list(records)
    for number in ALONE:
        inherited = [record for record in records_of(program, functions) if record.number == number]
        if not inherited or is_refused(program, kernel, before, number):
            continue
        joined = find(records, number)
        if number in (*FLAGS, 0x54, 0x4A) and joined:
            continue
        form, join = VALUES[number]
        value = joined.value if joined else 0
        for record in inherited:
            value = join(value, 0 if number == 0x54 else record.value)
        if joined:
            joined.value = value
        elif value or number not in (0x4C, 0x38):
            records.append(Record(number, form, value))
    for number in (EXTERNS, FRAGMENTS):
        items: list[int] = []
        for section_records in program.records:  # in the order of the input
            for record in (
                program.records[section_records] if section_records in program.sections else []
            ):
                if record.number == number:
                    items += [item for item in program.listed_items(record) if item not in items]
        joined = find(records, number)
        if items and (joined is None or len(joined.items or []) != len(items)):
            if joined:
                records.remove(joined)
            records.append(Record(number, SVAL, items=items[::-1] if number == EXTERNS else items))


def function_reference(program: Program, function: int) -> bytes:
    """Return the bytes of .nv.info.F."""
    kernel = program.executable and function in program.graph.kernels
    records = []
    for record in reversed(program.records.get(function, [])):
        if record.number == FRAGMENTS and program.executable and not kernel:
            continue
        copy = Record(record.number, record.format, record.value, record.items)
        if record.number in (EXTERNS, FRAGMENTS):
            copy.items = list(program.listed_items(record))
        records.append(copy)
    if kernel and function in program.unbounded and function in program.records:
        bound = find(records, CRS_STACK_SIZE)
        if bound:
            bound.items = [0xFFFFFFFF]
        else:
            records.append(Record(CRS_STACK_SIZE, SVAL, items=[0xFFFFFFFF]))
    silent = function in program.records and not find(records, BITS)
    if program.executable and program.knows_bits and silent:
        records.append(Record(BITS, HVAL, UNKNOWN_BITS))
    if kernel:
        join = join_alone if len(program.kernels) == 1 else join_in_turn
        join(program, function, records)
    lists = (EXTERNS, FRAGMENTS)
    written_records = [r for r in records if r.number not in lists or r.items]
    if not program.executable or not kernel:
        written_records = [r for r in records if r.number != EXTERNS or r.items]
    return b"".join(record.data() for record in written_records)


def file_reference(program: Program, registers: list[int], stack: list[int]) -> bytes:
    """Return the bytes of .nv.info, from the REGCOUNT and FRAME_SIZE of every function in order."""

    def pair(number: int, function: int, value: int) -> bytes:
        """Return the record with a function's symbol and a value."""
        return Record(number, SVAL, items=[program.symbols[function], value]).data()

    rows = []
    for function in range(program.graph.count):
        if function in program.sections:
            rows.append(pair(REGCOUNT, function, registers[function]))
            rows.append(pair(FRAME_SIZE, function, program.graph.frames[function]))
    sizes = []
    if program.executable:
        kernels = sorted(program.kernels, key=lambda entity: program.symbols[entity])
        sizes = [pair(MIN_STACK_SIZE, kernel, stack[kernel]) for kernel in kernels]
    return b"".join([*reversed(rows), *sizes])


def two_lists(
    machine: list[Record], mercury: list[Record], closing: list[Record]
) -> tuple[bytes, bytes]:
    """Return the .nv.info.F and .nv.merc.nv.info.F of a function after a link with -r of one input.

    `machine` and `mercury` are the input's records of these sections. The link writes the
    attributes of `closing` again, at the end of .nv.info.F.
    """
    ends = {record.number for record in closing}
    waiting = list(machine)
    plain = []
    for record in mercury:
        same = find(waiting, record.number)
        if same is not None:
            waiting.remove(same)
        if record.number != FINALIZER_OPTIONS:
            plain.append(same or record)
    both = []
    for rows, rest in ((plain, waiting), (mercury, [])):
        of_plain = rows is plain
        output_records = (
            [Record(ISA_VERSION, HVAL, 0x100)] if not find(mercury, ISA_VERSION) else []
        )
        output_records += [
            row for row in [*reversed(rows), *rest] if not of_plain or row.number not in ends
        ]
        both.append(
            b"".join(record.data() for record in [*output_records, *(closing if of_plain else [])])
        )
    return both[0], both[1]
