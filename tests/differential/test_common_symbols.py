"""Variables that one file declares `.common` and others define or mention, in any order."""

from __future__ import annotations

import io
import itertools

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.compare import compare
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
