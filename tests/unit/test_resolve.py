"""Which definition of a symbol wins, over cubins made in code."""

from __future__ import annotations

from itertools import permutations

import pytest
from helpers.cubin_builder import (
    COMMON,
    GLOBAL,
    IN_GLOBAL,
    LOCAL,
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
from pylink.tables import CALL, CLASH, ENTITY, symbol_file, symbol_name

WON = 3
COMMON_FLAG = 32


class Resolved:
    """The entities of a link by name, and the input file that each winner comes from."""

    def __init__(self, *cubins: Cubin) -> None:
        images = [cubin.build() for cubin in cubins]
        names: list[bytes | None] = [None] * len(images)
        arena, extents, _, _ = inputfiles.read_files(
            names, [len(image) for image in images], [*images]
        )
        self.files, sections, self.symbols, fault = elfread.parse(arena, extents)
        assert fault == b""
        self.table, self.entity, self.role, self.calls, _, self.clashes = resolve.resolve(
            arena, self.files, sections, self.symbols
        )
        self.rows = {}
        self.winners = {}
        for row in ENTITY.iter_unpack(self.table):
            name = symbol_name(arena, self.symbols, row[0])
            self.rows[name] = row
            self.winners[name] = symbol_file(self.symbols, row[1])


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
    assert linked.rows["f"][6] == registers[winner]
    assert list(linked.role).count(WON) == 1


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_strong_function_wins_over_weak_ones(order: tuple[int, ...]) -> None:
    cubins = [function(WEAK, 8), function(GLOBAL, 99), function(WEAK, 4)]
    linked = Resolved(*(cubins[i] for i in order))
    assert linked.winners["f"] == order.index(1)
    assert not linked.clashes


def test_two_strong_definitions_clash() -> None:
    for cubins in ([function(GLOBAL)] * 2, [variable(GLOBAL)] * 2):
        linked = Resolved(*cubins)
        (clash,) = CLASH.iter_unpack(linked.clashes)
        assert clash[0] == 1
        assert [symbol_file(linked.symbols, row) for row in clash[1:]] == [1, 0]


def test_sizes_must_agree() -> None:
    linked = Resolved(variable(WEAK, 4), variable(WEAK, 8))
    assert [clash[0] for clash in CLASH.iter_unpack(linked.clashes)] == [2]


def test_of_weak_variables_the_first_wins() -> None:
    linked = Resolved(variable(WEAK), variable(WEAK, initial=True))
    assert linked.winners["v"] == 0


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_common_symbols_take_the_largest_size(order: tuple[int, ...]) -> None:
    cubins = [common(4), common(400), common(8)]
    row = Resolved(*(cubins[i] for i in order)).rows["v"]
    assert row[3] & COMMON_FLAG
    assert row[4] == 400


@pytest.mark.parametrize("first", [True, False])
def test_a_definition_wins_over_a_common_symbol(first: bool) -> None:
    cubins = [variable(GLOBAL), common(4)]
    linked = Resolved(*(cubins if first else cubins[::-1]))
    assert linked.winners["v"] == (0 if first else 1)
    assert not linked.rows["v"][3] & COMMON_FLAG


def test_local_symbols_of_one_name_stay_apart() -> None:
    cubin = variable(LOCAL, name="local")
    linked = Resolved(cubin, cubin)
    assert len(linked.table) == 2 * ENTITY.size
    assert [role for role in linked.role if role] == [WON, WON]


def test_calls_of_copies_that_lost_do_not_count() -> None:
    lost, won = function(WEAK, 20), function(WEAK, 8)
    lost.call(1, lost.external("only_lost"))
    won.call(1, won.external("only_won"))
    linked = Resolved(lost, won)
    names = list(linked.rows)
    rows = list(CALL.iter_unpack(linked.calls))
    assert [(names[row[1]], row[3]) for row in rows] == [("only_lost", 0), ("only_won", 1)]


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
    assert resolve.resolve(b"", b"", b"", b"") == (b"",) * 6
