"""Programs of the pool that the link itself compiles: PTX and LTO-IR, alone and beside cubins.

The functions of a whole program lie inside of its kernels, and ptxas does not count the stack of
those that are called through pointers: such a program has the stack that the driver gives at least.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import oracle
from helpers.lto_sources import write_nvvm
from helpers.programs import Module, Program

import pylink
from emulator import pool
from emulator.decode import Decoder
from emulator.load import Loaded
from emulator.test_linked_programs import Linked, check, same_in_memory

pytestmark = oracle.needs_oracle
pytest.importorskip("cuda.bindings", reason="needs nvJitLink: pip install '.[cuda]'")

STACK = 1024  # of cudaLimitStackSize, unless a program sets it
SEEDS = range(2 * len(pool.MAINS))


def ltoir(module: Module, _arch: str) -> bytes:
    return oracle.compile_ltoir(module.source, name=module.name)


def ptx(module: Module, arch: str) -> bytes:
    target = oracle.PTX_ARCH[arch]
    return oracle.compile_ptx(module.source, target, module.flags, name=module.name).encode()


# What makes an input, how its name ends, and which modules are such; the others are cubins.
Compile = Callable[[Module, str], bytes]
WAYS: dict[str, tuple[Compile, str, int]] = {
    "lto": (ltoir, ".ltoir", 1),
    "lto-half": (ltoir, ".ltoir", 2),
    "ptx": (ptx, ".ptx", 1),
    "ptx-half": (ptx, ".ptx", 2),
}
# nvlink leaves PTX out before sm_90, and LTO-IR out of links with cubins: pylink alone links these.
LINKS = [
    (arch, way) for arch in ("80", "90a", "100") for way in WAYS if arch != "80" or "lto" in way
]
ALONE = "lto-half"


def written(program: Program, arch: str, way: str, folder: Path) -> list[str]:
    """The names of the inputs, which are in the folder."""
    make, ending, step = WAYS[way]
    names = []
    for index, module in enumerate(program.modules):
        if index % step:
            image = oracle.compile(module.source, arch, module.flags, name=module.name)
            names.append(f"m{index}.cubin")
        else:
            image = make(module, arch)
            names.append(f"m{index}{ending}")
        (folder / names[-1]).write_bytes(image)
    return names


@pytest.mark.parametrize(("arch", "way"), LINKS)
def test_memory_is_as_python_computes(
    arch: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_nvvm(tmp_path)
    lto = "lto" in way
    stack = STACK if way == "lto" else 0
    cases = []
    for seed in SEEDS:
        program = pool.generate(seed)
        names = written(program, arch, way, tmp_path)
        theirs = None
        if way != ALONE:
            argv = [f"-arch=sm_{arch}", *names, "-o", "theirs.cubin"]
            argv += ["-lto", "-nvvmpath=nvvm"] if lto else []
            theirs = oracle.run_nvlink(argv, tmp_path, "theirs.cubin").image
            assert theirs is not None
        inputs = [tmp_path / name for name in names]
        nvvm = "nvvm" if lto else None
        image = pylink.link(inputs, arch=f"sm_{arch}", lto=lto, nvvmpath=nvvm).image
        cases.append(Linked(program, way, arch, (theirs, image)))
    loaded = [
        (Loaded(theirs, arch) if theirs else None, Loaded(ours, arch))
        for theirs, ours in (case.images for case in cases)
    ]
    Decoder.of(arch).learn(bytes(program.code) for pair in loaded for program in pair if program)
    for case, (first, second) in zip(cases, loaded, strict=True):
        assert check(second, case, stack=stack) == len(pool.KERNELS)
        if first and not same_in_memory(first, second):
            check(first, case, stack=stack)
