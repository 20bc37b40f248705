"""The types of tables and results: columns, sizes, what cannot be done to them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.tables import merged, objects, table

from pylink._native import layout, resolve, tables
from pylink._native.results import MergedTables, PlacedTables
from pylink._native.tables import Emitted, Entities, Marks, Numbers, Outs, Spans, Table, Values
from pylink.facts import header, rowtypes
from pylink.facts.rownumbers import EntityFlag

ROOT = Path(__file__).parents[2]
LARGE = 4 << 20  # tables of this size (bytes) and larger have pages of their own
NATIVE = ROOT / "src" / "_native"
TYPES = dict(
    re.findall(
        r"cdef class (\w+)\(Table\):\n    cdef const (\w+)\* rows",
        (ROOT / "src/pylink/_native/tables.pxd").read_text(encoding="utf-8"),
    )
)


# The types of numbers of rows, and what they are in C.
NUMBERS = {
    name: kind
    for file in header.ROW_FILES
    for kind, name in re.findall(
        r"^ctypedef (\w+) (\w+)\b", (NATIVE / file).read_text(encoding="utf-8"), re.MULTILINE
    )
}


def struct_of(row: str) -> list[tuple[str, str]]:
    """Return the columns of a packed struct of the native sources, and their types in C."""
    for file in header.ROW_FILES:
        text = re.sub(r"#.*", "", (NATIVE / file).read_text(encoding="utf-8"))
        found = re.search(rf"packed struct {row}:\n((?:[ \t]+.*\n|\n)+)", text)
        if found:
            pairs = re.findall(r"^ +(\w+) (\w+)\s*$", found[1], re.MULTILINE)
            return [(name, NUMBERS.get(kind, kind)) for kind, name in pairs]
    raise LookupError(row)


def numpy_type(kind: str) -> str:
    return str(np.dtype(kind.removesuffix("_t")).newbyteorder("<").str)


# The views of results: what kernels read. A phase fills only what it needs of the rest.
VIEWS = {
    "ObjectsView": "ObjectTables",
    "MergedView": "MergedTables",
    "SharedView": "SharedTables",
    "PlacedView": "PlacedTables",
}


def fields_of(text: str, head: str) -> list[tuple[str, str]]:
    """Return the names and types of the pointers of a struct, or of the tables of a class."""
    found = re.search(rf"{head}:\n((?:    .*\n)+)", text)
    assert found, head
    pattern = r"^    (?:const (\w+)\* |cdef public (\w+) )(\w+)(?: +#.*)?$"
    pairs = re.findall(pattern, found[1], re.MULTILINE)
    return [
        (name, NUMBERS.get(pointer, pointer) if pointer else TYPES[kind])
        for pointer, kind, name in pairs
        if pointer or kind in TYPES
    ]


@pytest.mark.parametrize(("view", "result"), VIEWS.items())
def test_a_view_has_the_columns_of_its_result(view: str, result: str) -> None:
    """And `results.pyx` fills each from the column of that name."""
    declared = (ROOT / "src/pylink/_native/results.pxd").read_text(encoding="utf-8")
    views = (NATIVE / "tables" / "views.pxd").read_text(encoding="utf-8")
    columns = fields_of(declared, rf"cdef class {result}\(Result\)")
    arena = [("arena", "uint8_t")] if view == "ObjectsView" else []
    assert fields_of(views, f"ctypedef struct {view}") == arena + columns
    source = (NATIVE / "tables" / "results.pyx").read_text(encoding="utf-8")
    body = source.partition(f"cdef void view(self, {view}* view)")[2].partition("\n\n")[0]
    filled = re.findall(r"view\.(\w+) = (?:<const \w+\*>)?self\.(\w+)\.rows", body)
    assert filled == [(name, name) for name, _ in columns]
    counts = re.findall(r"view\.\w+(?:_count|_size) = self\.(\w+)\.count", body)
    assert len(counts) == len(re.findall(r"view\.\w+(?:_count|_size) = self", body))
    assert {*counts} <= {name for name, _ in columns}


def test_every_type_is_there() -> None:
    assert len(TYPES) > 20
    assert all(issubclass(getattr(tables, name), Table) for name in TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_columns_are_those_of_the_struct(name: str) -> None:
    empty: Table[object] = getattr(tables, name)()
    made = np.dtype(empty.dtype)
    assert made.itemsize == empty.row_size
    if TYPES[name].endswith("_t"):
        assert made.str == numpy_type(TYPES[name])
        return
    assert made == np.dtype([(c, numpy_type(kind)) for c, kind in struct_of(TYPES[name])])


def test_columns_for_type_checkers_are_those_of_the_structs() -> None:
    made = (ROOT / "src/pylink/rows.py").read_text(encoding="utf-8")
    assert made == rowtypes.module_text(NATIVE)


def test_a_table_is_read_by_row_by_column_and_by_numpy() -> None:
    keeps = table(Emitted, [{"offset": 8, "addend": -4, "type": 2}, {"offset": 2**63, "next": 0}])
    assert len(keeps) == 2
    assert keeps
    assert (keeps[0].offset, keeps[0].addend, keeps[0].type) == (8, -4, 2)
    assert (keeps[1].offset, keeps[1].entity, keeps[1].next) == (2**63, -1, 0)
    assert keeps.column("offset") == [8, 2**63]
    assert [keep.type for keep in keeps] == [2, 0]
    array = np.frombuffer(memoryview(keeps), np.dtype(keeps.dtype))
    assert array["addend"].tolist() == [-4, 0]
    assert not array.flags.writeable
    assert keeps.first(1) == table(Emitted, [{"offset": 8, "addend": -4, "type": 2}])
    assert repr(keeps) == "<2 Emitted>"
    assert "addend=-4" in repr(keeps[0])
    numbers = table(Numbers, [3, -1])
    assert list(numbers) == [3, -1]
    assert numbers.column("") == [3, -1]
    assert np.frombuffer(memoryview(numbers), np.dtype(numbers.dtype)).tolist() == [3, -1]
    assert Spans.whole(5, 7)[0].size == 7


def test_what_no_table_has_is_refused() -> None:
    with pytest.raises(ValueError, match="Numbers of 4 bytes a row end inside one"):
        Numbers(bytes(5))
    with pytest.raises(TypeError, match="Outs are made of bytes"):
        Outs(None)  # type: ignore[arg-type]
    numbers = table(Numbers, [1])
    for place in (1, -1):
        with pytest.raises(IndexError, match=f"row {place} of 1 Numbers"):
            numbers[place]
    with pytest.raises(AttributeError, match="Outs have no column alignment"):
        assert table(Outs, [{}])[0].alignment  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="read-only"):
        memoryview(numbers)[0] = 1


def test_columns_of_a_result_have_types() -> None:
    result = merged()
    result.outs = bytes(Outs().row_size)  # type: ignore[assignment]  # bytes become a table
    assert len(result.outs) == 1
    for wrong in (Spans(), None, 5):
        with pytest.raises(TypeError, match="outs are Outs, not"):
            result.outs = wrong  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="cannot be taken away"):
        del result.outs
    with pytest.raises(AttributeError):
        result.sections = b""  # type: ignore[attr-defined]


def test_a_sealed_result_does_not_change() -> None:
    result = merged().seal()
    with pytest.raises(AttributeError, match="of a phase that has returned"):
        result.outs = Outs()
    placed = PlacedTables(result).seal()
    with pytest.raises(AttributeError, match="of a phase that has returned"):
        placed.size = 1
    with pytest.raises(AttributeError, match="of a phase that has returned"):
        placed.add(b"", Spans())


def test_columns_have_a_row_for_each_of_what_they_tell_of() -> None:
    inputs = objects(sections=[{}, {}], symbols=[{}])
    sound = {
        "symbol_entity": bytes(4),
        "symbol_resolution": bytes(1),
        "section_function": bytes(8),
        "section_resolution": bytes(2),
        "out_of": bytes(8),
        "base": bytes(16),
    }
    MergedTables(inputs, **sound).seal()
    for name in sound:
        with pytest.raises(ValueError, match=r"^0 .* for [12] rows$"):
            MergedTables(inputs, **{**sound, name: b""}).seal()
    MergedTables(inputs, **sound, stand_ins=bytes(8)).seal()
    with pytest.raises(ValueError, match="1 stand-ins for 2 rows"):
        MergedTables(inputs, **sound, stand_ins=bytes(4)).seal()
    result = merged(entities=table(Entities, [{}]))
    with pytest.raises(ValueError, match="0 values for 1 rows"):
        PlacedTables(result).seal()
    with pytest.raises(ValueError, match="0 values of symbols for 1 rows"):
        PlacedTables(result, values=Values(bytes(8))).seal()


def many_outs() -> Table[object]:
    """Return more rows than lie in bytes, each with a size of its own."""
    row_size = Outs().row_size
    numbers = np.zeros((LARGE // row_size + 1), np.dtype(Outs().dtype))
    numbers["size"] = np.arange(len(numbers))
    return Outs(numbers.tobytes())


def test_many_rows_lie_on_pages_of_their_own() -> None:
    made = many_outs()
    placed = PlacedTables(merged(outs=made))
    layout.assign_values(placed)
    outs = placed.outs
    assert outs is not made
    assert outs == made
    assert hash(outs) == hash(made)
    assert outs.data == made.data
    assert memoryview(outs) == memoryview(made)
    assert len(outs) == len(made)
    assert outs[7].size == 7
    assert outs[len(made) - 1].size == len(made) - 1
    assert outs.column("size") == list(range(len(made)))
    assert outs.first(3) == made.first(3)
    with pytest.raises(TypeError, match="read-only"):
        memoryview(outs)[0] = 1


@pytest.mark.parametrize("large", [False, True])
def test_nobody_sees_a_table_change(*, large: bool) -> None:
    count = LARGE // Entities().row_size + 1 if large else 3
    result = merged(entities=table(Entities, [{"kind": 1}] * count))
    held, view = result.entities, memoryview(result.entities)
    before = bytes(view)
    resolve.find_live(result, Marks(), keep_all=True)
    assert all(flags & EntityFlag.LIVE for flags in result.entities.column("flags"))
    assert held.data == before
    assert bytes(view) == before
    alive = result.entities.data  # held as bytes: changes go to a copy again
    kept = bytes(bytearray(alive))
    resolve.find_live(result, Marks(), keep_all=False)
    assert alive == kept


def test_kernels_read_rows_and_never_bytes_of_them() -> None:
    """The bytes of a large table are a copy, which nobody holds."""
    for file in NATIVE.rglob("*.p[yx]*"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"PyBytes_\w+\(\w+\.\w+\.data\b", text), file
