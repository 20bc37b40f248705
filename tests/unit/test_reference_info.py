"""Attribute records: the kernel against the page of rules, over small programs."""

from __future__ import annotations

from random import Random

import pytest
from helpers.graph_reference import live, random_graph
from helpers.info_reference import (
    BITS,
    BVAL,
    CRS_STACK_SIZE,
    EXTERNS,
    FINALIZER_OPTIONS,
    FLAGS,
    FRAGMENTS,
    FRAME_SIZE,
    HVAL,
    ISA_VERSION,
    MIN_STACK_SIZE,
    NVAL,
    REGCOUNT,
    SVAL,
    VALUES,
    Program,
    Record,
    file_reference,
    function_reference,
    two_lists,
)
from helpers.tables import merged, objects, table

from pylink._native import info
from pylink._native.results import PlacedTables
from pylink._native.tables import Entities, Functions, Indices, Marks, Numbers, Outs
from pylink.facts import inheritance, sectionkinds
from pylink.facts.rownumbers import NO_STACK_BOUND, EntityFlag, LinkMode, Resolution
from pylink.facts.target import FAMILY_C

EXTERNALS = 4
COPIED = (0x1B, 0x05, 0x37)  # records that stay where they are
LISTS = (sectionkinds.INFO_FUNC, sectionkinds.MERC_INFO_FUNC)


def records(rng: Random, names: int) -> list[Record]:
    """Some records in random order, each number at most once."""
    found = []
    for number in rng.sample([*VALUES, EXTERNS, FRAGMENTS, CRS_STACK_SIZE, *COPIED], 8):
        match number:
            case _ if rng.random() < 0.5:
                continue
            case 0x0F:
                items = rng.sample(range(names), rng.randrange(min(names, 4)))
                found.append(Record(number, SVAL, items=items))
            case 0x4F:
                found.append(Record(number, SVAL, items=rng.sample(range(6), rng.randrange(1, 4))))
            case 0x1E:
                found.append(Record(number, SVAL, items=[rng.randrange(64)]))
            case 0x05:
                found.append(Record(number, SVAL, items=[1, 2, 3]))
            case _ if number in COPIED or number in FLAGS:
                found.append(Record(number, NVAL if number in FLAGS else HVAL))
            case _:
                form = VALUES[number][0]
                values = (0, 1, 8, 15) if form == BVAL else (0, 1, 0x7FFF, 0xFFFF, 0x40)
                found.append(Record(number, form, rng.choice(values)))
    return found


def draw(rng: Random, *, executable: bool) -> Program:
    graph = random_graph(rng)
    if rng.random() < 0.4:
        graph.kernels = set(list(graph.kernels)[:1])
    names = graph.count + EXTERNALS
    sections = [number for number in range(graph.count) if number in live(graph)]
    rng.shuffle(sections)
    held = {
        number: records(rng, names)
        for number in range(graph.count)
        if number in graph.kernels or rng.random() < 0.9  # the compiler leaves none without
    }
    if rng.random() < 0.6:
        held = {function: [r for r in rows if r.number != BITS] for function, rows in held.items()}
    unbounded = {kernel for kernel in graph.kernels if rng.random() < 0.3}
    symbols = rng.sample(range(1, 99), names)
    return Program(graph, sections, held, symbols, unbounded, executable)


