"""Host functions of an object that launch kernels and that another file's function can replace.

A function launches a kernel if its code refers to the stub or to the host symbol of the kernel. An
object has a relocation for that; a linked file does not show it. The names of kernels come from
the device code of the same object. Launches by a pointer are not detected.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from pylink._native.elfheaders import read_sections
from pylink.audit.kernels import decode_name, read_symbols
from pylink.facts import elf
from pylink.facts.records import RELA, SYM
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC, ArchiveError, is_thin, read_archive
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inspect.containers import UnreadableFile, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink._native.elfheaders import Section

# Part of the name of a stub, the host function that launches a kernel. In front of it may be a
# prefix with a number, after it comes the kernel's name: _Z22__device_stub__Z4fillIiEvPT_.
_STUB_MARK = b"__device_stub__"
_CALL_FIELD_SIZE = 4  # bytes from the field of a call to the next instruction


class NotAnObject(Exception):
    """A file that is not a readable object with symbols, or archive of such; the text says why."""


@dataclass(frozen=True)
class Launcher:
    """A weak, visible function of an object, and a kernel that it launches."""

    file: str
    function: str
    kernel: str


@dataclass(frozen=True)
class _Symbol:
    """A row of a symbol table, with the name as bytes; `section` is st_shndx."""

    name: bytes
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_function(self) -> bool:
        return self.info & 15 == elf.STT_FUNC

    @property
    def is_replaceable(self) -> bool:
        """Whether the loader may use another file's symbol of this name."""
        return self.info >> 4 == elf.STB_WEAK and self.other & 3 == elf.STV_DEFAULT


def find_launchers(name: str, data: bytes) -> Iterator[Launcher]:
    """Yield each Launcher of an object or of an archive's members; NotAnObject if unreadable."""
    if not data.startswith((MAGIC, THIN_MAGIC)):
        yield from _find_in_object(name, data)
        return
    try:
        if is_thin(data, 0, len(data)):
            raise NotAnObject("it is a thin archive; name its members")
        for member in read_archive(data, 0, len(data)):
            contents = data[member.offset : member.offset + member.size]
            if contents.startswith(ELF_MAGIC):
                yield from _find_in_object(f"{name}:{member.name}", contents)
    except ArchiveError as error:
        raise NotAnObject(f"the archive is damaged: {error}") from error


def _find_in_object(name: str, data: bytes) -> Iterator[Launcher]:
    """Yield the launchers of one object, each function once with the first kernel found."""
    try:
        file = read_sections(data)
    except ValueError as error:
        raise NotAnObject(str(error)) from error
    sections = file.sections
    table = next((section for section in sections if section.type == elf.SHT_SYMTAB), None)
    if file.type != elf.ET_REL or table is None or table.link >= len(sections) or table.stored < 0:
        raise NotAnObject("it is not an object with symbols")
    kernels = _kernels_of_object(name, data)
    if not kernels:
        return
    symbols = list(_read_symbols(data, sections, table))
    functions = _Functions(symbols)
    names_found: set[bytes] = set()
    for section in sections:
        if section.type != elf.SHT_RELA or section.info >= len(sections) or section.stored < 0:
            continue
        if not sections[section.info].flags & elf.SHF_EXECINSTR:
            continue
        size = section.stored - section.stored % RELA.size
        rows = data[section.offset : section.offset + size]
        for offset, _, number, addend in RELA.iter_unpack(rows):
            if number >= len(symbols):
                continue
            caller = functions.find(section.info, offset)
            if caller is None or not caller.is_replaceable or caller.name in names_found:
                continue
            target = _name_of_target(symbols[number], addend, functions)
            kernel = _kernel_of(target, kernels)
            if kernel and not _kernel_of(caller.name, kernels):
                names_found.add(caller.name)
                yield Launcher(name, decode_name(caller.name), decode_name(kernel))


def _kernels_of_object(name: str, data: bytes) -> set[bytes]:
    """Return the names of the kernels in the device code of an object."""
    kernels: set[bytes] = set()
    try:
        for part in parts(name, data):
            if part.kind == "cubin" and part.data:
                kernels.update(read_symbols(part.data).kernels)
    except UnreadableFile as error:
        raise NotAnObject(str(error).removeprefix(f"{name}: ")) from error
    return kernels


def _read_symbols(data: bytes, sections: list[Section], table: Section) -> Iterator[_Symbol]:
    """Yield the rows of a symbol table."""
    names = sections[table.link]
    strings = data[names.offset : names.offset + max(names.stored, 0)]
    rows_size = table.stored - table.stored % SYM.size
    for name, *fields in SYM.iter_unpack(data[table.offset : table.offset + rows_size]):
        end = strings.find(b"\0", name)
        yield _Symbol(strings[name:end] if end >= 0 else b"", *fields)


class _Functions:
    """The functions of an object, by section and offset."""

    def __init__(self, symbols: list[_Symbol]) -> None:
        # By section number: its functions, sorted by offset; `_starts` has these offsets.
        self._sections: dict[int, list[_Symbol]] = {}
        for symbol in symbols:
            if symbol.is_function and symbol.section:
                self._sections.setdefault(symbol.section, []).append(symbol)
        for section in self._sections.values():
            section.sort(key=lambda symbol: symbol.value)
        self._starts = {
            number: [symbol.value for symbol in section]
            for number, section in self._sections.items()
        }

    def find(self, section: int, offset: int) -> _Symbol | None:
        """Return the function that contains the byte at `offset` of a section, or None."""
        index = bisect_right(self._starts.get(section, ()), offset) - 1
        if index < 0:
            return None
        symbol = self._sections[section][index]
        return symbol if offset < symbol.value + symbol.size else None


def _name_of_target(symbol: _Symbol, addend: int, functions: _Functions) -> bytes:
    """Return the name of a relocation's symbol, or of the function that starts at its target.

    It is the function's if the symbol is that of a section, with an offset as addend. Then the name
    is empty if no function starts there.
    """
    if symbol.info & 15 != elf.STT_SECTION:
        return symbol.name
    # The addend of a call is relative to the next instruction; that of a pointer is the offset.
    for offset in (addend + _CALL_FIELD_SIZE, addend):
        target = functions.find(symbol.section, offset)
        if target is not None and target.value == offset:
            return target.name
    return b""


def _kernel_of(name: bytes, kernels: set[bytes]) -> bytes:
    """Return the kernel whose host symbol or stub has this name; empty if it is neither of these.

    If the kernel of a stub is not in `kernels`, the name of the stub is returned instead.
    """
    if name in kernels:
        return name
    mark = name.find(_STUB_MARK)
    if mark >= 0:
        suffix = name[mark + len(_STUB_MARK) :]
        # In _Z..__device_stub__Z4fillIiEvPT_, prefix and kernel's name share an underscore.
        for kernel in (suffix, b"_" + suffix):
            if kernel in kernels:
                return kernel
        return name
    # The name of a kernel with internal linkage contains the name of its host symbol without _ZL.
    if name.startswith(b"_ZL"):
        return min((kernel for kernel in kernels if name[3:] and name[3:] in kernel), default=b"")
    return b""
