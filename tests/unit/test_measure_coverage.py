"""What `make coverage` counts: lines and branches of sources, from what gcov says of the C."""

from __future__ import annotations

from typing import Any

import measure_coverage
import pytest
from measure_coverage import Counts, Row, map_lines, merge_counts

# An inline function as Cython writes it into the C of each module, from line 1 on.
INLINE = """\
/* "base/vector.pxd":7
 * cdef inline bint grow(Vec* vec) noexcept nogil:             # <<<<<<<<<<<<<<
*/

static CYTHON_INLINE int __pyx_f_4base_6vector_grow(Vec *vec) {
  int __pyx_r;

  /* "base/vector.pxd":8
 *     if vec.room:             # <<<<<<<<<<<<<<
*/
  __pyx_t_1 = (vec->room != 0);
  if (__pyx_t_1) {

    /* "base/vector.pxd":9
 *         return True             # <<<<<<<<<<<<<<
*/
    __pyx_r = 1;
    goto __pyx_L0;
  }

  /* "base/vector.pxd":7
 * cdef inline bint grow(Vec* vec) noexcept nogil:             # <<<<<<<<<<<<<<
*/

  /* function exit code */
  __pyx_L0:;
  return __pyx_r;
}
static void __Pyx_generated(void) {
  int generated = 0;
}
"""
# The line of `if` in a function that may raise an exception.
RAISING = """\
/* "src/_native/merge/merge.pyx":30
 *     if rows(table):             # <<<<<<<<<<<<<<
*/
  __pyx_t_2 = rows(table); if (unlikely(!__pyx_t_2)) __PYX_ERR(0, 30, __pyx_L1_error)
  if (likely(PyList_CheckExact(__pyx_t_2))) {
  if (__pyx_t_2) {
"""


def line(number: int, count: int, *branches: int) -> dict[str, Any]:
    """A line of gcov's document."""
    return {"line_number": number, "count": count, "branches": [{"count": n} for n in branches]}


def document(**files: list[dict[str, Any]]) -> dict[str, Any]:
    """A document of gcov for one object."""
    return {"files": [{"file": name, "lines": lines} for name, lines in files.items()]}


def test_lines_of_c_belong_to_lines_of_sources() -> None:
    places = map_lines(INLINE)
    assert {number: places[number][:2] for number in (5, 11, 12, 17, 19)} == {
        5: ("base/vector.pxd", 7),
        11: ("base/vector.pxd", 8),
        12: ("base/vector.pxd", 8),
        17: ("base/vector.pxd", 9),
        19: ("base/vector.pxd", 9),
    }


def test_what_cython_generates_belongs_to_none() -> None:
    last = INLINE.splitlines().index("  __pyx_L0:;")
    assert max(map_lines(INLINE)) <= last


@pytest.mark.parametrize(
    "start", ["/* Python wrapper */", "static int __pyx_pymod_exec_merge(PyObject *module)"]
)
def test_wrappers_and_imports_belong_to_none(start: str) -> None:
    assert map_lines(f"{start}\n{{\n{RAISING}}}\n") == {}
    assert map_lines(f"{start}\n{{\n}}\n{RAISING}") != {}


def test_an_inline_function_of_many_objects_counts_once() -> None:
    objects = [
        document(a=[line(5, 3), line(11, 3), line(12, 3, 0, 3), line(17, 0), line(27, 9)]),
        document(b=[line(5, 2), line(11, 2), line(12, 2, 2, 0), line(17, 2), line(27, 9)]),
        document(b=[line(5, 0), line(11, 0), line(12, 0, 0, 0), line(17, 0), line(27, 0)]),
    ]
    expected = Counts({7: 3, 8: 3, 9: 2}, {(8, 0): 2, (8, 1): 3})
    assert merge_counts(objects, {"a": INLINE, "b": INLINE}) == {
        "src/_native/base/vector.pxd": expected
    }


def test_branches_for_exceptions_do_not_count() -> None:
    lines = [line(4, 2, 0, 2), line(5, 2, 1, 1), line(6, 2, 2, 0)]
    assert merge_counts([document(a=lines)], {"a": RAISING}) == {
        "src/_native/merge/merge.pyx": Counts({30: 2}, {(30, 0): 2, (30, 1): 0})
    }


def test_all_branches_of_a_line_count() -> None:
    header = "src/_native/base/blocks.h"
    files = {header: [line(8, 4, 4, 0), line(8, 1, 0, 1)], "/usr/include/stdio.h": [line(8, 4)]}
    assert merge_counts([document(**files)], {}) == {
        header: Counts({8: 4}, {(8, 0): 4, (8, 1): 0, (8, 2): 0, (8, 3): 1})
    }


def test_sources_are_found_by_the_names_that_cython_writes() -> None:
    vector = "src/_native/base/vector.pxd"
    names = (
        "base/vector.pxd",
        "vector.pxd",
        vector,
        "pylink/_native/results.pxd",
        "cython_utility",
    )
    assert [measure_coverage.find_source(name) for name in names] == [
        vector,
        vector,
        vector,
        "src/pylink/_native/results.pxd",
        None,
    ]


def test_rows_are_rooms_and_packages() -> None:
    summary = {"num_statements": 9, "covered_lines": 7, "num_branches": 4, "covered_branches": 3}
    modules = {f"src/pylink/{name}.py": {"summary": summary} for name in ("a/b", "a/c/d", "e")}
    native = {"src/_native/base/vector.pxd": Counts({7: 3, 9: 0}, {(8, 0): 1})}
    rows = measure_coverage.make_rows(native, modules)
    assert rows == {
        "Python": Row(27, 21, 12, 9),
        "native": Row(2, 1, 1, 1),
        "pylink/a": Row(18, 14, 8, 6),
        "pylink": Row(9, 7, 4, 3),
        "_native/base": Row(2, 1, 1, 1),
    }
    assert list(measure_coverage.table_lines(rows))[-2:] == [
        "| Python | 27 | 21 | 12 | 9 |",
        "| native | 2 | 1 | 1 | 1 |",
    ]


def test_a_share_below_its_floor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    floors = {"native lines": 50.0, "native branches": 99.0, "Python branches": 75.1}
    monkeypatch.setattr(measure_coverage, "FLOORS", floors)
    rows = {"native": Row(2, 1, 1, 1), "Python": Row(27, 21, 12, 9)}
    assert list(measure_coverage.share_lines(rows)) == [
        ("native lines: 50.00 % (at least 50.0 %)", False),
        ("native branches: 100.00 % (at least 99.0 %)", False),
        ("Python branches: 75.00 % (at least 75.1 %) TOO FEW", True),
    ]


def test_lines_that_no_test_reaches_are_listed() -> None:
    native = {"a.pxd": Counts({7: 3, 9: 0, 8: 0}, {})}
    modules = {"b.py": {"missing_lines": [4, 6]}}
    assert measure_coverage.unreached_lines("a.pxd", native, modules) == [8, 9]
    assert measure_coverage.unreached_lines("b.py", native, modules) == [4, 6]
    with pytest.raises(SystemExit, match=r"nothing is counted in 'c\.py'"):
        measure_coverage.unreached_lines("c.py", native, modules)


def test_tests_that_are_omitted_exist() -> None:
    for option in measure_coverage.OMITTED:
        path, test = option.removeprefix("--deselect=").split("::")
        text = (measure_coverage.ROOT / path).read_text(encoding="utf-8")
        assert f"def {test}(" in text
