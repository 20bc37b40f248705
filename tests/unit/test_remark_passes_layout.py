"""What the passes behind the layout say of links whose every decision is known."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.cubin_builder import (
    GLOBAL,
    IN_SHARED,
    SHT_PROGBITS,
    SHT_SHARED,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)
from helpers.remarked import lines, remarks_of

import pylink
from pylink.facts.target import Target

ABS32_LO, ABS32_HI, ABS24 = 56, 57, 74


class SharedCubin(Cubin):
    """A cubin whose functions use shared variables."""

    def common(self, name: str, size: int, align: int = 4) -> int:
        names = [section.name for section in self.sections]
        if ".nv_debug.shared" not in names:
            self.section(Section(".nv_debug.shared", SHT_SHARED, flags=3, size=0, align=16))
        section = self.find(".nv_debug.shared")
        self.sections[section - 1].size = (self.sections[section - 1].size or 0) + size
        return self.symbol(Symbol(name, other=IN_SHARED, section=section, value=align, size=size))

    def own(self, kernel: str, name: str, size: int, align: int = 4) -> int:
        text = self.find(f".text.{kernel}")
        section = self.section(
            Section(f".nv.shared.{kernel}", SHT_SHARED, flags=0x43, size=size, info=text)
        )
        return self.symbol(
            Symbol(name, bind=GLOBAL, other=IN_SHARED, section=section, value=align, size=size)
        )

    def array(self, name: str) -> int:
        return self.symbol(Symbol(name, other=IN_SHARED, size=0))

    def use(self, function: str, *variables: int) -> None:
        entries = [(16 * at, ABS24, symbol, 0) for at, symbol in enumerate(variables)]
        self.relocate(self.find(f".text.{function}"), entries)


def shared() -> SharedCubin:
    """Kernels k and l use `both`; k has a variable `own` besides, l its part of the common ones."""
    cubin = SharedCubin()
    for name in ("k", "l"):
        cubin.function(name, kernel=True)
    own = cubin.own("k", "own", 20, align=16)
    both = cubin.common("both", 12)
    variable = cubin.common("one", 8)
    cubin.use("k", own, both)
    cubin.use("l", variable, both)
    return cubin


def test_variables_of_each_kernel_with_padding_and_sums() -> None:
    assert lines({"a": shared()}, "shared-layout") == [
        "Analysis VariablePlaced k a:0:0 12 | in k, both lies at 0: 12 bytes aligned to 4, after 0 "
        "bytes of padding",
        "Analysis VariablePlaced k a:0:0 20 | in k, own lies at 16: 20 bytes aligned to 16, after "
        "4 bytes of padding",
        "Analysis KernelShared k a:0:0 36 | k takes 36 bytes of shared memory: 32 for 2 variables, "
        "4 of padding, 0 for the system",
        "Analysis VariablePlaced l a:0:0 12 | in l, both lies at 0: 12 bytes aligned to 4, after 0 "
        "bytes of padding",
        "Analysis VariablePlaced l a:0:0 8 | in l, one lies at 12: 8 bytes aligned to 4, after 0 "
        "bytes of padding",
        "Analysis KernelShared l a:0:0 20 | l takes 20 bytes of shared memory: 20 for 2 variables, "
        "0 of padding, 0 for the system",
    ]
    assert lines({"a": shared()}, "shared-layout", relocatable_link=True) == []


def test_variables_that_no_kernel_uses_together_lie_over_each_other() -> None:
    cubin = SharedCubin()
    for name in ("k", "l", "m", "n"):
        cubin.function(name, kernel=True)
    x, y = cubin.common("x", 32), cubin.common("y", 24)
    for name, variable in zip("klmn", (x, x, y, y), strict=True):
        cubin.use(name, variable)
    aliasing = [text for text in lines({"a": cubin}, "shared-layout") if "Aliasing" in text]
    assert aliasing == [
        "AnalysisAliasing VariablesOverlaid y a:0:0 24 | y at 0 overlaps x: no kernel uses both"
    ]


def test_extern_arrays_start_behind_the_variables_and_alias() -> None:
    cubin = SharedCubin()
    k = cubin.function("k", kernel=True)
    f = cubin.function("f")
    cubin.call(k, f)
    own = cubin.own("k", "own", 20)
    first, second = cubin.array("first"), cubin.array("second")
    cubin.use("k", own, first)
    cubin.use("f", second)
    assert lines({"a": cubin}, "shared-layout") == [
        "Analysis VariablePlaced k a:0:0 20 | in k, own lies at 0: 20 bytes aligned to 4, after 0 "
        "bytes of padding",
        "Analysis ArrayPlaced k a:0:0 32 | in k, extern array first starts at 32",
        "Analysis ArrayPlaced k a:0:0 32 | in k, extern array second starts at 32",
        "AnalysisAliasing ArraysAlias k a:0:0 32 | in k, extern arrays second and first both start "
        "at 32",
        "Analysis KernelShared k a:0:0 32 | k takes 32 bytes of shared memory: 20 for 1 variables, "
        "12 of padding, 0 for the system",
    ]


def kernel_with(size: int, arch: str) -> bytes:
    """A cubin whose kernel k has a variable of this size; from sm_100 on the compiler makes it."""
    if int(arch) >= 100:
        source = f"""
        extern "C" __global__ void k(int *p)
        {{
            __shared__ int own[{size // 4}];
            own[p[0]] = p[1];
            __syncthreads();
            p[0] = own[p[2]];
        }}
        """
        return oracle.compile(source, arch)
    cubin = SharedCubin(e_flags=Target(f"sm_{arch}").elf_flags)
    cubin.function("k", kernel=True)
    cubin.use("k", cubin.own("k", "own", size))
    return cubin.build()


SM_100 = pytest.param("100", marks=oracle.needs_oracle)


@pytest.mark.parametrize("arch", ["90", SM_100])
@pytest.mark.parametrize("disabled", [False, True])
def test_bytes_of_the_system_unless_an_option_disables_them(arch: str, disabled: bool) -> None:
    cubins = {"a": kernel_with(20, arch)}
    options = {"disable_smem_reservation": disabled}
    variable, kernel = remarks_of(cubins, arch, "shared-layout", options=options)
    reserved = 0 if disabled else 0x400
    assert f" lies at {reserved}: 20 bytes" in variable.message
    assert kernel.message == (
        f"k takes {20 + reserved} bytes of shared memory: 20 for 1 variables, 0 of padding, "
        f"{reserved} for the system"
    )


@pytest.mark.parametrize(
    ("arch", "most"),
    [("80", 0xC000), ("90", 0xC400), pytest.param("100", 0xC000, marks=oracle.needs_oracle)],
)
def test_too_much_without_bytes_of_the_system(arch: str, most: int) -> None:
    """A kernel has too much if the link refuses it: on sm_90 nvlink always subtracts 0x400."""
    for size in (most, most + 4):
        cubins = {"a": kernel_with(size, arch)}
        options = {"disable_smem_reservation": True}
        remarks = remarks_of(cubins, arch, "shared-layout", options=options)
        assert ("TooMuchShared" in [remark.name for remark in remarks]) is (size > most)
    with pytest.raises(pylink.LinkError, match="too much shared data"):
        pylink.link([kernel_with(most + 4, arch)], arch=f"sm_{arch}", disable_smem_reservation=True)


def test_a_kernel_with_more_shared_memory_than_there_is() -> None:
    cubin = SharedCubin()
    cubin.function("k", kernel=True)
    cubin.use("k", cubin.own("k", "own", 50000))
    assert lines({"a": cubin}, "shared-layout")[-1] == (
        "Failure TooMuchShared k a:0:0 50000 | k takes 50000 bytes of shared memory, more than the "
        "49152 that a kernel can have"
    )


def test_relocations_applied_and_kept_by_type_and_section() -> None:
    assert lines({"a": shared()}, "relocate") == [
        "Passed RelocationsApplied .text.k a:0:0 48 | in .text.k, applied relocations of type "
        "R_CUDA_ABS24_40: 2",
        "Passed RelocationsApplied .text.l a:0:0 48 | in .text.l, applied relocations of type "
        "R_CUDA_ABS24_40: 2",
    ]
    caller = Cubin()
    kernel = caller.function("c", kernel=True)
    callee = caller.function("g")
    caller.call(kernel, callee)
    caller.relocate(caller.find(".text.c"), [(0, ABS32_HI, callee, 0), (16, ABS32_LO, callee, 0)])
    caller.relocate(caller.find(".text.g"), [(0, ABS32_HI, callee, 0)], implicit=True)
    assert lines({"b": caller}, "relocate") == [
        "Missed RelocationsKept .text.c b:0:0 24 | for .text.c, kept relocations of type "
        "R_CUDA_ABS32_LO_32 in .rela.text.c: 1",
        "Missed RelocationsKept .text.c b:0:0 24 | for .text.c, kept relocations of type "
        "R_CUDA_ABS32_HI_32 in .rela.text.c: 1",
        "Missed RelocationsKept .text.g b:0:0 16 | for .text.g, kept relocations of type "
        "R_CUDA_ABS32_HI_32 in .rel.text.g: 1",
    ]


def with_debug(name: str, size: int) -> Cubin:
    cubin = one_kernel(name)
    cubin.section(Section(".debug_str", SHT_PROGBITS, bytes(size), align=1))
    return cubin


def test_debug_bytes_by_section_and_origin() -> None:
    cubins = {"a": with_debug("k", 10), "b": one_kernel("l"), "c": with_debug("m", 20)}
    assert lines(cubins, "debug") == [
        "Analysis DebugPiece .debug_str a:0:0 10 | 10 bytes of .debug_str come from a",
        "Analysis DebugPiece .debug_str c:0:0 20 | 20 bytes of .debug_str come from c",
        "Analysis DebugSection .debug_str a:0:0 30 | .debug_str has 30 bytes, from 30 bytes in "
        "input sections: 2",
    ]
