"""Variables that one file declares `.common` and others define or mention, in any order."""

from __future__ import annotations

import io
import itertools
import random

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords
from helpers.words import nvlink_words

import pylink

pytestmark = oracle.needs_oracle

ARCH = "80"
CRASHES = 0  # exit statuses below are signals
VALUE = " = {1, 2}"
KINDS = {
    f"{space[1:]}{size}{'=' if value else ''}": f"{space} .global .b8 v[{size}]{value};"
    for space, values in {
        ".common": ("",),
        ".extern": ("",),
        ".visible": ("", VALUE),
        ".weak": ("", VALUE),
    }.items()
    for value in values
    for size in (8, 12)
}
PAIRS = [pair for pair in itertools.product(KINDS, repeat=2) if "common" in "".join(pair)]
MORE = [
    ("common8", "common12", "visible8="),
    ("common8", "common12", "visible8"),
    ("visible8=", "common12", "common8"),
    ("extern12", "visible12=", "common8"),
    ("common8", "visible12=", "extern8"),
    ("weak8=", "common8", "visible8"),
]


def assembled(kind: str) -> bytes:
    head = f".version 9.0\n.target sm_{ARCH}\n.address_size 64\n"
    return oracle.assemble(f"{head}{KINDS[kind]}\n", ARCH)


@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()[-1:]])
@pytest.mark.parametrize("kinds", [*PAIRS, *MORE], ids="-".join)
def test_common_symbols_are_linked_or_refused_as_by_nvlink(
    kinds: tuple[str, ...], release: str
) -> None:
    with oracle.release(release):
        cubins = [assembled(kind) for kind in kinds]
        expected = oracle.link(cubins, ARCH)
    inputs = [(f"m{i}.cubin", cubin) for i, cubin in enumerate(cubins)]
    log = io.StringIO()
    try:
        image = bytes(pylink.link(inputs, arch=f"sm_{ARCH}", log=log).image)
    except pylink.LinkError:
        image = b""
    if expected.code < CRASHES:
        assert image  # docs/nvlink-differences.md
        return
    assert nvlink_words(log.getvalue()) == as_pylink(expected.stdout + expected.stderr)
    assert bool(image) == bool(expected.image)
    assert not expected.image or compare(image, expected.image) == []


def drawn(seed: int, release: str) -> tuple[str, list[str]]:
    """An arch, and files that declare, define and use variables, each in its own order."""
    rng = random.Random(seed)
    arch = rng.choice(["80", "90", "100"])
    names = rng.sample("abcdef", rng.randint(2, 4))
    shapes = {name: (rng.choice([4, 8, 16, 32]), rng.choice([4, 8, 12, 36])) for name in names}
    strong: set[str] = set()
    files = []
    for number in range(rng.randint(2, 4)):
        text = f".version 9.0\n.target sm_{oracle.PTX_ARCH[arch]}\n.address_size 64\n"
        declared = rng.sample(names, rng.randint(1, len(names)))
        for name in declared:
            kind = rng.choice(["common", "common", "extern", "weak", "visible"])
            # What nvlink refuses, or ends by a signal of.
            if name in strong or (kind == "weak" and release != oracle.DEFAULT):
                kind = "extern"
            if kind == "visible":
                strong.add(name)
            align, size = shapes[name]
            text += f".{kind} .global .align {align} .b8 {name}[{size}];\n"
        text += f".visible .entry k{number}(.param .u64 p) {{ .reg .b64 %a; .reg .b32 %v;\n"
        text += "ld.param.u64 %a, [p];\n"
        for name in rng.sample(declared, rng.randint(0, len(declared))):
            text += f"ld.global.u32 %v, [{name}]; st.global.u32 [%a], %v;\n"
        files.append(text + "ret; }\n")
    return arch, files


@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()[-1:]])
@pytest.mark.parametrize("options", [[], ["-r"]], ids=" ".join)
@pytest.mark.parametrize("seed", range(40))
def test_order_of_common_symbols(seed: int, options: list[str], release: str) -> None:
    arch, files = drawn(seed, release)
    with oracle.release(release):
        cubins = [oracle.assemble(text, arch) for text in files]
        expected = oracle.link(cubins, arch, options)
    inputs = [(f"m{i}.cubin", cubin) for i, cubin in enumerate(cubins)]
    words = {**keywords(options), "nvlink_version": release}
    try:
        image = bytes(pylink.link(inputs, arch=f"sm_{arch}", **words).image)
    except pylink.LinkError:
        image = b""  # where a variable is only declared, say
    assert bool(image) == bool(expected.image)
    assert not expected.image or compare(image, expected.image) == []
