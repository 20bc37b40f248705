"""Tables for people, numpy and pandas: contents of a linked image, inputs, phases and growth."""

from __future__ import annotations

import os
from typing import NamedTuple

from pylink.demangle import demangle
from pylink.facts.elf import SHT_REL, SHT_RELA
from pylink.inputs.kinds import ELF_MAGIC
from pylink.tabular.columns import Milliseconds, Place, Ratio, Size
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SectionRow(NamedTuple):
    """A section of an image; offset, size and alignment are bytes."""

    name: str
    type: str
    flags: str
    offset: Place
    size: Size
    alignment: Place


class SymbolRow(NamedTuple):
    """A symbol of an image; `value` is bytes from the start of its section, `size` is bytes."""

    name: str
    demangled: str
    binding: str
    type: str
    section: str
    value: Place
    size: Size


class SizeRow(NamedTuple):
    """Bytes of a function in one part of an image, such as `code`.

    Bytes that belong to no function have `(shared)` for function and template.
    """

    part: str
    function: str
    template: str
    size: Size


class RelocationRow(NamedTuple):
    """A relocation, which changes `section` at `offset`, in bytes; no addend in REL sections."""

    section: str
    offset: Place
    type: str
    symbol: str
    addend: Place | None


class InputRow(NamedTuple):
    """An input of a link, numbered from 0; `bytes` is None if its file is not found any more."""

    number: int
    name: str
    bytes: Size | None


class PhaseRow(NamedTuple):
    """A phase of a link: its tag, such as `read`, and how long it took."""

    phase: str
    milliseconds: Milliseconds


class GrowthRow(NamedTuple):
    """A size; `cost` is the least of its costs, `measured` their number, `fitted` the model's cost.

    `residual` is cost / fitted - 1. `used` says whether the fit uses this size; it omits outliers
    and sizes that are too small for the model.
    """

    size: float
    cost: float
    measured: int
    fitted: float | None
    residual: Ratio | None
    used: bool


def section_table(image: bytes) -> Table[SectionRow]:
    """Return the sections of an image, except the null one, in order; empty for PTX."""
    from pylink.facts.elf import SECTION_TYPES, flag_letters
    from pylink.inspect.image import Image

    sections = Image(image).sections[1:] if image.startswith(ELF_MAGIC) else []
    rows = [
        SectionRow(
            header.name,
            SECTION_TYPES.get(header.type, f"{header.type:#x}"),
            flag_letters(header.flags),
            header.offset,
            header.size,
            header.align,
        )
        for header in sections
    ]
    return Table(SectionRow, rows)


def symbol_table(image: bytes) -> Table[SymbolRow]:
    """Return the symbols of an image in the order of `.symtab`, without the null symbol."""
    from pylink.inspect import contents
    from pylink.inspect.image import Image

    rows = []
    if image.startswith(ELF_MAGIC):
        parsed = Image(image)
        section = parsed.section(".symtab")
        for entry in contents.symbols(parsed, section)[1:] if section else ():
            rows.append(
                SymbolRow(
                    entry.name,
                    demangle(entry.name),
                    entry.binding,
                    entry.type,
                    entry.section,
                    entry.value,
                    entry.size,
                )
            )
    return Table(SymbolRow, rows)


def size_table(image: bytes) -> Table[SizeRow]:
    """Return the bytes of an image by part and function, like `pylink size`, largest first."""
    from pylink.size.levels import rows
    from pylink.size.walk import measure_bytes

    levels = "part", "function", "template"
    size_rows = rows(measure_bytes("image", image), levels) if image else []
    table = []
    for row in size_rows:
        part, function, template = row.keys
        if row.installed:
            table.append(SizeRow(part, function, template, row.installed))
    return Table(SizeRow, table)


def relocation_table(image: bytes) -> Table[RelocationRow]:
    """Return the entries of REL and RELA sections, section by section, in order; empty for PTX."""
    from pylink.inspect import contents
    from pylink.inspect.image import Image

    rows = []
    if image.startswith(ELF_MAGIC):
        parsed = Image(image)
        for section in parsed.sections:
            if section.type in (SHT_REL, SHT_RELA):
                name = parsed.section_name(section.info)
                rows += [
                    RelocationRow(
                        name,
                        relocation.offset,
                        relocation.type_name,
                        relocation.symbol,
                        relocation.addend,
                    )
                    for relocation in contents.relocations(parsed, section)
                ]
    return Table(RelocationRow, rows)


def input_table(inputs: Sequence[tuple[str, int | None]]) -> Table[InputRow]:
    """Return the inputs with their sizes; the sizes of files are read now."""
    rows = (
        InputRow(number, name, _file_size(name) if size is None else size)
        for number, (name, size) in enumerate(inputs)
    )
    return Table(InputRow, rows)


def _file_size(path: str) -> int | None:
    """Return the bytes of a file, or None if it cannot be found."""
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def phase_table(timings: Mapping[str, float]) -> Table[PhaseRow]:
    """Return the phases that ran after init, in order."""
    return Table(PhaseRow, (PhaseRow(*pair) for pair in timings.items()))
