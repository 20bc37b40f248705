"""Parquet files that are written without a library, as readers of two libraries have them."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylink._native.columnpages import join_words, number_pages, text_pages
from pylink.fleet import parquet
from pylink.fleet.parquet import (
    Numbers,
    Table,
    Texts,
    make_integer_column,
    make_text_column,
    make_word_column,
    pack_table,
)
from pylink.fleet.walk import ends_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

WIDTHS = {"int32": 4, "int64": 8, "uint32": 4, "uint64": 8, "digest": 16}


def read(data: bytes, folder: Path) -> dict[str, list[Any]]:
    """The columns, on which both readers agree."""
    file = folder / "table.parquet"
    file.write_bytes(data)
    found: dict[str, list[Any]] = pq.read_table(file).to_pydict()
    asked = duckdb.sql(f"SELECT * FROM read_parquet('{file}')")
    rows = list(zip(*asked.fetchall(), strict=True)) or [()] * len(found)
    assert dict(zip(asked.columns, map(list, rows), strict=True)) == found
    return found


def number(kind: str, data: bytes) -> int | bytes:
    return data if kind == "digest" else int.from_bytes(data, "little", signed=kind[0] == "i")


@given(st.data())
def test_any_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Of few and of many values, in runs and one by one, with none in between, in pieces."""
    folder = tmp_path_factory.getbasetemp()
    rows = data.draw(st.integers(0, 100))
    values = data.draw(st.integers(1, 70))
    source = random.Random(data.draw(st.integers()))
    runs = data.draw(st.sampled_from([1, 8, 30]))

    def picks() -> list[int]:
        found: list[int] = []
        while len(found) < rows:
            found += [source.randrange(values)] * source.randrange(1, runs + 1)
        return found[:rows]

    columns: dict[str, str] = {}
    table: Table = {}
    expected: dict[str, list[object]] = {}
    for kind, width in WIDTHS.items():
        pool = [source.randbytes(width) for _ in range(values)]
        chosen = [pool[pick] for pick in picks()]
        valid = data.draw(st.none() | st.just(bytes(source.randrange(2) for _ in range(rows))))
        columns[kind], table[kind] = kind, Numbers(b"".join(chosen), valid)
        there = valid if valid is not None else b"\1" * rows
        expected[kind] = [
            number(kind, value) if flag else None for value, flag in zip(chosen, there, strict=True)
        ]
    names = [f"\u00e4{n}" * source.randrange(4) for n in range(values)]
    picked = [None if pick == 0 else names[pick] for pick in picks()]
    columns |= {"words": "words", "string": "string", "binary": "binary", "bool_": "bool_"}
    table["words"], expected["words"] = make_word_column(picked), [*picked]
    strings = [names[pick] for pick in picks()]
    table["string"], expected["string"] = (
        make_text_column([string.encode() for string in strings]),
        [*strings],
    )
    blobs = [source.randbytes(pick) for pick in picks()]
    table["binary"], expected["binary"] = make_text_column(blobs), [*blobs]
    flags = [pick % 2 == 0 for pick in picks()]
    table["bool_"], expected["bool_"] = Numbers(bytes(flags)), [*flags]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "GROUP_ROWS", data.draw(st.sampled_from([1 << 20, 1, 7, 64])))
        assert read(pack_table(columns, table), folder) == expected


@pytest.mark.parametrize("distinct", [1, 2, 3, 255, 256, 257, 1 << 15, (1 << 16) + 1, 100_000])
def test_dictionaries_of_any_size_are_read(tmp_path: Path, distinct: int) -> None:
    values = [number * 7919 for number in range(distinct)] * 2 + [0] * 50
    table: Table = {
        "n": make_integer_column("int64", values),
        "w": make_word_column([*map(str, values)]),
    }
    data = pack_table({"n": "int64", "w": "words"}, table)
    assert read(data, tmp_path) == {"n": values, "w": [*map(str, values)]}
    assert number_pages(table["n"][0], 8)[1] == distinct
    # Where most values differ a dictionary is not a gain.
    other = make_integer_column("int64", range(2 * distinct + 100))
    assert number_pages(other.values, 8)[0] is None
    assert read(pack_table({"n": "int64"}, {"n": other}), tmp_path)["n"] == [
        *range(2 * distinct + 100)
    ]


def test_columns_of_a_table_have_one_length() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        pack_table({"a": "int32", "b": "int32"}, {"a": Numbers(bytes(4)), "b": Numbers(bytes(8))})


def test_a_page_that_readers_cannot_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MOST_BYTES", 100)
    with pytest.raises(OverflowError, match="more than 2 GiB"):
        pack_table({"a": "binary"}, {"a": make_text_column([bytes(100)])})


def test_dictionaries_are_joined_in_order_of_mention() -> None:
    def piece(rows: list[int], *names: bytes) -> tuple[bytes, bytes, bytes]:
        return array("i", rows).tobytes(), ends_of(names), b"".join(names)

    pieces = [piece([1, 0, 1], b"b", b""), piece([]), piece([2, 0], b"x", b"unused", b"b")]
    assert join_words(pieces) == piece([1, 0, 1, 0, 2], b"b", b"", b"x", b"unused")
    assert join_words([]) == (b"", bytes(8), b"")


def test_columns_that_do_not_fit_are_refused() -> None:
    ends, zero = ends_of([b"x"]), bytes(4)
    for width in (0, -4, 3, 32):
        with pytest.raises(ValueError, match="values of"):
            number_pages(bytes(32), width)
    for values, valid in ((bytes(9), None), (bytes(8), b"")):
        with pytest.raises(ValueError, match="differ in length"):
            number_pages(values, 8, valid)
    for columns in ((b"", b"x"), (bytes(7), b""), (ends, b"x", bytes(3))):
        with pytest.raises(ValueError, match="differ in length"):
            text_pages(*columns)
    minus = b"\xff" * 4
    outside: list[Texts] = [
        Texts(ends, b""),
        Texts(array("q", [1, 0]).tobytes(), b"x"),
        Texts(array("q", [-1, 0]).tobytes(), b"x"),
        Texts(ends, b"x", b"\1\0\0\0"),
        Texts(ends, b"x", b"\xfe" + minus[1:]),
    ]
    for column in outside:
        with pytest.raises(IndexError):
            text_pages(*column)
    for numbers, error in ((minus, IndexError), (b"\1\0\0\0", IndexError), (b"x", ValueError)):
        with pytest.raises(error):
            join_words([(zero, ends, b"x"), (numbers, ends, b"x")])
