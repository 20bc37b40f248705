"""The names of the call graph: what the tables of mangled names say is what nvlink prints."""

from __future__ import annotations

import re

import pytest
from helpers import oracle
from helpers.cubin_builder import Cubin
from helpers.mangled_names import READABLE, REFUSED, pairs


@oracle.needs_oracle
@pytest.mark.parametrize("table", [*READABLE, "\n".join(f"{name} | {name}" for name in REFUSED)])
def test_nvlink_prints_the_names_of_the_table(table: str) -> None:
    expected = dict(pairs(table))
    cubin = Cubin()
    kernel = cubin.function("kernel", kernel=True)
    for name in expected:
        cubin.call(kernel, cubin.function(name))
    result = oracle.link([cubin.build()], "80", ["-dump-callgraph"])
    assert result.code == 0
    printed = re.findall(r"^\d+: (.*) \[8\] ->", result.stderr, re.MULTILINE)
    assert sorted(printed) == sorted(["^kernel", *expected.values()])
