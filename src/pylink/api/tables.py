"""What is in a linked image, as tables that a person, numpy and pandas can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, get_type_hints

from pylink.demangle import demangle

if TYPE_CHECKING:
    import numpy


class SectionRow(NamedTuple):
    """A section of an image; offset, size and alignment are bytes."""

    name: str
    type: str
    flags: str
    offset: int
    size: int
    alignment: int


class SymbolRow(NamedTuple):
    """A symbol of an image; `value` counts from its section, `size` is bytes."""

    name: str
    demangled: str
    binding: str
    type: str
    section: str
    value: int
    size: int


RowT = TypeVar("RowT", SectionRow, SymbolRow)


class Table(tuple[RowT, ...], Generic[RowT]):
    """A tuple of rows; `numpy.asarray(table)` has a field a column, `pandas.DataFrame(table)` too.

    `row` is the class of the rows, also where there are none.
    """

    row: type[RowT]

    @classmethod
    def of(cls, row: type[RowT], rows: list[RowT]) -> Table[RowT]:
        """A table of these rows."""
        table = cls(rows)
        table.row = row
        return table

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.row._fields

    def column(self, name: str) -> tuple[str | int, ...]:
        """The values of one column; ValueError when there is none of that name."""
        at = self.columns.index(name)
        return tuple(row[at] for row in self)

    def __array__(
        self, dtype: numpy.dtype[Any] | None = None, copy: bool | None = None
    ) -> numpy.ndarray[Any, Any]:
        """A structured array: numbers as 64 bits, texts as wide as the longest."""
        import numpy  # noqa: PLC0415 -- for those who have it

        types = [(name, self._dtype(name)) for name in self.columns]
        array = numpy.array(list(self), dtype=types)
        return array if dtype is None else array.astype(dtype)

    def _dtype(self, name: str) -> str:
        """What numpy calls the type of a column."""
        if get_type_hints(self.row)[name] is int:
            return "u8"
        return f"U{max(map(len, map(str, self.column(name))), default=1) or 1}"

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        from html import escape  # noqa: PLC0415 -- for notebooks

        head = "".join(f"<th>{name}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
            for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def section_table(image: bytes) -> Table[SectionRow]:
    """The sections of an image in file order; none in what is no ELF file, such as PTX."""
    from pylink.facts.elf import SECTION_TYPES, flag_letters  # noqa: PLC0415
    from pylink.inspect.image import Image  # noqa: PLC0415 -- reads for those who look

    sections = Image(image).sections[1:] if image.startswith(b"\x7fELF") else []
    rows = [
        SectionRow(
            one.name,
            SECTION_TYPES.get(one.type, f"{one.type:#x}"),
            flag_letters(one.flags),
            one.offset,
            one.size,
            one.align,
        )
        for one in sections
    ]
    return Table.of(SectionRow, rows)


def symbol_table(image: bytes) -> Table[SymbolRow]:
    """The symbols of an image as in `.symtab`, without the null symbol; none in PTX."""
    from pylink.inspect import contents  # noqa: PLC0415 -- reads for those who look
    from pylink.inspect.image import Image  # noqa: PLC0415

    rows = []
    if image.startswith(b"\x7fELF"):
        read = Image(image)
        section = read.section(".symtab")
        for one in contents.symbols(read, section)[1:] if section else ():
            rows.append(
                SymbolRow(
                    one.name,
                    demangle(one.name),
                    one.binding,
                    one.type,
                    one.section,
                    one.value,
                    one.size,
                )
            )
    return Table.of(SymbolRow, rows)