class Link:
    """The program as tables: sections are those of code, then lists, then .nv.info."""

    def __init__(self, rng: Random, program: Program) -> None:
        self.program = program
        graph = program.graph
        self.registers = [rng.randrange(8, 200) for _ in range(graph.count)]
        self.stack = [
            NO_STACK_BOUND if number in program.unbounded else 8 * rng.randrange(9)
            for number in range(graph.count)
        ]

    def emit(self) -> tuple[dict[int, bytes], list[int]]:
        """The bytes of each section, -1 for .nv.info, and the kernels that mix groups of CTAs."""
        program, graph = self.program, self.program.graph
        names = graph.count + EXTERNALS
        arena = bytearray()
        sections: list[dict[str, int]] = [
            {"kind": sectionkinds.TEXT, "target": number} for number in range(graph.count)
        ]

        def add(kind: int, rows: list[Record], target: int) -> int:
            data = b"".join(row.data() for row in rows)
            row = {"kind": kind, "offset": len(arena), "size": len(data), "target": target}
            sections.append(row)
            arena.extend(data)
            return len(sections) - 1

        lists = {
            function: add(sectionkinds.INFO_FUNC, rows, function)
            for function, rows in program.records.items()
        }
        # Sizes of the stack are those of the link, whatever a file says.
        said = [
            Record(number, SVAL, items=[function, value])
            for function in range(graph.count)
            for number, value in ((REGCOUNT, 1), (FRAME_SIZE, graph.frames[function]))
        ]
        stacks = [
            Record(MIN_STACK_SIZE, SVAL, items=[kernel, 1]) for kernel in sorted(graph.kernels)
        ]
        add(sectionkinds.INFO, [*said, *(stacks if program.executable else [])], -1)
        flags = [
            EntityFlag.DEFINED
            | EntityFlag.KERNEL * (number in graph.kernels)
            | EntityFlag.LIVE * (number in program.sections)
            for number in range(graph.count)
        ]
        functions = [
            {
                "regcount": self.registers[number],
                "stack": self.stack[number],
                "info": lists.get(number, -1),
                "merc_info": -1,
            }
            for number in range(graph.count)
        ]
        whole = merged(
            objects(
                bytes(arena),
                files=[{"section_count": len(sections), "symbol_count": names}],
                sections=sections,
                symbols=[{}] * names,
                mode=LinkMode.RELOCATABLE * (not program.executable),
            ),
            entities=table(Entities, [*({"flags": flag} for flag in flags), *[{}] * EXTERNALS]),
            symbol_entity=table(Numbers, range(names)),
            symbol_resolution=table(Marks, [Resolution.WON] * names),
            functions=table(Functions, [*functions, *[{"info": -1, "merc_info": -1}] * EXTERNALS]),
            calls=graph.call_rows(),
            prototypes=bytes(8 * graph.prototypes),
        )
        outs: list[dict[str, int]] = [{"kind": sectionkinds.INFO}]
        outs += [
            {"kind": sectionkinds.INFO_FUNC, "entity": section} for section in program.sections
        ]
        placed = PlacedTables(
            whole, outs=table(Outs, outs), symbol_index=table(Indices, program.symbols)
        )
        mixed = info.emit_info(placed, inheritance.pack_rows(130), b"")
        found = {}
        for blob, spans in zip(placed.blobs, placed.spans, strict=True):
            for span in spans:
                owner = outs[span.out].get("entity", -1)
                found[owner] = blob.data[span.offset : span.offset + span.size]
        return found, mixed


@pytest.mark.parametrize("executable", [True, False])
@pytest.mark.parametrize("seed", range(400))
def test_records_agree_with_the_page(seed: int, *, executable: bool) -> None:
    rng = Random(seed)
    program = draw(rng, executable=executable)
    link = Link(rng, program)
    found, mixed = link.emit()
    registers = link.registers if executable else [1] * program.graph.count
    assert found.pop(-1) == file_reference(program, registers, link.stack)
    assert found == {section: function_reference(program, section) for section in program.sections}
    assert mixed == program.mixed


def draw_list(rng: Random) -> list[Record]:
    """Records whose attributes repeat, with values that tell them apart."""
    numbers = rng.choices((0x1B, 0x37, 0x05, 0x23, FINALIZER_OPTIONS), k=rng.randrange(1, 9))
    if rng.random() < 0.5:
        numbers.append(ISA_VERSION)
    rng.shuffle(numbers)
    return [
        Record(number, SVAL, items=[rng.getrandbits(32) for _ in range(rng.randrange(1, 4))])
        if number in (0x05, FINALIZER_OPTIONS)
        else Record(number, HVAL, rng.getrandbits(16))
        for number in numbers
    ]


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_two_lists_agree_with_the_page(seed: int, *, closes: bool) -> None:
    rng = Random(seed)
    closing = [Record(0x37, HVAL, 7), Record(0x6A, SVAL, items=[3])] if closes else []
    lists = [(draw_list(rng), draw_list(rng)) for _ in range(3)]
    arena = bytearray()
    sections: list[dict[str, int]] = []
    functions, outs = [], []
    for function, pair in enumerate(lists):
        for kind, rows in zip(LISTS, pair, strict=True):
            data = b"".join(row.data() for row in rows)
            sections.append({"kind": kind, "offset": len(arena), "size": len(data)})
            outs.append({"kind": kind, "entity": function})
            arena += data
        functions.append({"info": len(sections) - 2, "merc_info": len(sections) - 1})
    count = len(lists)
    flags = [{"flags": EntityFlag.DEFINED | EntityFlag.LIVE}] * count
    whole = merged(
        objects(
            bytes(arena),
            files=[{"section_count": len(sections), "symbol_count": count}],
            sections=sections,
            symbols=[{}] * count,
            family=FAMILY_C,
            mode=LinkMode.RELOCATABLE,
        ),
        entities=table(Entities, flags),
        symbol_entity=table(Numbers, range(count)),
        symbol_resolution=table(Marks, [Resolution.WON] * count),
        functions=table(Functions, functions),
    )
    indices = table(Indices, range(1, count + 1))
    placed = PlacedTables(whole, outs=table(Outs, outs), symbol_index=indices)
    ends = b"".join(record.data() for record in closing)
    assert info.emit_info(placed, inheritance.pack_rows(130), ends) == []
    found: dict[int, bytes] = {}
    for blob, spans in zip(placed.blobs, placed.spans, strict=True):
        found.update((row.out, blob.data[row.offset : row.offset + row.size]) for row in spans)
    expected = [data for machine, mercury in lists for data in two_lists(machine, mercury, closing)]
    assert [found[number] for number in range(len(outs))] == expected
