"""The inputs of the benchmarks: a copied module is what ptxas makes of the renamed program."""

from __future__ import annotations

import re

import pytest
from helpers import oracle

from benchmarks.group import sources
from benchmarks.inputs import FLAGS, PTX_TEXT, copy_of


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["90a", "100"])
def test_copy_is_what_ptxas_writes(arch: str) -> None:
    name, source = next(iter(sources("15KB").items()))
    ptx = oracle.compile_ptx(source, oracle.PTX_ARCH[arch], FLAGS, name=name)
    # Line information has the time of the source, if that exists: here no copy's does.
    ptx = re.sub(r'"/.*/', '"/absent/', ptx)
    cubin = oracle.assemble(ptx, arch, FLAGS)
    # ptxas names the section of the PTX by a hash of it, whose number of digits differs.
    for number in range(1, 50):
        assembled = oracle.assemble(copy_of(ptx.encode(), number).decode(), arch, FLAGS)
        if len(PTX_TEXT.findall(assembled)[0]) == len(PTX_TEXT.findall(cubin)[0]):
            break
    # PTX has debug strings as numbers, so that one name is left to replace.
    assembled, copied = copy_of(assembled, number), copy_of(cubin, number)
    assert PTX_TEXT.sub(b"", copied) == PTX_TEXT.sub(b"", assembled)
