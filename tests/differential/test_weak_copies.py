"""Weak functions with several copies: which one stays, and what debug data of the others."""

from __future__ import annotations

import itertools

import pytest
from helpers import oracle
from helpers.side_by_side import differences

FEW, MANY = 8, 40  # values that a function has in registers at a time

OLD = {"75": "60", "80": "75", "90a": "75", "100": "75", "120": "90"}

OPTIONS = [[], ["-r"], ["-g"], ["--kernels-used=k3"]]

# From sm_100 on nvlink ends with an internal error where a selection meets copies.
LINKS = [
    (arch, options)
    for arch in OLD
    for options in (OPTIONS[:3] if arch in ("100", "120") else OPTIONS)
]

pytestmark = [
    oracle.needs_oracle,
    pytest.mark.parametrize(("arch", "options"), LINKS, ids=str),
    pytest.mark.parametrize("kind", ["func", "entry"]),
]

# Weak function t, and a kernel of the file that uses it or, when t is a kernel itself, does not.
FUNCTION = """\
.version 9.0
.target sm_{target}
.address_size 64
.file 1 "t.cu"
.{linkage} .global .u32 g;
.weak .{kind} {name}(.param .u64 p)
{{
  .reg .u32 %r<64>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [p];
  {relocated}
  .loc 1 5 0
  {inlined}
  mov.u32 %r0, {mark};
  st.global.u32 [%rd1], %r0;
  {loads}
  {stores}
  ret;
}}
.visible .entry k{mark}(.param .u64 p)
{{
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [p];
  {call}
  ret;
}}
"""
CALL = "{{ .param .u64 q; st.param.u64 [q], %rd1; call {name}, (q); }}"
INLINED = ".loc 1 9 0, function_name $inner, inlined_at 1 5 0"
NAMES = "\n.section .debug_str { $inner: .b8 105, 0 }\n"
RELOCATED = "mov.u64 %rd2, g; st.global.u64 [%rd1+512], %rd2;"


def copy(
    mark: int,
    arch: str,
    target: str,
    kind: str,
    values: int,
    *,
    relocated: bool,
    inlined: bool = False,
    name: str = "t",
) -> bytes:
    """A cubin with a copy of the function; `mark` tells copies apart."""
    numbers = range(1, values + 1)
    source = FUNCTION.format(
        target=target,
        linkage="visible" if mark == 1 else "extern",
        kind=kind,
        relocated=RELOCATED if relocated else "",
        mark=mark,
        loads="".join(f"ld.volatile.global.u32 %r{i}, [%rd1+{4 * i}];" for i in numbers),
        stores="".join(f"st.volatile.global.u32 [%rd1+{4 * i}], %r{i};" for i in numbers),
        name=name,
        call=CALL.format(name=name) if kind == "func" else "",
        inlined=INLINED if inlined else "",
    ) + (NAMES if inlined else "")
    return oracle.assemble(source, arch, ("-lineinfo",))


def test_the_newer_virtual_architecture_wins_among_equals(
    arch: str, kind: str, options: list[str]
) -> None:
    new = arch.rstrip("a")
    for first, second in itertools.permutations((OLD[arch], new)):
        cubins = [
            copy(1, arch, first, kind, FEW, relocated=True),
            copy(2, arch, second, kind, FEW, relocated=True),
        ]
        assert differences(cubins, arch, options) == []


def test_a_replaced_copy_with_relocations_leaves_no_frames_and_lines(
    arch: str, kind: str, options: list[str]
) -> None:
    target = arch.rstrip("a")
    for first, second in itertools.product((False, True), repeat=2):
        if arch in ("100", "120") and not first:
            continue  # its lines stay, as the winner's instructions lie: a known difference
        cubins = [
            copy(1, arch, target, kind, MANY, relocated=first),
            copy(2, arch, target, kind, FEW, relocated=second),
        ]
        assert differences(cubins, arch, options) == []


# On A the line header's name of an inlined function makes an explicit relocation section first.
def test_the_first_form_of_line_relocations_decides_what_a_replaced_copy_leaves(
    arch: str, kind: str, options: list[str]
) -> None:
    target = arch.rstrip("a")
    for relocated, before, first, second in itertools.product((False, True), repeat=4):
        if arch in ("100", "120") and not relocated:
            continue  # a known difference, as above
        cubins = [
            copy(3, arch, target, kind, FEW, relocated=False, inlined=before, name="u"),
            copy(1, arch, target, kind, MANY, relocated=relocated, inlined=first),
            copy(2, arch, target, kind, FEW, relocated=relocated, inlined=second),
        ]
        assert differences(cubins, arch, options) == []
        assert differences(cubins[1:], arch, options) == []
