"""Questions that have no answer, answers that cannot be shown, indexes that may only be read."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from helpers.fleet_index import made_index
from helpers.fleet_reference import plant

from pylink.command.cli import main
from pylink.fleet import folding
from pylink.fleet import index as index_module
from pylink.fleet.database import Database, _shorten_message
from pylink.fleet.index import Index

pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("refusals")
    made_index(folder / "index", plant(folder / "tree").root)
    return str(folder / "index")


# DuckDB tells the line from 1.4 on.
RELEASE = tuple(map(int, duckdb.__version__.split(".")[:2]))
IN_LINE_3 = ", in line 3 of the query" if RELEASE >= (1, 4) else ""


def names(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).rglob("*"))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "this is nothing"),
        (" ; -- x", "this is nothing"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT 1\nFROM nowhere\nWHERE )", 'syntax error at or near ")"' + IN_LINE_3),
        ("SELECT * FROM nowhere", "nowhere does not exist!"),
        ("SELECT 1; SELECT 2", "this is SELECT, SELECT"),
        ("DROP TABLE files", "this is DROP"),
        ("COPY files TO '{index}/fragments/more'", "this is COPY"),
        ("EXPLAIN ANALYZE COPY files TO '{index}/more'", "this is EXPLAIN"),
        ("SELECT ?", "parameters: 1"),
        ("SELECT error('found nothing')", "found nothing"),
    ],
)
def test_a_query_that_is_none_is_refused(
    index: str, query: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """In one line, and nothing is written."""
    before = names(index)
    assert main(["dedup", "ask", index, "--sql", query.format(index=index)]) == 1
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("pylink dedup ask: ")
    assert shown.err.endswith(f"{reason}\n")
    assert shown.err.count("\n") == 1
    assert "\\n" not in shown.err
    assert names(index) == before


def test_times_with_a_zone_are_answered_or_name_a_package(
    index: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whether DuckDB needs pytz for them depends on its release."""
    monkeypatch.setitem(sys.modules, "pytz", None)
    query = "SELECT to_timestamp(0)"
    status = main(["dedup", "ask", index, "--csv", "--sql", f"{query} AS time"])
    shown = capfd.readouterr()
    if status == 0:
        assert re.fullmatch(r"time\n19(69|70)-\d\d-\d\d.*\n", shown.out)
    else:
        assert (status, shown.err) == (
            1,
            "pylink dedup ask: times with a zone need the package pytz: pip install pytz, or cast "
            "them to TIMESTAMP\n",
        )
    assert main(["dedup", "ask", index, "--csv", "--sql", f"{query}::TIMESTAMP AS time"]) == 0
    assert capfd.readouterr().out.startswith("time\n19")


def test_a_missing_package_of_the_database_is_named() -> None:
    error = ModuleNotFoundError("No module named 'pytz'")
    assert _shorten_message(error).startswith(
        "times with a zone need the package pytz: pip install pytz"
    )


def test_numbers_of_any_type_are_numbers(index: str, capfd: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT 1.5::DECIMAL(9, 2) AS a, 2::DECIMAL(38, 1) AS b, 'nan'::DOUBLE AS c,"
        " '-inf'::FLOAT AS d, 1::HUGEINT AS e"
    )
    assert main(["dedup", "ask", index, "--sql", query, "--json"]) == 0
    told = capfd.readouterr().out
    assert json.loads(told, parse_constant=pytest.fail) == [
        {"a": 1.5, "b": 2, "c": "nan", "d": "-inf", "e": 1}
    ]


def test_no_column_is_lost(index: str, capfd: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 1 AS one, 2 AS one"
    assert main(["dedup", "ask", index, "--sql", query, "--csv"]) == 0
    assert capfd.readouterr().out == "one,one\n1,2\n"
    assert main(["dedup", "ask", index, "--sql", query, "--json"]) == 1
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == ("pylink dedup ask: two columns are called one: give each a name with AS\n")


def test_what_has_no_numbers_is_not_drawn(
    index: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing is shown before that is known; a number of any type is drawn, under any name."""
    plot = tmp_path / "plot.svg"
    for value in ("'text'", "NULL", "'inf'::DOUBLE"):
        query = f"SELECT 'name', {value} AS value"
        assert main(["dedup", "ask", index, "--sql", query, "--plot", str(plot)]) == 1
        shown = capfd.readouterr()
        assert shown.out == ""
        assert shown.err == "pylink dedup ask: column value has no numbers to draw\n"
        assert not plot.exists()
    for suffix in (".svg", ".png"):
        for query in ("SELECT '漢 $x_{ ' || chr(0), 1.25", "SELECT 'none', 1 WHERE false"):
            plot = tmp_path / f"plot{suffix}"
            assert main(["dedup", "ask", index, "--sql", query, "--plot", str(plot)]) == 0
            assert capfd.readouterr().err == ""
    assert main(["dedup", "ask", index, "repeats", "--plot", ""]) == 1
    assert capfd.readouterr().err == "pylink dedup ask: : a plot is .svg, .png or .pdf\n"


def test_words_that_are_no_number_of_rows(index: str, capfd: pytest.CaptureFixture[str]) -> None:
    for words in ("-3", "x", ""):
        assert main(["dedup", "ask", index, "repeats", f"--top={words}"]) == 2
        assert f"'{words}' is not a whole number from 0 to 1,000,000,000" in capfd.readouterr().err


def test_a_file_is_no_index(index: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["dedup", "ask", str(file), "repeats"]) == 1
    assert f"{file}: not an index: make one with" in capfd.readouterr().err
    assert main(["dedup", "index", str(tmp_path), "-o", str(file)]) == 1
    assert capfd.readouterr().err.endswith(f"{file}: it is not a directory: name another one\n")


def test_an_index_has_one_name_for_all_that_read_it(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some releases of DuckDB take a relative name for a file outside of what may be read."""
    monkeypatch.chdir(index)
    database = Database()
    database.add(Index(Path("../index")))
    database.protect()
    views = database.ask("SELECT sql FROM duckdb_views() WHERE view_name = 'sections'").rows
    assert f"'{index}/fragments/" in views[0][0]
    assert "'../" not in views[0][0]
    assert database.ask("SELECT count(*) > 0 FROM sections").rows == [(True,)]


def test_an_index_that_may_only_be_read_answers(
    index: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What was found out is not kept, and counts all the same."""
    copy = str(tmp_path / "copy")
    shutil.copytree(index, copy)
    told = []
    for folder in (copy, index):
        for question in ("saving", "blockers", "templates"):
            assert main(["dedup", "ask", folder, question, "--csv"]) == 0
        told.append(capfd.readouterr())
        if folder == copy:
            for file in (Path(index) / "folding").iterdir():
                file.unlink()
            (Path(index) / "functions.parquet").unlink(missing_ok=True)

            def refuse(path: str, _: bytes) -> None:
                raise PermissionError(13, "Permission denied", path)

            monkeypatch.setattr(folding, "write_whole", refuse)
    assert told[0] == told[1]
    assert len(told[0].out.splitlines()) > 6
    assert not os.listdir(f"{index}/folding")


def test_who_may_not_read_an_index_need_not_make_it_again(
    index: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = index_module._read

    def refuse(path: str) -> bytes:
        if path.endswith(f"/{index_module.SUMS}"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(index_module, "_read", refuse)
    assert main(["dedup", "ask", index, "files"]) == 1
    assert capfd.readouterr().err.endswith("000001-000000: Permission denied\n")
