"""Tables: what data libraries make of them, and what they show."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import duckdb
import numpy
import pandas
import pyarrow  # type: ignore[import-untyped]
import pytest
from helpers import demo
from helpers.cubin_builder import one_kernel

import pylink
from pylink._native.arrow import export_stream
from pylink.diagnostics.errors import Diagnostics
from pylink.tabular.page import CELL, SHOWN
from pylink.tabular.table import Table

ARCH = "sm_100"
MOST_BYTES = 60_000  # of what a notebook shows


class Row(NamedTuple):
    """A field of each kind."""

    name: str
    label: str | None
    size: int
    addend: int | None
    share: float
    loaded: bool


ROWS = [
    Row("a", "first", 2**64 - 1, -8, 0.5, True),
    Row("b", None, 0, None, -1.5, False),
    Row("a", "", 7, 2**62, 2.0, True),
]
TABLE = Table(Row, ROWS)


def tables() -> dict[str, Table[Any]]:
    """All tables of a link that has something in each."""
    result = pylink.link(demo.cubins(ARCH), arch=ARCH, verbose=True)
    return {
        "sections": result.sections,
        "symbols": result.symbols,
        "relocations": pylink.link(demo.cubins(ARCH), arch=ARCH, preserve_relocs=True).relocations,
        "inputs": result.inputs,
        "sizes": result.sizes,
        "phases": result.phases,
        "diagnostics": result.diagnostics.table,
    }


@pytest.fixture(scope="module")
def linked() -> dict[str, Table[Any]]:
    return tables()


def test_columns_are_arrays_without_a_copy() -> None:
    sizes = TABLE.column("size")
    array = numpy.asarray(sizes)
    assert array.dtype == numpy.uint64
    assert array.tolist() == [2**64 - 1, 0, 7]
    assert numpy.shares_memory(array, numpy.asarray(sizes))
    assert numpy.asarray(TABLE.column("addend")).tolist() == [-8, -1, 2**62]
    assert numpy.asarray(TABLE.column("share")).tolist() == [0.5, -1.5, 2.0]
    assert TABLE.column("label") == ("first", None, "")
    with pytest.raises(ValueError, match="no column 'nothing'; there are name, label"):
        TABLE.column("nothing")


def test_a_table_is_a_structured_array_with_its_dtypes() -> None:
    array = numpy.asarray(TABLE)
    assert {name: array.dtype[name].kind for name in TABLE.columns} == {
        name: numpy.dtype(kind).kind for name, kind in TABLE.dtypes.items()
    }
    assert array["size"].tolist() == [2**64 - 1, 0, 7]
    assert array["loaded"].tolist() == [True, False, True]


def test_arrow_has_types_nulls_and_dictionaries() -> None:
    table = pyarrow.table(TABLE)
    assert [str(field.type) for field in table.schema] == [
        "dictionary<values=string, indices=int32, ordered=0>",
        "dictionary<values=string, indices=int32, ordered=0>",
        "uint64",
        "int64",
        "double",
        "bool",
    ]
    table.validate(full=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == [tuple(row) for row in ROWS]
    assert table.column("name").chunk(0).dictionary.to_pylist() == ["a", "b"]


def test_arrow_data_outlives_the_table() -> None:
    table = pyarrow.table(Table(Row, list(ROWS)))
    column = table.column("name")
    del table
    assert column.to_pylist() == ["a", "b", "a"]


def test_a_stream_that_nobody_reads_is_let_go() -> None:
    for _ in range(100):
        TABLE.__arrow_c_stream__()
    reader = pyarrow.RecordBatchReader.from_stream(TABLE)
    assert reader.schema.names == list(TABLE.columns)
    del reader
    # A reader that has asked for the schema may still ask for the rows, once.
    reader = pyarrow.RecordBatchReader.from_stream(TABLE)
    assert sum(batch.num_rows for batch in reader) == len(TABLE)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ((b"x", b"L", bytes(15), None, 0, None, None), "differ in length"),
        ((b"x", b"b", b"", None, 0, None, None), "differ in length"),
        ((b"x", b"L", bytes(16), b"", 0, None, None), "not a bit for each row"),
        ((b"x", b"i", bytes(8), None, 0, bytes(4), b""), "a code without a text"),
        ((b"x", b"i", b"\xff" * 8, None, 0, bytes(8), b""), "a code without a text"),
        ((b"x", b"i", bytes(4), None, 0, bytes(8), b""), "do not fit"),
        ((b"x", b"i", bytes(8), None, 0, b"", b""), "do not fit"),
        ((b"x", b"i", bytes(8), None, 0, bytes(4) + b"\1\0\0\0", b""), "run past"),
        (
            (b"x", b"i", bytes(8), None, 0, bytes(4) + b"\2\0\0\0\1\0\0\0", b"ab"),
            "end before they begin",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export_stream(2, (column,))


def test_parts_of_a_table_are_tables() -> None:
    assert isinstance(TABLE[1:], Table)
    assert TABLE[1:].columns == TABLE.columns
    assert list(TABLE.where(name="a")) == [ROWS[0], ROWS[2]]
    assert TABLE.where(lambda row: row.size > 5, loaded=True).where(name="a")[1] == ROWS[2]
    assert [row.addend for row in TABLE.sorted_by("addend")] == [None, -8, 2**62]
    assert [row.size for row in TABLE.sorted_by("size", descending=True)] == [2**64 - 1, 7, 0]
    with pytest.raises(ValueError, match="no column 'what'"):
        TABLE.where(what=1)
    again = pickle.loads(pickle.dumps(TABLE))
    assert again == TABLE
    assert again.columns == TABLE.columns


def test_a_table_shows_few_rows() -> None:
    long = Table(Row, [Row("n" * 10_000, None, 1, None, 1.0, True)] * 5000)
    assert len(repr(long).splitlines()) == SHOWN + 2
    assert max(map(len, repr(long).splitlines())) <= CELL
    assert len(long._repr_html_()) < MOST_BYTES
    assert "4,990 more rows" in long._repr_html_()
    assert "more rows" not in TABLE._repr_html_()


def test_names_are_escaped() -> None:
    hostile = Table(Row, [Row("<script>alert(1)</script>", "&", 1, 1, 1.0, True)])
    page = hostile._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_every_table_of_a_link_is_read_by_all(linked: dict[str, Table[Any]]) -> None:
    for name, table in linked.items():
        assert len(table) > 0, name
        rows = table  # noqa: F841  # DuckDB finds it by this name
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow.column_names == list(table.columns), name
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == list(table.columns), name
        assert len(numpy.asarray(table)) == len(frame) == arrow.num_rows, name
        with duckdb.connect() as database:
            [[count]] = database.execute("select count(*) from rows", {}).fetchall()
        assert count == len(table), name
        for column, kind in table.dtypes.items():
            if kind != "U":
                assert frame[column].dtype.kind in "iufbO", (name, column)


def undefined(number: int) -> tuple[str, bytes]:
    """A cubin whose kernel calls a function that nobody defines."""
    cubin = one_kernel(f"kernel_{number}")
    cubin.call(1, cubin.external(f"missing_{number}"))
    return f"{number}.cubin", cubin.build()


def test_what_a_notebook_shows_of_a_large_link() -> None:
    small = [(f"{n}.cubin", one_kernel(f"kernel_{n}").build()) for n in range(400)]
    result = pylink.link(small, arch="sm_80")
    assert len(result.inputs) == 400
    page = result._repr_html_()
    assert len(page) < MOST_BYTES
    assert len(repr(result).splitlines()) == 1
    with pytest.raises(pylink.LinkError) as failed:
        pylink.link([undefined(n) for n in range(400)], arch="sm_80")
    assert len(failed.value.diagnostics) >= 400
    assert len(failed.value._repr_html_()) < MOST_BYTES
    assert isinstance(failed.value.errors, Diagnostics)
    rows = pyarrow.table(failed.value.diagnostics.table)
    assert rows.num_rows == len(failed.value.diagnostics)
    assert set(rows.column("kind").to_pylist()) >= {failed.value.errors[0].kind}
