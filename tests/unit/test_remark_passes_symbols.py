"""What the passes of the merge say of links whose every decision is known."""

from __future__ import annotations

import re
import struct
from itertools import pairwise

import pytest
from helpers.cubin_builder import (
    COMMON,
    GLOBAL,
    SHT_GLOBAL_INIT,
    SHT_NOTE,
    SHT_PROGBITS,
    WEAK,
    Cubin,
    Section,
    Symbol,
)
from helpers.line_program import Lines, Row
from helpers.remarked import BUILT_FOR, line, lines, remarks_of

from pylink.remarks import ANALYSIS

SYMBOLS = "symbol-resolution"
MAXREG_COUNT = 0x1B


def with_function(registers: int, bind: int = WEAK, size: int = 128) -> Cubin:
    cubin = Cubin()
    cubin.function("f", bind=bind, registers=registers, code=bytes(size))
    return cubin


def with_variable(bind: int = GLOBAL, *, size: int = 4, common: bool = False) -> Cubin:
    cubin = Cubin()
    section = COMMON
    if not common:
        section = cubin.section(Section(".nv.global.init", SHT_GLOBAL_INIT, bytes(size), 3))
    cubin.symbol(Symbol("v", bind=bind, section=section, value=4 if common else 0, size=size))
    return cubin


def test_among_weak_copies_fewer_registers_win() -> None:
    cubins = {
        "a": with_function(20),
        "b": with_function(16, size=256),
        "c": with_function(16),
        "d": with_function(12),
    }
    assert lines(cubins, SYMBOLS) == [
        "Passed WeakReplaced f a:0:0 128 | weak copy of f with 20 registers replaced by that of b, "
        "which needs 16",
        "Missed WeakKept f c:0:0 128 | weak copy of f with 16 registers dropped: that of b is "
        "kept, which needs 16",
        "Passed WeakReplaced f b:0:0 256 | weak copy of f with 16 registers replaced by that of d, "
        "which needs 12",
    ]


def test_among_weak_copies_of_equal_registers_newer_ptx_wins() -> None:
    def made_from(virtual: int) -> Cubin:
        cubin = with_function(16)
        note = struct.pack("<III12s4H", 12, 8, 1000, b"NVIDIA Corp", 2, virtual, 0, 0)
        cubin.section(Section(".note.nv.cuinfo", SHT_NOTE, note, 1 << 24))
        return cubin

    cubins = {"a": made_from(75), "b": made_from(80), "c": made_from(75)}
    assert lines(cubins, SYMBOLS) == [
        "Passed WeakOutdated f a:0:0 128 | weak copy of f compiled from PTX for sm_75 replaced by "
        "that of b, compiled from PTX for sm_80",
        "Missed WeakKept f c:0:0 128 | weak copy of f with 16 registers dropped: that of b is "
        "kept, which needs 16",
    ]


def test_a_strong_definition_wins_over_weak_ones_before_and_behind_it() -> None:
    cubins = {"a": with_function(8), "b": with_function(30, GLOBAL), "c": with_function(4)}
    assert lines(cubins, SYMBOLS) == [
        "Passed StrongOverWeak f a:0:0 128 | weak definition of f dropped for the strong one in b",
        "Passed StrongOverWeak f c:0:0 128 | weak definition of f dropped for the strong one in b",
    ]


def test_the_argument_has_the_place_of_the_winner() -> None:
    images = {"a": with_function(20).build(), "b": with_function(16).build()}
    (remark,) = remarks_of(images, BUILT_FOR, SYMBOLS)
    assert ("Winner", "b", "b:(.text.f)", 0, 0) in remark.args
    assert ("Registers", "20", None, 0, 0) in remark.args


def test_the_place_of_a_function_is_its_own_line_where_its_first_code_is_inlined() -> None:
    pytest.importorskip("elftools", reason="pyelftools is not installed")
    cubin = Cubin()
    unit = Lines()
    unit.function(
        cubin.function("f"), [Row(0, 7, column=3), Row(0, 20, inlined=(1, 1)), Row(32, 8)]
    )
    unit.add_to(cubin)
    cubin.section(Section(".debug_str", SHT_PROGBITS, b"\0inner\0", align=1))
    (remark,) = remarks_of({"a": cubin.build()}, BUILT_FOR, "dce")
    assert (remark.file, remark.line, remark.column) == ("/src/k.cu", 7, 3)


