"""Which definition of a symbol wins, over cubins made in code."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations, product

import pytest
from helpers.cubin_builder import (
    COMMON,
    GLOBAL,
    IN_GLOBAL,
    LOCAL,
    SHT_CONSTANT0,
    SHT_GLOBAL,
    SHT_GLOBAL_INIT,
    WEAK,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)

import pylink
from pylink._native import elfread, inputfiles, resolve
from pylink._native.results import MergedTables, ObjectTables
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import Clash, Resolution
from pylink.tables import entity_name

COMMON_FLAG = 32


class Resolved:
    """The entities of a link by name, and the input file that each winner comes from."""

    def __init__(self, *cubins: Cubin) -> None:
        images = [cubin.build() for cubin in cubins]
        names: list[bytes | None] = [None] * len(images)
        arena, extents, _, _ = inputfiles.read_files(
            names, [len(image) for image in images], [*images]
        )
        files, sections, self.symbols, faults = elfread.parse(arena, extents)
        assert not faults
        self.merged = MergedTables(ObjectTables(arena, files, sections, self.symbols))
        self.clashes = resolve.resolve(self.merged)
        self.rows = {}
        self.winners = {}
        for number, row in enumerate(self.merged.entities):
            name = entity_name(self.merged, number)
            self.rows[name] = row
            self.winners[name] = self.symbols[row.winner].file


STO_MANAGED = 4


def function(bind: int, registers: int = 8) -> Cubin:
    cubin = Cubin()
    cubin.function("f", bind=bind, registers=registers)
    return cubin


def variable(bind: int, size: int = 4, initial: bool = False, name: str = "v") -> Cubin:
    cubin = Cubin()
    kind = SHT_GLOBAL_INIT if initial else SHT_GLOBAL
    section = Section(".nv.global.init" if initial else ".nv.global", kind, bytes(size), 3)
    at = cubin.section(section)
    cubin.symbol(Symbol(name, bind=bind, other=IN_GLOBAL, section=at, size=size))
    return cubin


def common(size: int, align: int = 4) -> Cubin:
    cubin = Cubin()
    cubin.symbol(Symbol("v", other=IN_GLOBAL, section=COMMON, value=align, size=size))
    return cubin


@pytest.mark.parametrize(
    ("registers", "winner"),
    [((8,), 0), ((8, 8), 0), ((9, 8), 1), ((8, 9), 0), ((9, 8, 8), 1), ((9, 8, 7, 7), 2)],
)
def test_of_weak_functions_the_first_with_fewest_registers_wins(
    registers: tuple[int, ...], winner: int
) -> None:
    linked = Resolved(*(function(WEAK, count) for count in registers))
    assert linked.winners["f"] == winner
    assert linked.rows["f"].regcount == registers[winner]
    assert list(linked.merged.symbol_resolution).count(Resolution.WON) == 1


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_strong_function_wins_over_weak_ones(order: tuple[int, ...]) -> None:
    cubins = [function(WEAK, 8), function(GLOBAL, 99), function(WEAK, 4)]
    linked = Resolved(*(cubins[i] for i in order))
    assert linked.winners["f"] == order.index(1)
    assert not linked.clashes


def test_two_strong_definitions_clash() -> None:
    for cubins in ([function(GLOBAL)] * 2, [variable(GLOBAL)] * 2):
        linked = Resolved(*cubins)
        (clash,) = linked.clashes
        assert clash.kind == 1
        assert [linked.symbols[row].file for row in (clash.symbol, clash.first)] == [1, 0]


def test_sizes_must_agree() -> None:
    linked = Resolved(variable(WEAK, 4), variable(WEAK, 8))
    assert linked.clashes.column("kind") == [2]


def test_all_files_must_agree_on_what_is_managed() -> None:
    """Also copies that lose and files that only mention the variable; functions use the bit."""
    mentioned = Cubin()
    mentioned.symbol(Symbol("v", other=IN_GLOBAL, size=4))
    plain = [variable(WEAK), variable(GLOBAL), common(4), mentioned]
    managed = deepcopy(plain)
    for cubin in managed:
        cubin.symbols[-1].other |= STO_MANAGED
    for left, right in product(managed, plain):
        assert 7 in Resolved(left, right).clashes.column("kind")
        assert 7 in Resolved(right, left).clashes.column("kind")
    assert not Resolved(managed[0], managed[3]).clashes
    unified = function(WEAK)
    unified.symbols[-1].other |= STO_MANAGED
    assert not Resolved(unified, function(WEAK)).clashes


def test_of_weak_variables_the_first_wins() -> None:
    linked = Resolved(variable(WEAK), variable(WEAK, initial=True))
    assert linked.winners["v"] == 0


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_common_symbols_take_the_largest_size(order: tuple[int, ...]) -> None:
    cubins = [common(4), common(400), common(8)]
    row = Resolved(*(cubins[i] for i in order)).rows["v"]
    assert row.flags & COMMON_FLAG
    assert row.size == 400


def resolutions(definitions: list[tuple[int, int]]) -> list[int]:
    """What becomes of definitions by binding and registers, in the order of the files.

    Each is the current one, or meets it: a strong one stays, of weak ones the one that came first
    unless a later one needs fewer registers.
    """
    found: list[int] = []
    current = 0
    for number, (bind, registers) in enumerate(definitions):
        old_bind, old_registers = definitions[current]
        wins = old_bind == WEAK and (bind == GLOBAL or registers < old_registers)
        if wins and number:
            found[current] = Resolution.REPLACED
            found = [
                Resolution.LOST_EARLY if resolution == Resolution.LOST else resolution
                for resolution in found
            ]
        found.append(Resolution.WON if wins or not number else Resolution.LOST)
        current = number if wins else current
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_what_became_of_each_definition_and_its_sections(count: int) -> None:
    kinds = [(WEAK, 8), (WEAK, 9), (WEAK, 10), (GLOBAL, 9)]
    for definitions in product(kinds, repeat=count):
        if [bind for bind, _ in definitions].count(GLOBAL) > 1:
            continue
        cubins = [function(bind, registers) for bind, registers in definitions]
        for cubin in cubins:
            table = Section(".nv.constant2.f", SHT_CONSTANT0 + 2, bytes(8), 0x42, 0, 4)
            cubin.section(table)
        linked = Resolved(*cubins)
        merged = linked.merged
        assert [resolution for resolution in merged.symbol_resolution if resolution] == resolutions(
            list(definitions)
        )
        owned = (sectionkinds.TEXT, sectionkinds.CONSTANT_FUNC)
        for number, section in enumerate(merged.objects.sections):
            is_owned = section.kind in owned
            expected = resolutions(list(definitions))[section.file] if is_owned else 0
            assert merged.section_function[number] == (0 if is_owned else -1)
            assert merged.section_resolution[number] == expected


def test_symbols_are_met_functions_first() -> None:
    cubin = variable(GLOBAL)
    cubin.function("f")
    cubin.symbol(Symbol("u", other=IN_GLOBAL))
    other = function(WEAK)
    linked = Resolved(cubin, other)
    met = [linked.merged.symbol_entity[symbol] for symbol in linked.merged.met]
    names = [entity_name(linked.merged, entity) for entity in met]
    assert names == ["f", "v", "u", "f"]


def test_a_common_symbol_gives_way() -> None:
    linked = Resolved(common(4), variable(GLOBAL), common(4))
    assert [resolution for resolution in linked.merged.symbol_resolution if resolution] == [
        Resolution.REPLACED,
        Resolution.WON,
        Resolution.LOST,
    ]


@pytest.mark.parametrize("first", [True, False])
def test_a_definition_wins_over_a_common_symbol(first: bool) -> None:
    cubins = [variable(GLOBAL), common(4)]
    linked = Resolved(*(cubins if first else cubins[::-1]))
    assert linked.winners["v"] == (0 if first else 1)
    assert not linked.rows["v"].flags & COMMON_FLAG


@pytest.mark.parametrize(
    ("cubins", "file"),
    [
        ([common(400), variable(GLOBAL, 4, initial=True)], 0),
        ([common(4), common(400), variable(GLOBAL, 4, initial=True)], 1),
        ([variable(GLOBAL, 4, initial=True), common(400)], 1),
        ([variable(GLOBAL, 4, initial=True), common(2)], None),
        ([common(2), variable(GLOBAL, 4, initial=True)], None),
    ],
)
def test_a_common_symbol_may_not_be_larger_than_an_initialized_variable(
    cubins: list[Cubin], file: int | None
) -> None:
    """The clash names the file of the common symbol."""
    linked = Resolved(*cubins)
    clashes = [(clash.kind, linked.symbols[clash.symbol].file) for clash in linked.clashes]
    assert clashes == ([] if file is None else [(Clash.COMMON, file)])


def test_local_symbols_of_one_name_stay_apart() -> None:
    cubin = variable(LOCAL, name="local")
    linked = Resolved(cubin, cubin)
    assert len(linked.merged.entities) == 2
    assert [resolution for resolution in linked.merged.symbol_resolution if resolution] == [
        Resolution.WON,
        Resolution.WON,
    ]


def test_calls_of_copies_that_lost_do_not_count() -> None:
    lost, won = function(WEAK, 20), function(WEAK, 8)
    lost.call(1, lost.external("only_lost"))
    won.call(1, won.external("only_won"))
    linked = Resolved(lost, won)
    names = list(linked.rows)
    rows = list(linked.merged.calls)
    kept = [(names[row.callee], row.of_linked_copy) for row in rows]
    assert kept == [("only_lost", 0), ("only_won", 1)]


def test_undefined_symbols_are_named_with_the_file_that_needs_them() -> None:
    cubin = one_kernel()
    callee = cubin.external("nowhere")
    cubin.call(1, callee)
    cubin.relocate(cubin.find(".text.kernel"), [(0, 56, callee, 0)], implicit=True)
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("a", one_kernel("other").build()), ("b", cubin.build())], arch="sm_80")
    (record,) = caught.value.errors
    assert record.message == "Undefined reference to 'nowhere' in 'b'"


def test_dead_code_needs_no_definitions() -> None:
    cubin = one_kernel()
    dead = cubin.function("dead")
    callee = cubin.external("nowhere")
    cubin.call(dead, callee)
    cubin.relocate(cubin.find(".text.dead"), [(0, 56, callee, 0)], implicit=True)
    assert pylink.link([cubin.build()], arch="sm_80").image


def test_no_files() -> None:
    assert not Resolved().rows
