"""Shared memory layout: the native kernel against the naive reference, and recorded links."""

from __future__ import annotations

import random
import struct

import pytest
from helpers.shared_reference import (
    COMMON,
    DEAD,
    FAMILY_A,
    FAMILY_B,
    FAMILY_C,
    Layout,
    Program,
    Section,
    Variable,
)
from helpers.shared_reference import layout_relocatable as relocatable_reference
from helpers.shared_reference import layout_shared as layout_reference

from pylink._native import shared
from pylink._native.results import SharedTables

FAMILIES = (FAMILY_A, FAMILY_B, FAMILY_C)


def tables_of(program: Program) -> SharedTables:
    return SharedTables(
        program.kernel_count,
        program.tie_count,
        variables=b"".join(
            struct.pack("=QQiI", v.size, v.align, v.owner, v.referenced | v.extern << 1)
            for v in program.variables
        ),
        uses=b"".join(struct.pack("=II", *use) for use in program.uses),
        extern_uses=b"".join(struct.pack("=IiQI", *use, 0, 0) for use in program.extern_uses),
    )


def sections_of(shared: SharedTables) -> list[Section]:
    return [
        Section(row.size, row.align, row.extern_address, bool(row.flags & 1), bool(row.flags & 2))
        for row in shared.kernels
    ]


def layout(family: int, program: Program, *, reserves: bool = True) -> Layout:
    """Call the native kernel with the arguments of the reference."""
    tables = tables_of(program)
    shared.layout_shared(
        tables,
        family,
        keeps_common=program.keeps_common,
        aligns_arrays=False,
        ties_arrays=False,
        reserves=reserves,
    )
    *sections, debug_shared = sections_of(tables)
    return Layout(list(tables.offsets), sections, list(tables.ties), debug_shared)


def relocatable(program: Program) -> tuple[list[Section], list[int]]:
    """Call the native kernel for relocatable links with the arguments of the reference."""
    tables = tables_of(program)
    shared.layout_relocatable(tables, aligns_arrays=False, ties_arrays=False)
    return sections_of(tables), list(tables.ties)


def random_program(
    rng: random.Random, max_kernels: int, max_variables: int, sizes: list[int]
) -> Program:
    kernels = rng.randint(0, max_kernels)
    ties = rng.randint(0, 5)
    variables = [
        Variable(
            rng.choice(sizes),
            1 << rng.randint(0, rng.choice([2, 4, 7])),
            rng.choice([COMMON, COMMON, DEAD, *range(kernels)]),
            rng.random() < 0.8,
        )
        for _ in range(rng.randint(0, max_variables))
    ]
    for _ in range(rng.choice([0, 0, 1, 2])):
        variables.insert(rng.randint(0, len(variables)), Variable(0, 0, extern=True))
    common = [i for i, v in enumerate(variables) if v.owner == COMMON and v.referenced]
    uses: list[tuple[int, int]] = []
    extern_uses: list[tuple[int, int]] = []
    if kernels:
        density = rng.choice([1, kernels, 3 * kernels])
        uses = [
            (rng.choice(common), rng.randrange(kernels))
            for _ in range(rng.randint(0, density * len(common)))
        ]
        uses = [(v, k) for v, k in uses if not variables[v].extern]
        if any(v.extern for v in variables):
            extern_uses = [
                (rng.randrange(kernels), rng.randrange(-1, ties))
                for _ in range(rng.randint(0, 2 * kernels))
            ]
    return Program(kernels, ties, variables, uses, extern_uses, rng.random() < 0.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_reserve_all_families_are_the_first(family: int) -> None:
    rng = random.Random(family)
    for _ in range(300):
        program = random_program(rng, 4, 6, [4, 8, 13])
        assert layout(family, program, reserves=False) == layout_reference(0, program)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sizes", [list(range(65)), [4, 8], [8]], ids=["any", "two", "ties"])
def test_layout_agrees_with_reference(family: int, sizes: list[int]) -> None:
    rng = random.Random(7)
    for _ in range(200):
        program = random_program(rng, max_kernels=8, max_variables=24, sizes=sizes)
        assert layout(family, program) == layout_reference(family, program)


def test_layout_of_more_groups_than_one_word() -> None:
    rng = random.Random(11)
    for _ in range(5):
        program = random_program(rng, max_kernels=90, max_variables=300, sizes=[1, 4, 8])
        assert layout(FAMILY_A, program) == layout_reference(FAMILY_A, program)
    overlapping = [Variable(4, 4) for _ in range(200)]
    uses = [(v, k) for v in range(200) for k in (0, 1)]
    assert layout(FAMILY_A, Program(2, 0, overlapping, uses, [], True)).debug_shared.size == 800


def test_nothing_to_place() -> None:
    assert layout(FAMILY_C, Program(0, 0, [], [], [])) == Layout(
        [], [], [], Section(0, 1, -1, False, False)
    )
    assert layout(FAMILY_B, Program(1, 0, [], [], [])).kernels == [Section(0, 1, -1, False, False)]


@pytest.mark.parametrize(
    ("count", "order"),
    [
        (2, [0, 1]),
        (3, [2, 0, 1]),
        (4, [2, 0, 3, 1]),
        (5, [0, 4, 2, 3, 1]),
        (8, [2, 6, 0, 4, 3, 7, 1, 5]),
        (13, [8, 0, 12, 4, 10, 2, 6, 11, 3, 7, 9, 1, 5]),
    ],
)
def test_equal_variables_of_a_kernel_take_the_recorded_order(count: int, order: list[int]) -> None:
    offsets = layout(FAMILY_A, Program(1, 0, [Variable(4, 4, owner=0)] * count, [], [])).offsets
    assert sorted(range(count), key=offsets.__getitem__) == order


def test_variables_of_disjoint_kernels_overlap_with_the_larger_alignment() -> None:
    # The slot of the second variable moves from 5 to 16 because of its third, smaller tenant.
    variables = [Variable(5, 1), Variable(4, 1), Variable(2, 16)]
    uses = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 2), (2, 3)]
    assert layout(FAMILY_A, Program(4, 0, variables, uses, [])).offsets == [0, 16, 16]