def test_weak_variables_and_common_symbols() -> None:
    weak = {"a": with_variable(WEAK), "b": with_variable(WEAK)}
    assert lines(weak, SYMBOLS) == [
        "Missed WeakVariableKept v b:0:0 4 | weak definition of v dropped: that of a came first "
        "and is kept"
    ]
    common = {
        "a": with_variable(common=True),
        "b": with_variable(common=True, size=16),
        "c": with_variable(common=True, size=8),
        "d": with_variable(size=16),
    }
    assert lines(common, SYMBOLS) == [
        "Passed CommonMerged v b:0:0 4 | common v of 16 bytes merged with that of a: 16 bytes for "
        "both",
        "Passed CommonMerged v c:0:0 8 | common v of 8 bytes merged with that of a: 16 bytes for "
        "both",
        "Passed CommonReplaced v a:0:0 16 | common v of 16 bytes replaced by the definition in d",
    ]
    late = {"a": with_variable(WEAK), "b": with_variable(common=True)}
    assert lines(late, SYMBOLS) == [
        "Passed CommonDropped v b:0:0 4 | common v of 4 bytes dropped for the definition in a"
    ]


def test_one_definition_and_local_names_are_no_decision() -> None:
    first, second = with_variable(0), with_variable(0)
    second.external("f")
    assert lines({"a": first, "b": second, "c": with_function(8)}, SYMBOLS) == []


def calls() -> Cubin:
    """Kernels k and l; k calls f, which calls g by address; nobody calls h and the taken t."""
    cubin = Cubin()
    k = cubin.function("k", kernel=True, registers=10)
    l_ = cubin.function("l", kernel=True, registers=40, frame=8)
    f = cubin.function("f", registers=24, frame=32)
    g = cubin.function("g", registers=30, frame=16)
    cubin.function("h", code=bytes(256))
    t = cubin.function("t")
    only_l = cubin.function("only_l", code=bytes(384))
    cubin.call(k, f)
    cubin.call_through(f, "FvfE")
    cubin.take_address(g, "FvfE")
    cubin.take_address(t, "FviE")
    cubin.call(l_, only_l)
    return cubin


def test_removed_functions_and_those_that_stay_without_need() -> None:
    assert lines({"a": calls()}, "dce") == [
        "Passed FunctionRemoved h a:0:0 256 | removed h, 256 bytes of code: no kernel reaches it",
        "Missed FunctionKept t a:0:0 128 | kept t, 128 bytes of code that no kernel reaches: its "
        "address is taken",
    ]


def test_kernels_that_are_not_selected() -> None:
    assert lines({"a": calls()}, "dce", kernels_used=("k",)) == [
        "Passed KernelRemoved l a:0:0 128 | removed kernel l, 128 bytes of code: it is not in "
        "--kernels-used",
        "Passed FunctionRemoved h a:0:0 256 | removed h, 256 bytes of code: no kernel reaches it",
        "Missed FunctionKept t a:0:0 128 | kept t, 128 bytes of code that no kernel reaches: its "
        "address is taken",
        "Passed FunctionRemoved only_l a:0:0 384 | removed only_l, 384 bytes of code: only kernels "
        "that are not in --kernels-used reach it",
    ]


def test_links_that_remove_nothing_say_why() -> None:
    for option, reason in (
        ("debug", "-g removes nothing"),
        ("relocatable_link", "-r removes nothing"),
        ("preserve_relocs", "--preserve-relocs removes nothing"),
    ):
        assert lines({"a": calls()}, "dce", **{option: True}) == [
            f"Missed FunctionKept h a:0:0 256 | kept h, 256 bytes of code that no kernel reaches: "
            f"{reason}",
            f"Missed FunctionKept t a:0:0 128 | kept t, 128 bytes of code that no kernel reaches: "
            f"{reason}",
        ]


