"""Looks up addresses in the cubin of a report: source line, line of PTX, instruction.

The values of symbols in such a cubin are the addresses at which its functions were loaded. Metrics
with a value for each instruction use these addresses as ids.
"""

from __future__ import annotations

import os
from functools import cached_property

from pylink.inspect.image import Image, MalformedCubin, Section
from pylink.locate import PTX_LINES, SOURCE_LINES
from pylink.report.model import Source
from pylink.report.source.loaded import code_sections
from pylink.report.source.sass import disassemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pylink.locate.linemap import LineMap

    T = TypeVar("T")


# Limit of the characters that are read of a source file.
MAX_SOURCE_LENGTH = 1 << 24


class SourceMap:
    """Finds line, PTX and instruction at an address of one `Source`; none in damaged tables."""

    def __init__(self, source: Source | None) -> None:
        self._source = source
        # Disassembled code: {start address of a section: {address: instruction}}
        self._sass: dict[int, dict[int, str]] = {}
        self._texts: dict[str, list[str]] = {}  # lines of source files, by path

    @property
    def has_code(self) -> bool:
        """Whether the report has a readable cubin with code; without, `is_code` is always False."""
        return bool(self._code)

    def is_code(self, address: int) -> bool:
        """Return whether an address is in a code section of the cubin."""
        return self._find_section(address) is not None

    def line(self, address: int) -> tuple[str, int] | None:
        """Return the source file and line of an address; None if unknown."""
        frames = self._query(
            address, lambda lines, section: lines.programs(SOURCE_LINES).frames(section, address)
        )
        if not frames:
            return None
        return os.fsencode(frames[0].file).decode("utf-8", "backslashreplace"), frames[0].line

    def text(self, address: int) -> str:
        """Return the text of the source line of an address; "" if line or file is not found."""
        line = self.line(address)
        if line is None:
            return ""
        file, number = line
        lines = self._texts.get(file)
        if lines is None:
            lines = self._texts[file] = self._read(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def _read(self, file: str) -> list[str]:
        """Return the lines of a source file, from the report or else the disk; [] if unreadable."""
        reported = self._source.source_files if self._source else None
        for source in reported.files if reported else ():
            if source.file_name == file and source.content is not None:
                return source.content.split("\n")
        try:
            with open(file, errors="replace") as stream:
                return stream.read(MAX_SOURCE_LENGTH).split("\n")
        except (OSError, ValueError):
            return []

    def ptx(self, address: int) -> str:
        """Return the line of PTX of an address; "" if not found."""
        line = self._query(
            address, lambda lines, section: lines.programs(PTX_LINES).line(section, address)
        )
        if line is None or not 0 < line <= len(self._ptx):
            return ""
        return self._ptx[line - 1].strip()

    def sass(self, address: int) -> str:
        """Return the instruction at an address; "" outside of code, or without a disassembler."""
        code_section, image = self._find_section(address), self._image
        if code_section is None or image is None:
            return ""
        start, section = code_section
        if start not in self._sass:
            self._sass[start] = disassemble(image.content(section), self._sm(image), start)
        return self._sass[start].get(address, "")

    def _sm(self, image: Image) -> int:
        """Return the number of the target, such as 86 for sm_86.

        It is from the report if possible, since `Image` does not find it in older cubins.
        """
        revision = self._source.sm_revision if self._source else None
        return image.sm if not revision else (revision >> 16) * 10 + (revision & 0xFFFF)

    @cached_property
    def _image(self) -> Image | None:
        """The cubin; None without one, or if it is damaged."""
        if self._source is None or not self._source.binary:
            return None
        try:
            return Image(self._source.binary)
        except MalformedCubin:
            return None

    def _query(self, address: int, look_up: Callable[[LineMap, int], T]) -> T | None:
        """Return the result of `look_up` for the line tables and the section with an address.

        None if no code section contains it, or if the tables are missing or damaged. `look_up` uses
        the address as an offset: offsets in the tables are addresses, like the symbols' values.
        """
        code_section, lines = self._find_section(address), self._lines
        if code_section is None or lines is None:
            return None
        try:
            return look_up(lines, code_section[1].index)
        except Exception:  # pyelftools raises exceptions of all kinds for damaged data
            self._lines = None
            return None

    @cached_property
    def _lines(self) -> LineMap | None:
        """The line tables of the cubin; None without any, or if they are damaged."""
        if self._image is None:
            return None
        from pylink.locate.linemap import LineMap

        try:
            return LineMap(self._image.data)
        except Exception:  # pyelftools raises exceptions of all kinds for damaged data
            return None

    @cached_property
    def _ptx(self) -> list[str]:
        """The lines of the PTX: from the debug section of the cubin, or else from the report."""
        if self._source is None:
            return []
        ptx_section = self._image and self._image.section(".nv_debug_ptx_txt")
        if self._image and ptx_section:
            # Lines end with NUL in this section.
            text = self._image.content(ptx_section).replace(b"\0", b"\n")
        else:
            text = self._source.intermediate or b""
        return text.decode("utf-8", "replace").split("\n")

    def _find_section(self, address: int) -> tuple[int, Section] | None:
        """Return the code section with an address: (start, section); None if there is none."""
        for start, section in self._code:
            if start <= address < start + section.file_size:
                return start, section
        return None

    @cached_property
    def _code(self) -> list[tuple[int, Section]]:
        """The code sections of the cubin, as pairs (address of the start, section)."""
        try:
            return code_sections(self._image) if self._image else []
        except MalformedCubin:
            return []
