"""Filters of actions by NVTX state: the results that Nsight Compute 2022.3 gives."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.report_nvtx import RESULTS, TWO, nvtx_report

from pylink.report import IContext

RANGE = IContext(nvtx_report())[0]


@pytest.mark.parametrize("text", RESULTS)
def test_filter(text: str) -> None:
    assert RANGE.actions_by_nvtx([text], []) == RESULTS[text]


@pytest.mark.parametrize(("includes", "excludes", "expected"), TWO)
def test_several(includes: list[str], excludes: list[str], expected: tuple[int, ...]) -> None:
    assert RANGE.actions_by_nvtx(includes, excludes) == expected


@pytest.mark.parametrize("text", ["/", "//", "[", "[]", "]", "dom@/"])
def test_filter_that_names_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="names no range"):
        RANGE.actions_by_nvtx([text], [])


def test_bad_expression() -> None:
    with pytest.raises(ValueError, match=r"NVTX filter 'regex:\(/': missing \)"):
        RANGE.actions_by_nvtx(["regex:(/"], [])


def test_filter_that_is_no_text() -> None:
    numbers: Any = [1]
    with pytest.raises(TypeError, match="not int"):
        RANGE.actions_by_nvtx(numbers, [])


def test_stack_of_one_range() -> None:
    assert RANGE.actions_by_nvtx(["[Top]"], []) == (3,)


def test_stacks_count_for_their_thread() -> None:
    report = nvtx_report()
    report.actions[0].thread_id = 8
    assert IContext(report)[0].actions_by_nvtx(["Bottom/"], []) == (1, 2)