def test_on_request_the_calls_that_keep_a_function() -> None:
    images = {"a": calls().build()}
    remarks = remarks_of(images, BUILT_FOR, "dce", why_live=re.compile("^[gk]$"))
    assert [line(remark) for remark in remarks if remark.kind == ANALYSIS] == [
        "Analysis FunctionReached k a:0:0 128 | kept k, which k reaches: k",
        "Analysis FunctionReached g a:0:0 128 | kept g, which k reaches: k -> f ~> g",
    ]


def test_the_callee_that_raises_a_kernel_and_the_calls_to_it() -> None:
    assert lines({"a": calls()}, "regcount") == [
        "Analysis KernelRaised k a:0:0 80 | k raised from 10 to 30 registers by g: k -> f ~> g"
    ]
    assert lines({"a": calls()}, "regcount", relocatable_link=True) == []
    assert lines({"a": calls()}, "regcount", kernels_used=("l",)) == []


def test_a_raise_over_a_cycle_and_between_equals() -> None:
    cubin = Cubin()
    k = cubin.function("k", kernel=True)
    a, b, c = (
        cubin.function(name, registers=count) for name, count in (("a", 9), ("b", 9), ("c", 50))
    )
    for pair in ((k, a), (a, b), (b, a), (b, c)):
        cubin.call(*pair)
    assert lines({"a": cubin}, "regcount") == [
        "Analysis KernelRaised k a:0:0 168 | k raised from 8 to 50 registers by c: k -> a -> b -> c"
    ]


def test_a_kernel_that_may_not_have_the_registers_of_its_callee() -> None:
    cubin = calls()
    info = cubin.sections[cubin.find(".nv.info.k") - 1]
    info.data = struct.pack("<BBH", 3, MAXREG_COUNT, 25)
    assert lines({"a": cubin}, "regcount") == [
        "Analysis KernelRaised k a:0:0 80 | k raised from 10 to 30 registers by g: k -> f ~> g",
        "Failure TooManyRegisters k a:0:0 20 | k may have 25 registers and calls g, which needs 30",
    ]


def test_the_stack_of_kernels_and_the_calls_it_comes_from() -> None:
    assert lines({"a": calls()}, "stack-size") == [
        "Analysis KernelStack k a:0:0 48 | k needs 48 bytes of stack, 0 of its own, 2 calls deep: "
        "k (0) -> f (32) ~> g (16)",
        "Analysis KernelStack l a:0:0 8 | l needs 8 bytes of stack, 8 of its own, 0 calls deep: "
        "l (8)",
    ]


def test_a_frame_of_the_size_that_means_no_bound_is_no_recursion() -> None:
    cubin = Cubin()
    cubin.function("k", kernel=True, frame=0xFFFFFFFF)
    assert lines({"a": cubin}, "stack-size") == []


def test_recursion_has_no_bound() -> None:
    cubin = Cubin()
    k = cubin.function("k", kernel=True)
    f, g, h = (cubin.function(name, frame=frame) for name, frame in (("f", 8), ("g", 16), ("h", 4)))
    for pair in ((k, f), (f, g), (g, h), (h, g)):
        cubin.call(*pair)
    assert lines({"a": cubin}, "stack-size") == [
        "Missed StackUnknown k a:0:0 20 | k needs unbounded stack: k -> f -> g enters the "
        "recursion g -> h -> g, which needs 20 bytes per round"
    ]


def test_long_chains_show_their_ends() -> None:
    cubin = Cubin()
    functions = [cubin.function("k", kernel=True)]
    functions += [cubin.function(f"f{number}", frame=8) for number in range(1000)]
    for caller, callee in pairwise(functions):
        cubin.call(caller, callee)
    (text,) = lines({"a": cubin}, "stack-size")
    assert "k needs 8000 bytes of stack, 0 of its own, 1000 calls deep: k (0) -> f0 (8) -> " in text
    assert " -> (969 more) -> f984 (8) -> " in text
    assert text.endswith(" -> f999 (8)")
