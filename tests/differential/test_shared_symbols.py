"""Symbols and sections of shared memory, by who uses a variable and which kernels are selected."""

from __future__ import annotations

import itertools
import random

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords

import pylink

pytestmark = oracle.needs_oracle

DELETED = "Internal error: reference to deleted symbol"
OPTIONS = [
    ["-preserve-relocs"],
    ["-g"],
    ["-preserve-relocs", "-g"],
    ["-preserve-relocs", "--kernels-used=k0"],
    ["-preserve-relocs", "--variables-used=none"],
    ["-r", "--kernels-used=k0,k1"],
    ["-g", "--kernels-used=k0"],
    ["-g", "-preserve-relocs", "--kernels-used=k1"],
    ["-g", "-suppress-debug-info", "--kernels-used=k1"],
    ["-r", "-g", "--kernels-used=k0"],
    ["--kernels-used=k1"],
]


def program(seed: int, part: int, arch: str) -> str:
    """PTX of one file: variables, extern arrays, functions that call earlier ones, kernels."""
    rng = random.Random(f"{seed} {part}")
    lines = [".version 9.0", f".target sm_{arch}", ".address_size 64"]
    variables = [f"v{part}_{i}" for i in range(rng.randrange(5))]
    arrays = [f"array{i}" for i in range(rng.randrange(3))]
    for name in variables:
        align, size = rng.choice([1, 4, 8, 16, 32]), rng.choice([4, 8, 12, 64, 64])
        lines.append(f".visible .shared .align {align} .b8 {name}[{size}];")
    lines += [f".extern .shared .align {rng.choice([4, 8, 16])} .b8 {name}[];" for name in arrays]
    functions: list[str] = []
    for i in range(rng.randrange(4)):
        lines += body(rng, f".visible .func f{part}_{i}", functions, variables + arrays)
        functions.append(f"f{part}_{i}")
    first = 3 * part
    for i in range(first, first + rng.randrange(1, 4)):
        lines += body(rng, f".visible .entry k{i}", functions, variables + arrays, own=True)
    return "\n".join(lines)


def body(
    rng: random.Random, head: str, functions: list[str], shared: list[str], *, own: bool = False
) -> list[str]:
    used = rng.sample(shared, min(len(shared), rng.randrange(3)))
    lines = [f"{head}(.param .u64 p) {{", ".reg .b64 %p; .reg .b32 %v;", "ld.param.u64 %p, [p];"]
    if own and rng.random() < 0.4:
        lines.append(f".shared .align {rng.choice([8, 32, 128])} .b8 own[24];")
        used.append("own")
    for at, name in enumerate(used):
        lines += [f"mov.u32 %v, {name};", f"st.volatile.global.u32 [%p+{4 * at}], %v;"]
        lines += [f"ld.shared.u32 %v, [{name}];", f"st.volatile.global.u32 [%p+{4 * at}], %v;"]
    for name in rng.sample(functions, min(len(functions), rng.randrange(3))):
        lines.append(f"{{ call {name}, (%p); }}")
    return [*lines, "ret;", "}"]


def differences(cubins: list[bytes], arch: str, options: list[str]) -> list[str]:
    """What differs; nothing where nvlink ends with an error of its own."""
    theirs = oracle.link(cubins, arch, options)
    if theirs.image is None:
        assert DELETED in theirs.stderr  # docs/nvlink-differences.md
    ours = pylink.link(cubins, arch=f"sm_{arch}", **keywords(options))
    return compare(bytes(ours.image), theirs.image) if theirs.image else []


@pytest.mark.parametrize("arch", ["75", "90", "100"])
@pytest.mark.parametrize("seed", range(12))
def test_programs_with_shared_memory(seed: int, arch: str) -> None:
    """With functions that no kernel reaches and kernels that nobody selects."""
    cubins = [oracle.assemble(program(seed, part, arch), arch) for part in range(2)]
    found = {" ".join(options): differences(cubins, arch, options)[:2] for options in OPTIONS}
    assert {options: lines for options, lines in found.items() if lines} == {}


@pytest.mark.parametrize("arch", ["75", "90", "100"])
@pytest.mark.parametrize("seed", range(12))
def test_second_stages_with_shared_memory(seed: int, arch: str) -> None:
    """What an earlier -r link made of arrays and variables, alone and with another file."""
    cubins = [oracle.assemble(program(seed, part, arch), arch) for part in range(2)]
    first = oracle.link(cubins[:1], arch, ["-r"]).image
    assert first is not None
    found = {
        f"{len(inputs)} {' '.join(options)}": differences(inputs, arch, options)[:2]
        for inputs in ([first], [first, cubins[1]])
        for options in ([], ["-r"], ["-g"], ["-preserve-relocs"])
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()[-1:]])
@pytest.mark.parametrize("arch", ["75", "90", "100"])
@pytest.mark.parametrize("seed", range(12, 16))
def test_third_stages_with_shared_memory(seed: int, arch: str, release: str) -> None:
    """Three links, each with and without -g; the second or the third has one more file."""
    found = {}
    partial = [["-r"], ["-r", "-g"]]
    with oracle.release(release):
        files = [oracle.assemble(program(seed, part, arch), arch) for part in range(2)]
        for stages in itertools.product(partial, partial, [[], ["-g"], *partial]):
            debug = ["-g" in options for options in stages]
            if (arch == "100" or release != oracle.DEFAULT) and debug != sorted(debug):
                continue  # barriers, arrays of several alignments: docs/nvlink-differences.md
            for grown in (0, 1):
                inputs = files[:1]
                for more, options in zip((0, grown, 1 - grown), stages, strict=True):
                    inputs = inputs + files[1 : 1 + more]
                    lines = differences(inputs, arch, options)
                    found[f"{grown} {stages} {options}"] = lines[:2]
                    inputs = [oracle.link(inputs, arch, options).image or b""]
    assert {name: lines for name, lines in found.items() if lines} == {}
