"""What was measured: leaves, which cover every byte of a file once, and the ledger below them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylink._native.ledger import Ledger

if TYPE_CHECKING:
    from pylink.size.experiments import Saving

# By number, as src/_native/size/cutting.pxd has them.
PARTS = (
    "code",
    "constants",
    "data",
    "attributes",
    "relocations",
    "names, symbols",
    "debug",
    "mercury code",
    "mercury rest",
    "headers",
    "padding",
    "other",
    "PTX",
    "LTO-IR",
)
ENTRY_HEADER = "entry headers"

# Kinds of leaves, in the order of tables.
CUBIN, RELOCATABLE = "cubin", "relocatable cubin"
PTX, RELOCATABLE_PTX = "PTX", "relocatable PTX"
LTOIR = "LTO-IR"
CONTAINER = "container header"
HOST = "host"
DIRECTORY = "archive directory"
UNREADABLE = "unreadable"
DEVICE = (CUBIN, RELOCATABLE, PTX, RELOCATABLE_PTX, LTOIR)

NO_NUMBER = -1

# Types of ELF files that are loaded: programs and shared libraries.
LOADED = (2, 3)


@dataclass
class Leaf:
    """A stretch of a file: host bytes, the header of a container, or one entry with its header.

    `download` is None outside archives. `number` is that of its rows in the ledger, if it has any.
    `header` and `header_download` are the bytes of the entry's header, `as_zstd` those that its
    payload would have as zstd, where that was measured, and `as_zstd_download` when deflated, too.
    `fingerprints` are those of a linked cubin (see `Ledger.measure`), and `savings` what
    experiments found.
    """

    file: int
    kind: str
    installed: int
    unpacked: int
    download: int | None
    target: str = ""
    unit: str = ""
    section: str = ""
    codec: str = "none"
    container: int = -1
    index: int = -1
    number: int = NO_NUMBER
    header: int = 0
    header_download: int = 0
    as_zstd: int | None = None
    as_zstd_download: int = 0
    fingerprints: tuple[bytes, bytes] = (b"", b"")
    savings: dict[str, Saving] = field(default_factory=dict)


@dataclass
class File:
    """A file that was measured; `archive` is the wheel that it is in, or empty.

    `elf_type` is 0 unless it is an ELF file. One that `is_open` leaves the registration of linked
    code to somebody else. `unnamed` are the functions of the ledger that are kernels whose names
    its host code does not have, where that was looked for.
    """

    name: str
    archive: str
    installed: int
    download: int | None
    reason: str = ""  # why it, or a part of it, is unreadable
    elf_type: int = 0
    is_arm: bool = False
    is_x86: bool = False
    is_open: bool = False
    unnamed: frozenset[int] = frozenset()


@dataclass
class Sizes:
    """All of it. `downloads` says whether any file has download bytes."""

    files: list[File] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    numbers: int = 0
    # What cannot be read: file and reason.
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def downloads(self) -> bool:
        return any(file.download is not None for file in self.files)
