"""A naive reference of the layout of shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

FAMILY_A, FAMILY_B, FAMILY_C = range(3)
COMMON, DEAD = -1, -2
RESERVED = 0x400  # the reserve that families B and C add to sections, in bytes


class Variable(NamedTuple):
    """A shared variable or extern array.

    `owner` is the number of the kernel that it belongs to, COMMON for none, DEAD for a removed one.
    """

    size: int
    align: int
    owner: int = COMMON
    referenced: bool = True
    extern: bool = False


class Program(NamedTuple):
    """A program; `uses` are pairs (variable, kernel), `extern_uses` pairs (kernel, tie or -1).

    A tie is a group of kernels whose extern arrays must have one address. `keeps_common` is for
    -g and -preserve-relocs.
    """

    kernel_count: int
    tie_count: int
    variables: list[Variable]
    uses: list[tuple[int, int]]
    extern_uses: list[tuple[int, int]]
    keeps_common: bool = False


class Section(NamedTuple):
    """The shared memory section of a kernel in the output, or `.nv_debug.shared`.

    `extern_address` is that of the kernel's extern arrays, -1 for none. `survives` says whether the
    section is written, `has_symbol` whether its section symbol is.
    """

    size: int
    align: int
    extern_address: int
    survives: bool
    has_symbol: bool


class Layout(NamedTuple):
    """A layout: offsets by variable, sections by kernel, and addresses by tie; -1 for none."""

    offsets: list[int]
    kernels: list[Section]
    ties: list[int]
    debug_shared: Section


def round_up(value: int, align: int) -> int:
    return -(-value // align) * align


def sort_list(items: list[int], key: Callable[[int], object]) -> list[int]:
    """Sort as nvlink does, also in the order of items with equal keys."""
    if len(items) <= 1:
        return items
    first, second = (sort_list(items[i::2][::-1], key) for i in (0, 1))
    merged = []
    while first and second:
        merged.append((first if key(first[0]) <= key(second[0]) else second).pop(0))  # type: ignore[operator]
    return merged + first + second


def tie_addresses(program: Program, ends: list[int]) -> tuple[dict[int, int], list[int]]:
    """Return the addresses of extern arrays, by kernel and by tie.

    `ends` are the ends of the kernels' variables.
    """
    addresses = {kernel: round_up(ends[kernel], 16) for kernel, _ in program.extern_uses}
    ties = [-1] * program.tie_count
    settled = False
    while not settled:
        settled = True
        for kernel, tie in program.extern_uses:
            if tie >= 0 and ties[tie] != addresses[kernel]:
                ties[tie] = addresses[kernel] = max(ties[tie], addresses[kernel])
                settled = False
    return addresses, ties


def layout_shared(family: int, program: Program) -> Layout:
    """Return the layout of an executable, by the rules in the docstring of the native function."""
    kernel_count, variables, uses = program.kernel_count, program.variables, program.uses
    users: list[set[int]] = [set() for _ in variables]
    for variable, kernel in uses:
        users[variable].add(kernel)
    extern_exists = any(v.extern for v in variables)
    offsets = [-1] * len(variables)
    ends = [0] * kernel_count
    aligns = [1] * kernel_count

    common = [i for i, v in enumerate(variables) if v.owner == COMMON]
    order = sort_list(common, lambda i: variables[i].size)[::-1]
    order = [i for i in order if not variables[i].extern]
    most_aligned = max([1, *(variables[i].align for i in common)])
    groups: list[list[int]] = []
    for i in order:
        if len(users[i]) == 1 or not variables[i].referenced:
            continue
        for members in groups:
            if not any(users[i] & users[member] for member in members):
                members.append(i)
                break
        else:
            groups.append([i])
    common_size = 0
    for members in groups:
        common_size = round_up(common_size, max(variables[i].align for i in members))
        for i in members:
            offsets[i] = common_size
            for kernel in users[i]:
                ends[kernel] = max(ends[kernel], common_size + variables[i].size)
                aligns[kernel] = max(aligns[kernel], variables[i].align)
        common_size += max(variables[i].size for i in members)

    for kernel in range(kernel_count):
        private = [i for i, v in enumerate(variables) if v.owner == kernel]
        private += [i for i in order if users[i] == {kernel}]
        for i in sort_list(private, lambda i: (-variables[i].align, variables[i].size)):
            offsets[i] = round_up(ends[kernel], variables[i].align)
            ends[kernel] = offsets[i] + variables[i].size
            aligns[kernel] = max(aligns[kernel], variables[i].align)

    addresses, ties = tie_addresses(program, ends)
    if not groups:
        most_aligned = 1
    kernels = []
    for kernel in range(kernel_count):
        address = addresses.get(kernel, -1)
        size = max(ends[kernel], address)
        align = max(aligns[kernel], most_aligned, 16 if address >= 0 else 1)
        stays = size > 0 or (extern_exists and (align >= 16 if family == FAMILY_B else align == 16))
        has_symbol = stays and (size > 0 or family == FAMILY_B)
        if stays and family != FAMILY_A:
            size += RESERVED
        kernels.append(Section(size, align, address, stays, has_symbol))

    align = max(most_aligned, 16 if extern_exists else 1)
    size = common_size if program.keeps_common else 0
    stays = size > 0 or (extern_exists and align == 16)
    like_kernels = program.keeps_common and family == FAMILY_B
    has_symbol = stays and (size > 0 or like_kernels)
    if stays and (family == FAMILY_C or like_kernels):
        size += RESERVED
    return Layout(offsets, kernels, ties, Section(size, align, -1, stays, has_symbol))


def layout_relocatable(program: Program) -> tuple[list[Section], list[int]]:
    """Return sections of kernels and `.nv_debug.shared` with -r, and the addresses of ties."""
    variables = program.variables
    extern_exists = any(v.extern for v in variables)
    most_aligned = max([1, *(v.align for v in variables if v.owner == COMMON)])
    sums = [sum(v.size for v in variables if v.owner == k) for k in range(program.kernel_count)]
    addresses, ties = tie_addresses(program, sums)
    sections = []
    for kernel, total in enumerate([*sums, sum(v.size for v in variables if v.owner == COMMON)]):
        address = addresses.get(kernel, -1)
        common = kernel == program.kernel_count
        size = max(total, address)
        align = max([most_aligned, *(v.align for v in variables if v.owner == kernel)])
        if address >= 0 or (common and extern_exists):
            align = max(align, 16)
        has_symbol = size > 0
        stays = has_symbol or (extern_exists and (common or align == 16))
        if stays and size <= align:
            size += align
        sections.append(Section(size, align, address, stays, has_symbol))
    return sections, ties
