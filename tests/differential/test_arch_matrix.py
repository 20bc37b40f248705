"""Which arch takes cubins of which: every pair, verdict and message as nvlink's."""

from __future__ import annotations

import io

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.compare import compare
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


@oracle.needs_oracle
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@pytest.mark.parametrize("family", ["100", "120"])
def test_what_code_promises_is_what_all_of_it_promises_to_the_target(
    family: str, release: str
) -> None:
    """Code and data for a family, an arch and one chip alone, for each of these."""
    names = [family, f"{family}a", f"{family}f"]
    found = {}
    with oracle.release(release):
        code = {name: oracle.compile(KERNEL, name) for name in names}
        data = oracle.compile('extern "C" { __device__ int value; }\n', family)
        cases = [(first, second, target) for first in names for second in names for target in names]
        for first, second, target in cases:
            inputs = [code[first], *([data] if second == family else [])]
            if second not in (first, family):
                other = KERNEL.replace("only", "other")
                inputs.append(oracle.compile(other, second))
            expected = oracle.link(inputs, target).image
            if expected:
                linked = pylink.link(inputs, arch=f"sm_{target}")
                found[first, second, target] = compare(bytes(linked.image), expected)
    assert found
    assert {case: lines for case, lines in found.items() if lines} == {}
