"""Code that an action ran: cubin, PTX and sources, for metrics with a value per instruction."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.report.model.message import Message


@dataclass(slots=True, eq=False, repr=False)
class SourceFile(Message):
    """A source file; the report may lack its `content` (None)."""

    file_name: str = ""
    content: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class SourceFiles(Message):
    """The source files of a cubin."""

    files: list[SourceFile] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class RelocationSymbol(Message):
    """The address at which the loader placed a symbol."""

    symbol_name: str | None = None
    address: int | None = None
    symbol_index: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class RelocationData(Message):
    """Addresses at which the loader placed functions and objects."""

    functions: list[RelocationSymbol] = field(default_factory=list)
    objects: list[RelocationSymbol] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Source(Message):
    """The code of actions. In `Action.source` usually only `reference` and `sass_level` are set.

    The code itself is then in the entry of `Report.sources` with the same `reference`.
    `intermediate` is PTX, and `binary` a cubin, in which the values of function symbols are load
    addresses, which are not 0. `sm_revision` is major << 16 | minor.
    """

    reference: int | None = None
    code: str | None = None
    intermediate: bytes | None = None
    binary: bytes | None = None
    sass_level: int | None = None
    sm_revision: int | None = None
    binary_flags: int | None = None
    source_files: SourceFiles | None = None
    relocation_data: RelocationData | None = None


@dataclass(slots=True, eq=False, repr=False)
class CpuFrame(Message):
    """One frame of a call stack of the host."""

    module_name: str = ""
    pc: int = 0
    file_name: str | None = None
    func_name: str | None = None
    line: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class CpuStack(Message):
    """The call stack of the host program at the time of an action."""

    frames: list[CpuFrame] = field(default_factory=list)
