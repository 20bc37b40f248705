"""The results of measuring: leaves (ranges of files), the bytes of functions, reductions."""

from __future__ import annotations

from types import MappingProxyType

from pylink._native.ledger import Ledger
from pylink.facts import sizenumbers
from pylink.facts.elf import ET_DYN, ET_EXEC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.size.savings import Saving

# Levels by which tables can add up bytes. The last three are below entries.
LEVELS = ("archive", "file", "kind", "target", "unit", "part", "template", "function")
# Names of the parts of an entry, such as code and constants, by their numbers.
PARTS = tuple(sizenumbers.PARTS.values())
ENTRY_HEADER = "entry headers"  # a part without a number: headers are not in the ledger

# Kinds of leaves (ranges of files). An entry of an unknown `EntryKind` N has the kind "kind N".
CUBIN, RELOCATABLE = "cubin", "relocatable cubin"
PTX, RELOCATABLE_PTX = "PTX", "relocatable PTX"
LTOIR = "LTO-IR"
CONTAINER = "container header"
HOST = "host"
DIRECTORY = "archive directory"
UNREADABLE = "unreadable"
DEVICE_KINDS = (CUBIN, RELOCATABLE, PTX, RELOCATABLE_PTX, LTOIR)

# Number of a leaf (range of a file) without rows in the ledger, the bytes by part and function.
NO_NUMBER = -1

# Names of experiments: compression in the smallest mode, without debug data, without the functions
# of --what-if.
SMALLER_MODE, NO_DEBUG, WITHOUT = "size-mode", "debug-data", "what-if"

# e_type of ELF files that are loaded: programs and shared libraries.
LOADED = (ET_EXEC, ET_DYN)


# All leaves without measured savings share this empty mapping.
_NO_SAVINGS: Mapping[str, Saving] = MappingProxyType({})


class Leaf:
    """A range of a file: host bytes, the header of a container, or one entry with its header.

    Unreadable bytes and the directory of an archive are leaves, too. `file` is an index of
    `Sizes.files`, and `section` the name of the section around the leaf, or empty. `installed`
    counts its bytes in the file, `unpacked` those after decompression, and `download` those in the
    archive (None outside archives). `unit` is the source file, archive member or container, and
    `codec` a name of `entries.CODEC_NAMES`. `container` is the number of the container in its file,
    and `index` that of the entry in it; each is -1 if there is none. `number` is the number of the
    entry in the ledger, or NO_NUMBER.

    `header` and `header_download` are the bytes of the entry's header. `as_zstd` is the size of the
    payload as zstd (None: not measured), and `as_zstd_download` its size when deflated, too.
    `fingerprints` are `exact` and `like` of `ledger.Measured` for a linked cubin: digests, by which
    equal and nearly equal cubins are found. `savings` are the results of experiments, by name.
    """

    # Usual values are class attributes, which take no memory in each of thousands of leaves.
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
    """A measured file; `archive` is the wheel or other zip file that contains it, or empty.

    A file without a name stands for the bytes of an archive between its members.
    `elf_type` is e_type, or 0 if it is not an ELF file; `is_arm` and `is_x86` are its machine.
    `is_open` means that another file registers its device code. `unnamed` are the kernels, by
    number in the ledger, whose names its host code lacks; empty if they were not searched.
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
    """All results of a command.

    `ledger` has the bytes of each entry by part and function, and `entry_count` is the number of
    its entries. `unreadable` has the names of files, or of entries in them, and the reasons.
    """

    def __init__(self) -> None:
        self.files: list[File] = []
        self.leaves: list[Leaf] = []
        self.ledger = Ledger()
        self.entry_count = 0
        self.unreadable: list[tuple[str, str]] = []

    def with_leaves(self, leaves: list[Leaf]) -> Sizes:
        """Return a copy with only these leaves, and the same ledger."""
        selected = Sizes()
        selected.files, selected.leaves, selected.ledger = self.files, leaves, self.ledger
        selected.entry_count, selected.unreadable = self.entry_count, self.unreadable
        return selected

    @property
    def downloads(self) -> bool:
        """Whether any file has download bytes."""
        return any(file.download is not None for file in self.files)


class Reduction:
    """The bytes that one rule saves in some entries, as a line of output.

    `rule` is the name for programs, `title` the text for people, and `letter` the class: A, B or C
    (`reductions.py`). `condition` is what must hold, or what is lost, and `how` says what to do,
    such as an option to use. `installed` are bytes of files, `download` those of archives (None
    outside archives). `entries` is the number of entries, or of a template's instances. `estimated`
    means that the bytes are not exact. `leaves` are the entries concerned, if they are known.
    """

    def __init__(
        self,
        rule: str,
        title: str,
        letter: str,
        *,
        installed: int,
        download: int | None,
        entries: int,
        condition: str,
        how: str,
        estimated: bool = False,
        leaves: list[Leaf] | None = None,
    ) -> None:
        self.rule, self.title, self.letter = rule, title, letter
        self.installed, self.download, self.entries = installed, download, entries
        self.condition, self.how, self.estimated = condition, how, estimated
        self.leaves = leaves or []

    def as_row(self) -> dict[str, object]:
        """Return the fields of the JSON document, which does not have the leaves."""
        return {name: value for name, value in vars(self).items() if name != "leaves"}


def remove_leaves(
    rule: str, title: str, letter: str, leaves: list[Leaf], condition: str, how: str
) -> Iterable[Reduction]:
    """Yield the reduction that removes these leaves completely, if there are any.

    The other parameters become fields of the `Reduction`.
    """
    if leaves:
        installed = sum(leaf.installed for leaf in leaves)
        yield Reduction(
            rule,
            title,
            letter,
            installed=installed,
            download=_sum_downloads(leaves),
            entries=len(leaves),
            condition=condition,
            how=how,
            estimated=False,
            leaves=leaves,
        )


def _sum_downloads(leaves: list[Leaf]) -> int | None:
    """Return the archive bytes of leaves, or None if none is in an archive."""
    downloads = [leaf.download for leaf in leaves if leaf.download is not None]
    return sum(downloads) if downloads else None
