"""pylink's outputs have no hazard: generated programs, and code that a link rewrites."""

from __future__ import annotations

import pytest
from helpers import oracle, programs

import pylink
from hazards import check, tables

pytestmark = oracle.needs_oracle

ARCHS = ("75", "80", "86", "89", "90a", "100", "103", "110", "120")
DOUBLES = """
__global__ void chain(double *o, int n)
{
    double s = o[0];
    for (int i = 0; i < n; i++) s = fma(s, o[i], o[i + 1]);
    if (s > o[3]) o[n] = s / o[9] + sqrt(o[4]);
}
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("relocatable", [False, True])
def test_outputs_have_no_hazard(arch: str, relocatable: bool) -> None:
    for seed in range(2, 14, 2):
        cubins = [
            (f"m{index}.cubin", oracle.compile(module.source, arch, module.flags, name=module.name))
            for index, module in enumerate(programs.generate(seed).modules)
        ]
        try:
            result = pylink.link(cubins, arch=f"sm_{arch}", relocatable_link=relocatable)
        except pylink.LinkError:
            continue  # not all programs are valid without further libraries
        assert [str(found) for found in check.cubin(bytes(result.image))] == []


def test_sm_100_code_needs_its_guard_on_sm_103() -> None:
    """FP64 of sm_100 has fixed times; judged as sm_103's it reads too early, but for the guard."""
    cubin = oracle.compile(DOUBLES, "100")
    _, flows = check.flows(cubin)
    plain = [found for flow in flows for found in check.function(flow, tables.load("103"))]
    assert sum(found.kind == "read" for found in plain) > 10
    result = pylink.link([("m.cubin", cubin)], arch="sm_103")
    assert [str(found) for found in check.cubin(bytes(result.image))] == []
