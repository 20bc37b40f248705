"""Which files a link takes, against a naive reference and at the edges."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest
from helpers.cubin_builder import FUNC, OBJECT, WEAK, Cubin, Symbol
from hypothesis import given
from hypothesis import strategies as st

from pylink._native.selection import select
from pylink.facts.picknumbers import Demand

NAMES = ("a", "b", "c", "d", "vprintf", "__cuda_syscall_x")


@dataclass
class File:
    demand: int = Demand.ALWAYS
    group: int = 0
    functions: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)  # variables of other files

    def build(self) -> bytes:
        cubin = Cubin()
        for name in sorted(self.functions):
            cubin.function(name)
        for name in sorted(self.calls):
            cubin.external(name)
        for name in sorted(self.uses):
            cubin.symbol(Symbol(name, OBJECT))
        cubin.symbol(Symbol("weakly", FUNC, WEAK))  # not needed by anyone
        return cubin.build()


def chosen(files: list[File], *, relocatable: bool = False) -> list[bool]:
    arena, extents = b"", b""
    for file in files:
        data = file.build()
        extents += struct.pack("<QQ", len(arena), len(data))
        arena += data
    demand = bytes(file.demand for file in files)
    groups = struct.pack(f"<{len(files)}i", *(file.group for file in files))
    return [
        bool(taken) for taken in select(arena, extents, demand, groups, relocatable=relocatable)
    ]


def reference(files: list[File], *, relocatable: bool = False) -> list[bool]:
    taken = [False] * len(files)
    order: list[str] = []  # names in the order in which they were needed

    def defined() -> set[str]:
        return {
            name
            for is_taken, take in zip(files, taken, strict=True)
            if take
            for name in is_taken.functions
        }

    def take(number: int) -> None:
        if not taken[number]:
            taken[number] = True
            file = files[number]
            # As in the symbol table: functions, then variables.
            order.extend([*sorted(file.calls), *sorted(file.uses)])

    for number, file in enumerate(files):
        known = defined()
        missing = {
            name
            for other, used in zip(files, taken, strict=True)
            if used
            for name in other.calls
            if name not in known and name not in NAMES[4:]
        }
        if file.demand == Demand.ALWAYS or (file.demand == Demand.SYSTEM and missing):
            take(number)
    at = 0
    while at < len(order):
        name = order[at]
        at += 1
        if name in defined():
            continue
        for number, file in enumerate(files):
            if name not in file.functions or file.demand == Demand.ALWAYS:
                continue
            if relocatable and file.demand != Demand.NEEDED:
                continue
            if file.demand == Demand.TOGETHER:
                for other, member in enumerate(files):
                    if member.demand == Demand.TOGETHER and member.group == file.group:
                        take(other)
            else:
                take(number)
            break
    return taken if any(taken) else [file.demand == Demand.TOGETHER for file in files]


subsets = st.sets(st.sampled_from(NAMES), max_size=3)
archives = st.lists(
    st.lists(
        st.tuples(st.integers(Demand.ALWAYS, Demand.TOGETHER), subsets, subsets, subsets),
        max_size=3,
    ),
    max_size=4,
)


@given(archives, st.booleans())
def test_agrees_with_the_reference(
    groups: list[list[tuple[int, set[str], set[str], set[str]]]], relocatable: bool
) -> None:
    files = [
        File(demand, number + 1, defines, calls - defines, uses - defines - calls)
        for number, group in enumerate(groups)
        for demand, defines, calls, uses in group
    ]
    assert chosen(files, relocatable=relocatable) == reference(files, relocatable=relocatable)


def test_a_group_is_taken_as_a_whole() -> None:
    together = [File(Demand.TOGETHER, 1, {name}) for name in "bac"]
    files = [
        File(calls={"a"}),
        *together,
        File(Demand.TOGETHER, 2, {"d"}),
        File(Demand.NEEDED, 1, {"e"}),
    ]
    assert chosen(files) == [True, True, True, True, False, False]
    assert chosen(files[::-1]) == [False, False, True, True, True, True]
    assert chosen(files, relocatable=True) == [True, False, False, False, False, False]


def test_a_long_chain_backwards() -> None:
    count = 3000
    files = [File(Demand.NEEDED, 1, {f"f{i}"}, {f"f{i - 1}"} if i else set()) for i in range(count)]
    files.append(File(calls={f"f{count - 1}"}))
    assert all(chosen(files))


def test_a_second_definition_leaves_nothing_missing() -> None:
    twice = File(functions={"a"})
    assert chosen([File(calls={"a"}), twice, twice, File(Demand.SYSTEM)]) == [
        True,
        True,
        True,
        False,
    ]


def test_damaged_files_are_left_to_their_reader() -> None:
    damaged = b"\x7fELF" + bytes(60)
    extents = struct.pack("<4Q", 0, 64, 0, 64)
    groups = struct.pack("<2i", 0, 1)
    assert (
        select(damaged, extents, bytes([Demand.NEEDED, Demand.TOGETHER]), groups, relocatable=False)
        == b"\1\0"
    )


@given(st.data())
def test_no_file_can_break_it(data: st.DataObject) -> None:
    image = bytearray(File(functions={"a"}, calls={"b"}).build())
    for _ in range(data.draw(st.integers(1, 8))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.integers(0, len(image)))
    extents = struct.pack("<4Q", 0, size, 0, len(image))
    taken = select(
        bytes(image), extents, bytes([Demand.NEEDED, Demand.ALWAYS]), bytes(8), relocatable=False
    )
    assert taken[1] == 1


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="length"):
        select(b"", bytes(16), b"", bytes(4), relocatable=False)
    with pytest.raises(IndexError, match="file 0"):
        select(b"", struct.pack("<QQ", 0, 1), b"\0", bytes(4), relocatable=False)
    assert select(b"", b"", b"", b"", relocatable=True) == b""