@pytest.mark.parametrize(("referenced", "second"), [(True, 24), (False, 8)])
def test_unreached_variable_reserves_room_when_code_refers_to_it(
    referenced: bool, second: int
) -> None:
    variables = [Variable(24, 8, referenced=referenced), Variable(8, 8), Variable(8, 8)]
    uses = [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert sorted(layout(FAMILY_A, Program(2, 0, variables, uses, [])).offsets[1:]) == [0, second]


def test_function_ties_the_extern_arrays_of_its_kernels() -> None:
    variables = [Variable(28, 4, 0), Variable(200, 4, 1), Variable(0, 0, extern=True)]
    variables.append(Variable(356, 4, 2))
    result = layout(FAMILY_A, Program(3, 1, variables, [], [(0, 0), (1, 0), (2, -1)]))
    assert [kernel.extern_address for kernel in result.kernels] == [0xD0, 0xD0, 0x170]
    assert result.ties == [0xD0]


def test_tied_kernels_tie_further_functions() -> None:
    variables = [Variable(100, 4, 0), Variable(4, 4, 2), Variable(0, 0, extern=True)]
    result = layout(FAMILY_A, Program(3, 2, variables, [], [(2, 1), (1, 1), (1, 0), (0, 0)]))
    assert result.ties == [112, 112]


@pytest.mark.parametrize(
    ("family", "section"),
    [
        (FAMILY_A, Section(8, 8, -1, True, True)),
        (FAMILY_B, Section(0x408, 8, -1, True, True)),
        (FAMILY_C, Section(0x408, 8, -1, True, True)),
    ],
)
def test_common_part_stays_in_links_that_remove_nothing(family: int, section: Section) -> None:
    program = Program(2, 0, [Variable(8, 8)], [(0, 0), (0, 1)], [])
    assert not layout(family, program).debug_shared.survives
    assert layout(family, program._replace(keeps_common=True)).debug_shared == section


@pytest.mark.parametrize(
    ("family", "align", "empty", "keeps"),
    [
        (FAMILY_A, 8, None, True),
        (FAMILY_A, 16, (0, 16, False), True),
        (FAMILY_A, 32, None, False),
        (FAMILY_B, 8, None, True),
        (FAMILY_B, 16, (0x400, 16, True), True),
        (FAMILY_B, 32, (0x400, 32, True), False),
        (FAMILY_C, 8, None, True),
        (FAMILY_C, 16, (0x400, 16, False), True),
        (FAMILY_C, 32, None, False),
    ],
)
def test_extern_array_keeps_empty_sections(
    family: int, align: int, empty: tuple[int, int, bool] | None, keeps: bool
) -> None:
    variables = [Variable(8, align), Variable(0, 0, extern=True)]
    result = layout(family, Program(3, 0, variables, [(0, 0), (0, 1)], []))
    kernel = result.kernels[2]
    assert kernel.survives == (empty is not None)
    if empty is not None:
        assert (kernel.size, kernel.align, kernel.has_symbol) == empty
    assert result.debug_shared.survives == keeps


def test_relocatable_sizes_agree_with_reference() -> None:
    rng = random.Random(13)
    for _ in range(300):
        program = random_program(rng, max_kernels=6, max_variables=12, sizes=[0, 1, 4, 8, 40])
        assert relocatable(program) == relocatable_reference(program)


@pytest.mark.parametrize(
    ("size", "align", "recorded"),
    [(0, 1, (16, 16)), (4, 4, (32, 16)), (17, 8, (32, 16)), (1, 32, (48, 32)), (33, 32, (48, 32))],
)
def test_relocatable_kernel_with_extern_array_has_the_recorded_size(
    size: int, align: int, recorded: tuple[int, int]
) -> None:
    variables = [Variable(0, 0, extern=True)] + [Variable(size, align, 0)] * bool(size)
    (kernel, _), _ = relocatable(Program(1, 0, variables, [], [(0, -1)]))
    assert (kernel.size, kernel.align) == recorded
    assert kernel.has_symbol == bool(size)


# With an array whose symbol says its alignment, as those of CUDA 13.1 and later do.
@pytest.mark.parametrize(
    ("own", "array", "most", "recorded", "address"),
    [
        (0, 16, 16, (0x20, 16), 0x10),
        (7, 16, 16, (0x20, 16), 0x10),
        (20, 16, 16, (0x20, 16), 0x20),
        (0, 32, 32, (0x40, 32), 0x20),
        (0, 16, 32, (0x40, 32), 0x10),
        (40, 16, 32, (0x40, 32), 0x30),
        (7, 16, 64, (0x80, 64), 0x10),
        (70, 16, 64, (0x80, 64), 0x50),
        (70, 64, 64, (0x80, 64), 0x80),
    ],
)
def test_an_array_that_says_its_alignment_with_r(
    own: int, array: int, most: int, recorded: tuple[int, int], address: int
) -> None:
    rows = [(0, array, -1, 3 | 4), (0, most, -1, 3 | 4)] + [(own, 1, 0, 1)] * bool(own)
    variables = b"".join(struct.pack("=QQiI", *row) for row in rows)
    use = struct.pack("=IiQI", 0, -1, array, 0)
    tables = SharedTables(1, 0, variables=variables, uses=b"", extern_uses=use)
    shared.layout_relocatable(tables, aligns_arrays=True, ties_arrays=False)
    kernel = tables.kernels[0]
    assert (kernel.size, kernel.align, kernel.extern_address) == (*recorded, address)


@pytest.mark.parametrize(("array", "size"), [(0, 0x10), (16, 0x10), (32, 0x20), (64, 0x40)])
def test_an_array_that_says_its_alignment(array: int, size: int) -> None:
    variables = struct.pack("=QQiI", 0, max(array, 1), -1, 3 | 4 * bool(array))
    variables += struct.pack("=QQiI", 12, 4, 0, 1)
    use = struct.pack("=IiQI", 0, -1, array, 0)
    tables = SharedTables(1, 0, variables=variables, uses=b"", extern_uses=use)
    shared.layout_shared(tables, 0, keeps_common=False, aligns_arrays=True, ties_arrays=False)
    kernel = tables.kernels[0]
    assert (kernel.size, kernel.align, kernel.extern_address) == (size, max(array, 16), size)


@pytest.mark.parametrize(("ties", "size", "address"), [(False, 0x80, 0x10), (True, 0x80, 0x80)])
def test_a_kernel_with_an_array_has_a_multiple_of_its_alignment(
    ties: bool, size: int, address: int
) -> None:
    """From 13.1 on; with -g, where arrays have an address each, the array is aligned, too."""
    variables = struct.pack("=QQiI", 0, 1, -1, 3) + struct.pack("=QQiI", 12, 128, 0, 1)
    use = struct.pack("=IiQI", 0, 0 if ties else -1, 0, 0)
    tables = SharedTables(1, 1, variables=variables, uses=b"", extern_uses=use)
    shared.layout_shared(tables, 0, keeps_common=False, aligns_arrays=True, ties_arrays=ties)
    kernel = tables.kernels[0]
    assert (kernel.size, kernel.align, kernel.extern_address) == (size, 128, address)


@pytest.mark.parametrize(("flags", "align"), [(0, 64), (4, 16)])
def test_a_section_for_arrays_alone_is_no_more_aligned(flags: int, align: int) -> None:
    variables = struct.pack("=QQiI", 0, 1, -1, 3) + struct.pack("=QQiI", 8, 64, -1, 1)
    use = struct.pack("=IiQI", 0, -1, 0, flags)
    linked, relocatable = (
        SharedTables(1, 0, variables=variables, uses=b"", extern_uses=use) for _ in range(2)
    )
    shared.layout_shared(linked, 0, keeps_common=True, aligns_arrays=False, ties_arrays=False)
    shared.layout_relocatable(relocatable, aligns_arrays=False, ties_arrays=False)
    assert linked.kernels[0].align == relocatable.kernels[0].align == align


def test_bad_tables_are_refused() -> None:
    good = [Variable(4, 4, 0)]

    def lay_out(program: Program, family: int = 0) -> None:
        shared.layout_shared(
            tables_of(program), family, keeps_common=False, aligns_arrays=False, ties_arrays=False
        )

    lay_out(Program(1, 0, good, [], []))
    with pytest.raises(ValueError, match="family"):
        lay_out(Program(1, 0, good, [], []), family=3)
    with pytest.raises(ValueError, match="31 bits"):
        lay_out(Program(-1, 0, [], [], []))
    with pytest.raises(ValueError, match="32 bits"):
        lay_out(Program(1, 0, [Variable(1 << 32, 4, 0)], [], []))
    with pytest.raises(IndexError, match="variable 0"):
        lay_out(Program(0, 0, good, [], []))
    with pytest.raises(IndexError, match="use 0"):
        lay_out(Program(1, 0, good, [(1, 0)], []))
    with pytest.raises(IndexError, match="extern use 0"):
        lay_out(Program(1, 1, good, [], [(0, 1)]))
