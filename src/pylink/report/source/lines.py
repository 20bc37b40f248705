"""What the cubin of a report says about an address: source line, line of PTX, instruction.

The symbols of such a cubin hold the addresses that its functions had when it ran, which are those
of source counters.
"""

from __future__ import annotations

from functools import cached_property

from pylink.inspect.image import Image, MalformedCubin, Section
from pylink.report.model import Source
from pylink.report.source.linetable import LineTable, MalformedLines, read_lines
from pylink.report.source.loaded import code_sections
from pylink.report.source.sass import disassemble


class SourceMap:
    """Looks up addresses in one `Source`; damaged tables know no address."""

    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._tables: dict[str, LineTable] = {}
        # {start of a section of code: {address: instruction}}
        self._sass: dict[int, dict[int, str]] = {}

    def line(self, address: int) -> tuple[str, int] | None:
        """The source file and line of an address."""
        return self._lines(".debug_line").find(address)

    def ptx(self, address: int) -> str:
        """The line of PTX of an address; "" if there is none."""
        found = self._lines(".nv_debug_line_sass").find(address)
        if found is None or not 0 < found[1] <= len(self._ptx):
            return ""
        return self._ptx[found[1] - 1].strip()

    def sass(self, address: int) -> str:
        """The instruction at an address; "" without a disassembler."""
        image = self._image
        for start, section in self._code:
            if image and start <= address < start + section.file_size:
                if start not in self._sass:
                    code = image.content(section)
                    self._sass[start] = disassemble(code, self._sm(image), start)
                return self._sass[start].get(address, "")
        return ""

    def _sm(self, image: Image) -> int:
        """The target; older cubins have it in another place of their header than `Image` looks."""
        revision = self._source.sm_revision if self._source else None
        return image.sm if not revision else (revision >> 16) * 10 + (revision & 0xFFFF)

    @cached_property
    def _image(self) -> Image | None:
        if self._source is None or not self._source.binary:
            return None
        try:
            return Image(self._source.binary)
        except MalformedCubin:
            return None

    def _lines(self, section: str) -> LineTable:
        found = self._tables.get(section)
        if found is None:
            found = self._tables[section] = _table(self._image, section)
        return found

    @cached_property
    def _ptx(self) -> list[str]:
        if self._source is None:
            return []
        held = self._image and self._image.section(".nv_debug_ptx_txt")
        if self._image and held:
            # Lines end with NUL there.
            text = self._image.content(held).replace(b"\0", b"\n")
        else:
            text = self._source.intermediate or b""
        return text.decode("utf-8", "replace").split("\n")

    @cached_property
    def _code(self) -> list[tuple[int, Section]]:
        try:
            return code_sections(self._image) if self._image else []
        except MalformedCubin:
            return []


def _table(image: Image | None, name: str) -> LineTable:
    section = image and image.section(name)
    if not image or not section:
        return LineTable()
    try:
        return read_lines(image.content(section), _relocated(image, section))
    except (MalformedCubin, MalformedLines):
        return LineTable()


def _relocated(image: Image, section: Section) -> dict[int, int]:
    """{offset: what the relocation there adds} for a section of line tables."""
    addresses = {}
    symbols = _symbols(image)
    for each in image.sections:
        if each.info != section.index or not each.name.startswith((".rel.", ".rela.")):
            continue
        layout = "<QQq" if each.name.startswith(".rela.") else "<QQ"
        for offset, info, *addend in image.entries(each, layout):
            symbol = info >> 32
            if symbol < len(symbols):
                addresses[offset] = symbols[symbol][4] + sum(addend)
    return addresses


def _symbols(image: Image) -> list[tuple[int, ...]]:
    symtab = image.section(".symtab")
    return [] if symtab is None else list(image.entries(symtab, "<IBBHQQ"))
