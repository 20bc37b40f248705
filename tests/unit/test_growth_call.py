"""`pylink.growth`: planted growth is found in any table, and what sizes do not tell is said."""

from __future__ import annotations

import copy
import math
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pandas
import polars
import pyarrow  # type: ignore[import-untyped]
import pytest
from helpers.cubin_builder import one_kernel

import pylink
from pylink.tabular.columns import Seconds, Size
from pylink.tabular.table import Table

SIZES = [1000 * 2**step for step in range(8)]
CURVES: dict[str, Callable[[float], float]] = {
    "constant": lambda n: 7.0,
    "n": lambda n: 3 + 0.002 * n,
    "n log n": lambda n: 0.002 * n * math.log2(n + 1),
    "n^2": lambda n: 1 + 1e-6 * n * n,
    "n^3": lambda n: 1e-9 * n**3,
}


class Run(NamedTuple):
    """A measured size."""

    size: Size
    took: Seconds | None


@pytest.mark.parametrize("model", CURVES)
def test_exact_costs_are_what_they_are(model: str) -> None:
    curve = CURVES[model]
    found = pylink.growth(SIZES, map(curve, SIZES))
    assert found.model == model
    assert found.twice == pytest.approx(curve(2 * SIZES[-1]) / curve(SIZES[-1]), rel=0.02)
    assert found.interval is not None
    assert found.twice is not None
    assert found.interval[0] <= found.twice <= found.interval[1]
    assert found.at(5 * SIZES[-1]) == pytest.approx(curve(5 * SIZES[-1]), rel=0.02)
    assert found.steep is (model in ("n^2", "n^3"))
    assert [row.size for row in found.table] == SIZES
    assert all(abs(row.residual or 0) < 0.01 and row.used for row in found.table)
    assert f"n being size: twice the size costs x {found.twice:.2f}" in str(found)


def test_noise_is_measured_where_sizes_repeat_and_the_least_counts() -> None:
    noise = random.Random(5)
    pairs = [
        (size, CURVES["n^2"](size) * (1 + abs(noise.gauss(0, 0.05))))
        for _ in range(5)
        for size in SIZES
    ]
    found = pylink.growth([size for size, _ in pairs], [cost for _, cost in pairs])
    assert found.model == "n^2"
    assert 0.004 <= found.scatter < 0.05
    assert {row.measured for row in found.table} == {5}
    for row in found.table:
        assert row.cost == min(cost for size, cost in pairs if size == row.size)
    # A model that misses more than the scatter of the costs is none.
    stairs = [50.0, 50.0, 90.0, 90.0, 400.0, 400.0, 410.0, 3000.0]
    assert pylink.growth(SIZES, stairs).model is None


def test_too_little_is_no_model() -> None:
    few = pylink.growth([1, 2, 4], [1, 2, 4])
    assert (few.model, few.twice, few.interval, few.terms) == (None, None, None, ())
    assert str(few) == "No model of cost over size: only 3 sizes, 5 are needed"
    assert repr(few) == f"<Growth: {few}; 3 sizes>"
    assert [row.fitted for row in few.table] == [None] * 3
    with pytest.raises(ValueError, match="there is no model: only 3 sizes"):
        few.at(3)
    close = pylink.growth([10, 11, 12, 13, 14], [1, 1, 1, 1, 1])
    assert close.reason == "sizes are less than 3.8 times apart"
    nothing = pylink.growth([], [])
    assert len(nothing.table) == 0
    assert "No model" in nothing._repr_html_()


def test_any_table_has_columns_to_fit() -> None:
    costs = [CURVES["n"](size) for size in SIZES]
    rows = [Run(size, cost) for size, cost in zip(SIZES, costs, strict=True)]
    own = Table(Run, [*rows, Run(5, None)])
    named = {"size": SIZES, "took": costs}
    frames = [named, pandas.DataFrame(named), polars.DataFrame(named), pyarrow.table(named)]
    found = pylink.growth(own, size="size", cost="took")
    assert found.model == "n"
    assert found.names == ("size (bytes)", "took (s)")
    for frame in frames:
        other = pylink.growth(frame, size="size", cost="took")
        assert (other.model, other.terms, other.table) == (found.model, found.terms, found.table)
    with pytest.raises(ValueError, match="no column 'spent'"):
        pylink.growth(own, size="size", cost="spent")
    with pytest.raises(ValueError, match="the table has no column 'spent'"):
        pylink.growth(named, size="size", cost="spent")


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="sizes and costs, or a table with size= and cost="):
        pylink.growth([1, 2, 3])
    with pytest.raises(TypeError, match="two sequences have none"):
        pylink.growth([1, 2], [1, 2], size="size")
    with pytest.raises(ValueError, match="there are 2 sizes and 3 costs"):
        pylink.growth([1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="not int"):
        pylink.growth(3, [1, 2, 3])  # type: ignore[arg-type]  # that is the mistake


def test_a_growth_is_frozen_and_travels() -> None:
    found = pylink.growth(SIZES, map(CURVES["n^2"], SIZES))
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other == found
    with pytest.raises(AttributeError):
        found.model = "n"  # type: ignore[misc]  # that is the mistake
    assert all(type(factor) is float for _, factor in found.terms)
    assert found.formula == "1 + 1e-06 n^2"


def test_what_a_notebook_shows() -> None:
    sizes = [*range(1000, 9000, 13)]
    found = pylink.growth(sizes, map(CURVES["n^2"], sizes))
    page = found._repr_html_()
    assert len(page) < 60_000
    assert re.findall(r"<polyline points='[\d.]+,", page)
    assert page.count("<circle") == 500
    assert "n^2" in page
    hostile = pylink.growth({"<b>": SIZES, "c": SIZES}, size="<b>", cost="c")
    assert "<b>" not in hostile._repr_html_()


def test_files_of_a_profile_are_sizes_and_costs() -> None:
    cubins = [(f"{n}.cubin", one_kernel(f"kernel_{n}").build()) for n in range(4)]
    made = pylink.link(cubins, arch="sm_80", profile=True)
    assert made.profile is not None
    found = pylink.growth(made.profile.tables.files, size="size", cost="kept")
    assert found.reason == "only 1 size, 5 are needed"


def test_numpy_comes_with_the_first_fit_alone() -> None:
    program = (
        "import sys, pylink; pylink.growth([1, 2], [1, 2]); assert 'numpy' not in sys.modules;"
        "pylink.growth([1, 2, 4, 8, 16], [1, 2, 4, 8, 16]); assert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
