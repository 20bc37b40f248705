"""Which arch takes cubins of which: every pair, verdict and message as nvlink's."""

from __future__ import annotations

import io

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.words import nvlink_words

import pylink

KERNEL = "__global__ void only(int *p) { *p = 1; }\n"


@oracle.needs_oracle
@pytest.mark.parametrize("made_for", oracle.ARCHS)
def test_a_cubin_is_taken_by_the_archs_that_nvlink_says(made_for: str) -> None:
    cubin = oracle.compile(KERNEL, made_for)
    ours, theirs = {}, {}
    for target in oracle.ARCHS:
        expected = oracle.link([cubin], target)
        theirs[target] = (expected.code == 0, as_pylink(expected.stderr))
        log = io.StringIO()
        try:
            pylink.link([("m0.cubin", cubin)], arch=f"sm_{target}", log=log)
        except pylink.LinkError:
            ours[target] = (False, nvlink_words(log.getvalue()))
        else:
            ours[target] = (True, nvlink_words(log.getvalue()))
    assert ours == theirs
