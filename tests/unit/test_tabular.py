"""Tables: what data libraries make of them, and what they show."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy
import pandas
import polars
import pyarrow  # type: ignore[import-untyped]
import pytest
from helpers import demo
from helpers.cubin_builder import one_kernel

import pylink
import pylink.bench
import pylink.dedup
from pylink._native.arrow import export_stream
from pylink.bench.results import from_csv
from pylink.diagnostics.errors import Diagnostics
from pylink.remarks import read_remarks
from pylink.remarks.record import TAGS, Remark, parts_of_place
from pylink.remarks.rows import RemarkRow
from pylink.tabular.columns import Milliseconds, Place, Ratio, SharedMilliseconds, Size
from pylink.tabular.page import CELL_WIDTH, SHOWN_ROWS
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
    limit: float | None
    loaded: bool


ROWS = [
    Row("a", "first", 2**64 - 1, -8, 0.5, 1.25, True),
    Row("b", None, 0, None, -1.5, None, False),
    Row("a", "", 7, 2**62, 2.0, 0.0, True),
]
TABLE = Table(Row, ROWS)


# Two rounds of two linkers, as `pylink bench --csv` writes them.
MEASURED = """\
# link: 2 inputs for sm_80
contender,mode,part,inputs,round,seconds,cpu_seconds,peak_bytes
nvlink,warm,1,2,0,0.200,0.150,5000
pylink,warm,1,2,0,0.050,0.040,4000
nvlink,warm,1,2,1,0.220,0.150,6000
pylink,warm,1,2,1,0.044,0.040,4000
pylink,warm,1/2,1,1,0.030,0.020,3000
"""


def tables() -> dict[str, Table[Any]]:
    """All tables of a link that has something in each, of a study and of a measurement."""
    result = pylink.link(
        demo.cubins(ARCH),
        arch=ARCH,
        verbose=True,
        profile=True,
        pass_remarks=".",
        pass_remarks_missed=".",
        pass_remarks_analysis=".",
    )
    assert result.profile is not None
    cost = result.profile.tables
    study = pylink.dedup.study([demo.DEMO / ARCH])
    measured = from_csv(MEASURED, "planted")
    return {
        "remarks": result.remarks,
        "steps": cost.steps,
        "files": cost.files,
        "families": cost.families,
        "types": cost.relocations,
        "folds": cost.folds,
        "study": study.table,
        "study.families": study.family_table,
        "study.blockers": study.blocker_table,
        "runs": measured.table,
        "medians": measured.medians,
        "growth": pylink.growth(range(1, 9), range(2, 18, 2)).table,
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
    limits = list(TABLE.column("limit"))
    assert limits[::2] == [1.25, 0.0]
    assert isinstance(limits[1], float)
    assert math.isnan(limits[1])
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
    long = Table(Row, [Row("n" * 10_000, None, 1, None, 1.0, None, True)] * 5000)
    assert len(repr(long).splitlines()) == SHOWN_ROWS + 2
    assert max(map(len, repr(long).splitlines())) <= CELL_WIDTH
    assert len(long._repr_html_()) < MOST_BYTES
    assert "4,990 more rows" in long._repr_html_()
    assert "more rows" not in TABLE._repr_html_()


def test_names_are_escaped() -> None:
    hostile = Table(Row, [Row("<script>alert(1)</script>", "&", 1, 1, 1.0, 1.0, True)])
    page = hostile._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_every_table_of_a_link_is_read_by_all(linked: dict[str, Table[Any]]) -> None:
    for name, table in linked.items():
        assert len(table) > 0, name
        rows = table  # noqa: F841 -- DuckDB finds it by this name
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow.column_names == list(table.columns), name
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == list(table.columns), name
        assert len(numpy.asarray(table)) == len(frame) == arrow.num_rows, name
        dataframe = polars.DataFrame(table)
        assert (dataframe.columns, dataframe.height) == (list(table.columns), len(table)), name
        with duckdb.connect() as database:
            [[count]] = database.execute("select count(*) from rows", {}).fetchall()
        assert count == len(table), name
        for column, kind in table.dtypes.items():
            if kind != "U":
                assert frame[column].dtype.kind in "iufbO", (name, column)


class Counted(NamedTuple):
    """Columns with units, two of which have a total."""

    size: Size | None
    offset: Place
    spent: Milliseconds
    step: SharedMilliseconds
    ratio: Ratio | None


def test_columns_have_units_and_those_with_a_total_show_it() -> None:
    table = Table(Counted, [Counted(1000, 5, 0.25, 1.0, 2.0), Counted(None, 5, 0.5, 1.0, None)])
    assert table.units == {
        "size": "bytes",
        "offset": "bytes",
        "spent": "ms",
        "step": "ms",
        "ratio": "ratio",
    }
    total = "Table of 2 rows, in all size 1,000 bytes, spent 0.75 ms:"
    assert total in repr(table)
    assert total in table._repr_html_()
    assert Table(Counted, []).units == table.units
    assert TABLE.units == {}
    assert "in all" not in repr(TABLE)


def test_every_table_has_units_for_its_bytes(linked: dict[str, Table[Any]]) -> None:
    """A number that is neither a count nor a name of something has a unit."""
    counts = {
        *("number", "input", "entry", "sections", "symbols", "defined", "undefined", "functions"),
        *("relocations", "items", "page_faults", "applied", "kept", "code", "stage", "line"),
        *("inputs", "round", "rounds", "cubins", "measured", "certain", "used"),
        *("input_sections", "output_sections", "relocations_applied", "relocations_kept"),
        *("folded_sections", "single_sections"),
    }
    for name, table in linked.items():
        numbers = {column for column, kind in table.dtypes.items() if kind != "U"}
        bare = numbers - set(table.units) - counts
        assert bare == ({"size", "cost", "fitted"} if name == "growth" else set()), name


def test_every_table_travels(linked: dict[str, Table[Any]]) -> None:
    for table in linked.values():
        for other in (pickle.loads(pickle.dumps(table, 5)), copy.deepcopy(table)):
            assert other == table
            assert other.units == table.units


def test_what_tables_come_from_travels() -> None:
    study = pylink.dedup.study([demo.DEMO / ARCH])
    measured = from_csv(MEASURED, "planted")
    profile = pylink.link(demo.cubins(ARCH), arch=ARCH, profile=True).profile
    assert profile is not None
    assert pickle.loads(pickle.dumps(study)).table == study.table
    assert pickle.loads(pickle.dumps(measured)).medians == measured.medians
    again = pickle.loads(pickle.dumps(profile))
    assert again.tables.folds == profile.tables.folds
    assert again._repr_html_() == profile._repr_html_()


def row_of(remark: Remark) -> RemarkRow:
    """The row of a remark; a file without a line is followed by a section, which the row omits."""
    file = remark.file
    if file is not None and remark.line == 0:
        file = parts_of_place(file)[0]
    return RemarkRow(
        TAGS[remark.kind],
        remark.pass_name,
        remark.name,
        remark.function,
        file,
        remark.line or None,
        remark.hotness,
        remark.message,
    )


def test_remarks_are_those_of_the_file(tmp_path: Path) -> None:
    """A link shows the remarks that a file of remarks has, pass by pass in the same order."""
    file = tmp_path / "remarks.yaml"
    shown = {"pass_remarks": ".", "pass_remarks_missed": ".", "pass_remarks_analysis": "."}
    result = pylink.link(
        demo.cubins(ARCH),
        arch=ARCH,
        pass_remarks_output=file,
        pass_remarks_with_hotness=True,
        **shown,  # type: ignore[arg-type]  # names of options
    )
    written = [row_of(remark) for remark in read_remarks(file)]
    assert list(result.remarks) == written
    assert {row.kind for row in written} == {"Passed", "Missed", "Analysis"}
    assert any(row.hotness and row.line for row in written)
    assert all(row.message and row.name for row in written)
    assert len(pylink.link(demo.cubins(ARCH), arch=ARCH).remarks) == 0


def test_what_a_profile_has_agrees_with_its_tables(linked: dict[str, Table[Any]]) -> None:
    files, folds, steps = linked["files"], linked["folds"], linked["steps"]
    assert [row.name for row in files] == [str(path) for path in demo.cubins(ARCH)]
    assert [row.size for row in files] == [path.stat().st_size for path in demo.cubins(ARCH)]
    folded = folds.where(lambda row: row.folds_into is not None)
    assert [Path(row.name).name for row in folded] == ["smoothing_b.cubin"]
    assert Path(folded[0].folds_into).name == "smoothing_a.cubin"
    assert folded[0].code == 0
    assert all(row.reason for row in folds if row.code)
    whole = {row.phase: row.wall for row in steps if row.step is None}
    for phase, wall in whole.items():
        assert sum(row.wall for row in steps.where(phase=phase) if row.step) <= wall * 1.001


def test_a_study_is_a_table_with_a_view() -> None:
    study = pylink.dedup.study([demo.DEMO / ARCH], arch=ARCH)
    assert [row.name for row in study.table if row.folds_into] == [
        f"{demo.DEMO / ARCH / 'smoothing_b.cubin'}"
    ]
    assert study.saved_bytes
    assert repr(study) == (
        f"<Analysis: 1 of 13 objects fold; the output of a link loses {study.saved_bytes} bytes>"
    )
    assert sum(row.folded for row in study.family_table) == study.total.folded_bytes
    assert f"{study.saved_bytes} bytes" in study._repr_html_()
    assert len(study._repr_html_()) < MOST_BYTES
    with pytest.raises(TypeError, match="files is a list"):
        pylink.dedup.study("a.cubin")
    with pytest.raises(ValueError, match="files is empty"):
        pylink.dedup.study([])


def test_a_measurement_is_a_table_with_a_view(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text(MEASURED)
    measured = pylink.bench.read(file)
    assert [row.part for row in measured.table] == [1.0, 1.0, 1.0, 1.0, 0.5]
    (nvlink, ours) = measured.medians
    assert (nvlink.contender, nvlink.rounds, nvlink.beside, nvlink.peak) == (
        "nvlink",
        2,
        None,
        6000,
    )
    assert ours.beside == pytest.approx((0.25 + 0.2) / 2)
    assert ours.median == pytest.approx(0.047)
    assert (ours.least, ours.certain) == (0.044, False)
    assert repr(measured) == "<Results of 5 runs: nvlink, pylink>"
    page = measured._repr_html_()
    assert "nvlink" in page
    assert "rounds are fewer than six" in page


def test_a_link_is_measured_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-arch=sm_80", "-o", "out.cubin"]
    for number in range(2):
        (tmp_path / f"{number}.cubin").write_bytes(one_kernel(f"kernel_{number}").build())
        words.append(f"{number}.cubin")
    without = ["pylink CLI", "pylink serve"]
    measured = pylink.bench.measure(words, rounds=2, growth=False, without=without)
    assert {"copy", "pylink API"} <= {row.contender for row in measured.medians}
    assert len(measured.table.where(contender="pylink API")) == 2
    assert not (tmp_path / "out.cubin").exists()
    with pytest.raises(pylink.bench.BadLink, match="no 'nobody' to omit"):
        pylink.bench.measure(words, without=["nobody"])
    with pytest.raises(TypeError, match="list of arguments"):
        pylink.bench.measure("-arch=sm_80 0.cubin")


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
