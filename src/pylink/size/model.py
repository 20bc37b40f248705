"""The results of measuring: leaves, which cover every byte of a file once, and their ledger."""

from __future__ import annotations

from types import MappingProxyType

from pylink._native.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylink.size.savings import Saving

LEVELS = ("archive", "file", "kind", "target", "unit", "part", "template", "function")
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

# Names of what experiments measure.
SMALLER_MODE, NO_DEBUG, WITHOUT = "size-mode", "debug-data", "what-if"

# Types of ELF files that are loaded: programs and shared libraries.
LOADED = (2, 3)


# Shared by all leaves without measured savings.
_NO_SAVINGS: Mapping[str, Saving] = MappingProxyType({})


class Leaf:
    """A range of a file: host bytes, the header of a container, or one entry with its header.

    `download` is only known in archives. `number` is the number of its rows in the ledger, if any.
    `header` and `header_download` are the bytes of the entry's header. `as_zstd` is the size of its
    payload as zstd, if that was measured, and `as_zstd_download` its size when deflated, too.
    `fingerprints` are those of a linked cubin (see `Ledger.measure`), `savings` the results of
    experiments, by name.
    """

    # Usual values are class attributes: there are thousands of leaves.
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
    savings: Mapping[str, Saving] = _NO_SAVINGS

    def __init__(
        self, file: int, kind: str, installed: int, unpacked: int, download: int | None
    ) -> None:
        self.file, self.kind = file, kind
        self.installed, self.unpacked, self.download = installed, unpacked, download


class File:
    """A measured file; `archive` is the wheel that contains it, or empty.

    `elf_type` is 0 unless it is an ELF file. A file that `is_open` does not register its linked
    code itself. `unnamed` are the kernels, as functions of the ledger, whose names its host code
    lacks; empty if they were not searched.
    """

    elf_type: int = 0
    is_arm: bool = False
    is_x86: bool = False
    is_open: bool = False
    unnamed: frozenset[int] = frozenset()

    def __init__(
        self, name: str, archive: str, installed: int, download: int | None, reason: str = ""
    ) -> None:
        self.name, self.archive = name, archive
        self.installed, self.download = installed, download
        self.reason = reason  # why the file or a part of it is unreadable


class Sizes:
    """All results: `numbers` counts entries in the ledger, `unreadable` has files and reasons."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.leaves: list[Leaf] = []
        self.ledger = Ledger()
        self.numbers = 0
        self.unreadable: list[tuple[str, str]] = []

    def with_leaves(self, leaves: list[Leaf]) -> Sizes:
        """A copy with only these leaves."""
        some = Sizes()
        some.files, some.leaves, some.ledger = self.files, leaves, self.ledger
        some.numbers, some.unreadable = self.numbers, self.unreadable
        return some

    @property
    def downloads(self) -> bool:
        """Whether any file has download bytes."""
        return any(file.download is not None for file in self.files)
