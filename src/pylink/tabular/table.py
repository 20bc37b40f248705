"""Records with typed columns, which data libraries read as a table."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, SupportsIndex, TypeVar, cast, overload

from pylink.tabular.columns import Kind, arrow_column, kinds_of, pack_values, units_of
from pylink.tabular.page import CELL_WIDTH, SHOWN_ROWS, table_html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RowT = TypeVar("RowT", bound=NamedTuple)


class Table(Generic[RowT]):
    """Rows that are named tuples; slices, `where` and `sorted_by` give tables again.

    A table can be indexed and iterated. `row` is the class of the rows, also of an empty table.
    `column(name)` returns one column; numbers are a memory view, from which `numpy.asarray` makes
    an array without copying. `numpy.asarray(table)` is a structured array,
    `pandas.DataFrame(table)` a frame. Readers of Arrow streams accept a table, such as
    `pyarrow.table(table)`, `polars.DataFrame(table)` and DuckDB; text is dictionary-encoded there.
    """

    # The class is neither a `Sequence` nor a tuple: polars would read the rows one by one, without
    # the types, and pyarrow would take them for columns.

    __slots__ = ("_rows", "row")

    row: type[RowT]

    def __init__(self, row: type[RowT], rows: Iterable[RowT]) -> None:
        self.row = row
        self._rows = tuple(rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.row._fields

    @property
    def dtypes(self) -> dict[str, str]:
        """numpy's name for the type of each column; `U` stands for text of any width."""
        return {name: kind.numpy for name, kind in self._kinds.items()}

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column of numbers that has one, such as bytes."""
        return {name: unit.name for name, unit in units_of(self.row).items()}

    def column(self, name: str) -> memoryview | tuple[str | None, ...]:
        """Return the values of one column; ValueError if there is no column of that name.

        Text is a tuple. Numbers are a read-only memory view; -1 or NaN stands for none.
        """
        kind = self._kind(name)
        values = self._values(name)
        return pack_values(kind, values) if kind.letter else cast("tuple[str | None, ...]", values)

    def where(self, test: Callable[[RowT], object] | None = None, **values: object) -> Table[RowT]:
        """Return the rows that `test` accepts and whose columns have these values."""
        for name in values:
            self._kind(name)
        return Table(
            self.row,
            (
                row
                for row in self._rows
                if all(getattr(row, name) == value for name, value in values.items())
                and (test is None or test(row))
            ),
        )

    def sorted_by(self, name: str, *, descending: bool = False) -> Table[RowT]:
        """Return the rows sorted by one column (a stable sort).

        None comes first, and last if `descending`.
        """
        index = self._column_index(name)

        def key(row: RowT) -> tuple[bool, Any]:
            value = tuple(row)[index]
            return (value is not None, value)

        return Table(self.row, sorted(self._rows, key=key, reverse=descending))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self._rows)

    def __reversed__(self) -> Iterator[RowT]:
        return reversed(self._rows)

    def __contains__(self, row: object) -> bool:
        return row in self._rows

    def __eq__(self, other: object) -> bool:
        """Return whether the other is a table with the same rows of the same class."""
        if not isinstance(other, Table):
            return NotImplemented
        return self.row is other.row and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    @overload
    def __getitem__(self, key: SupportsIndex) -> RowT: ...
    @overload
    def __getitem__(self, key: slice) -> Table[RowT]: ...
    def __getitem__(self, key: SupportsIndex | slice) -> RowT | Table[RowT]:
        if isinstance(key, slice):
            return Table(self.row, self._rows[key])
        return self._rows[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.row, self._rows)

    @property
    def __array_interface__(self) -> dict[str, object]:
        """A structured array with a field for each column, as numpy asks for it.

        If `__array__` did this, pandas would take a table for a single column of records.
        """
        import numpy

        array = numpy.empty(len(self), [(name, self._dtype(name)) for name in self.columns])
        for name, kind in self._kinds.items():
            values = self._values(name)
            array[name] = (
                pack_values(kind, values) if kind.letter else [value or "" for value in values]
            )
        return {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "descr": array.dtype.descr,
            "data": bytearray(array.tobytes()),
        }

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return an Arrow stream of one batch, as a capsule; the types are those of the columns."""
        from pylink._native.arrow import export_stream

        return export_stream(
            len(self),
            tuple(
                arrow_column(name, kind, self._values(name)) for name, kind in self._kinds.items()
            ),
        )

    def __repr__(self) -> str:
        """Return a summary line and the first rows."""
        lines = [self._summary()]
        lines += (f"  {tuple(row)!r}" for row in self[:SHOWN_ROWS])
        if len(self) > SHOWN_ROWS:
            lines.append(f"  ... {len(self) - SHOWN_ROWS} more")
        return "\n".join(
            line if len(line) <= CELL_WIDTH else f"{line[: CELL_WIDTH - 3]}..." for line in lines
        )

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the first rows, and how to get the others."""
        return table_html(self._rows, self.dtypes, self._summary())

    def _summary(self) -> str:
        """Return the number of rows, the names of columns, and the sums that mean something."""
        totals = [
            f"{name} {_format_total(sum(value or 0 for value in self._values(name)))} {unit.name}"
            for name, unit in units_of(self.row).items()
            if unit.sums
        ]
        total = f", in all {', '.join(totals)}" if totals else ""
        return f"<Table of {len(self)} rows{total}: {', '.join(self.columns)}>"

    @property
    def _kinds(self) -> dict[str, Kind]:
        return kinds_of(self.row)

    def _kind(self, name: str) -> Kind:
        return self._kinds[self.columns[self._column_index(name)]]

    def _column_index(self, name: str) -> int:
        """Return the index of a column; ValueError if there is none of that name."""
        if name not in self.columns:
            raise ValueError(f"no column {name!r}; there are {', '.join(self.columns)}")
        return self.columns.index(name)

    def _values(self, name: str) -> tuple[Any, ...]:
        index = self._column_index(name)
        return tuple(tuple.__getitem__(row, index) for row in self._rows)

    def _dtype(self, name: str) -> str:
        """Return numpy's name for the type of a column, with the width of its text."""
        kind = self._kinds[name]
        if kind.type is not str:
            return kind.numpy
        return f"U{max((len(value or '') for value in self._values(name)), default=1) or 1}"


def _format_total(total: float) -> str:
    return f"{total:,}" if isinstance(total, int) else f"{total:,.2f}"
