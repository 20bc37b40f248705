"""Divides files into leaves: every byte of a file is in exactly one.

Device code is found wherever it lies: containers of fat binaries in any section, cubins outside of
containers, and files of PTX. Other readable bytes are host bytes, or the directory of a zip file.
"""

from __future__ import annotations

import os

from pylink.diagnostics.errors import reason_of
from pylink.facts.elf import EM_AARCH64, EM_CUDA, EM_X86_64
from pylink.facts.fatbinentries import CONTAINER as HEADER
from pylink.facts.fatbinentries import FATBIN_MAGIC
from pylink.facts.objectformats import sm_of_cubin
from pylink.facts.picknumbers import EntryKind
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC, ArchiveError, is_thin, read_archive
from pylink.inputs.archivethin import member_file
from pylink.inputs.payload import is_compressed
from pylink.inspect.embedded import (
    ELF_MARK,
    Embedded,
    FileSection,
    entry_at,
    find_device_code,
    lacks_registration,
    sections_of,
)
from pylink.size.entries import Counter
from pylink.size.model import CONTAINER, DIRECTORY, HOST, LOADED, UNREADABLE, File, Leaf, Sizes
from pylink.size.sources import (
    ZIP_MAGICS,
    FileSource,
    MemorySource,
    PartSource,
    Source,
    open_source,
)
from pylink.size.units import mark_relocatable, name_units, target_of

# Least offset of a file name in the header of an entry, after the fixed fields.
_LEAST_NAME_OFFSET = 64
# Limit of the depth of ar archives in each other. A deeper one is unreadable.
_MOST_NESTING = 16
# The first _HEAD bytes of a file, which include an ELF header, tell its kind. Directives of PTX are
# searched in the first _PTX_HEAD bytes.
_HEAD, _PTX_HEAD = 64, 4096
# Limit of the members of ar archives, in all files of one command.
MOST_MEMBERS_IN_ALL = 1 << 20


class Reader:
    """Divides files into leaves (ranges) of `sizes`; unreadable bytes are leaves of their own."""

    def __init__(self, sizes: Sizes, counter: Counter) -> None:
        self._sizes, self._counter = sizes, counter
        self._members_allowed = MOST_MEMBERS_IN_ALL
        # Entries of each container, and the name of its section.
        self._containers: list[tuple[list[Leaf], str]] = []
        self._next_container = 0  # number of the next container of the current file

    def read(self, path: str) -> None:
        """Count a file of any kind; it is unreadable if it cannot be opened.

        OSError if reading fails later.
        """
        try:
            source = open_source(path)
        except OSError as error:
            self._add_unreadable(path, "", 0, None, reason_of(error))
            return
        try:
            if source.read(0, 4) in ZIP_MAGICS:
                self._read_zip(path, source)
            else:
                self._read_file(path, "", source, source.size, None, path)
        except OSError as error:
            # The error may be of an earlier file, whose entries are only read now.
            name = path if error.filename is None else error.filename
            raise OSError(error.errno, reason_of(error), name) from None
        finally:
            if isinstance(source, FileSource):
                source.close()

    def read_bytes(self, name: str, data: bytes) -> None:
        """Count a file in memory that is not a zip file; `name` is for results and messages."""
        self._read_file(name, "", MemorySource(data), len(data), None, name)

    def finish(self) -> None:
        """Add kinds and names that depend on whole containers, after all entries were counted."""
        for leaves, section in self._containers:
            mark_relocatable(leaves, section)
            name_units(leaves, self._counter.hints)

    def _add_file(
        self, name: str, archive: str, installed: int, download: int | None, reason: str = ""
    ) -> int:
        """Add a file to the results, and return its index in `Sizes.files`."""
        self._sizes.files.append(File(name, archive, installed, download, reason))
        return len(self._sizes.files) - 1

    def _add_unreadable(
        self, name: str, archive: str, size: int, download: int | None, reason: str
    ) -> None:
        """Add a file, or a member of `archive`, of `size` bytes, which are all unreadable."""
        file = self._add_file(name, archive, size, download, reason)
        self._sizes.leaves.append(Leaf(file, UNREADABLE, size, size, download))
        full_name = f"{archive}:{name}" if archive else name
        self._sizes.unreadable.append((full_name, reason))

    def _read_zip(self, path: str, source: Source) -> None:
        """Count the members of a zip file, and the bytes between them."""
        from pylink.size import zips  # only zip files need it

        try:
            members = zips.list_members(source)
        except zips.DamagedZip as error:
            self._add_unreadable(path, "", source.size, source.size, str(error))
            return
        bytes_allowed = zips.MOST_BYTES
        for member in members:
            bytes_allowed -= member.size
            try:
                if bytes_allowed < 0:
                    raise zips.DamagedZip(f"more than {zips.MOST_BYTES} bytes in all members")
                contents = zips.open_member(source, member, _may_have_code)
            except zips.DamagedZip as error:
                self._add_unreadable(member.name, path, member.size, member.packed, str(error))
                continue
            if contents is None:
                file = self._add_file(member.name, path, member.size, member.packed)
                self._sizes.leaves.append(Leaf(file, HOST, member.size, member.size, member.packed))
            else:
                full_name = f"{path}:{member.name}"
                self._read_file(member.name, path, contents, member.size, member.packed, full_name)
        file = self._add_file("", path, 0, source.size - sum(member.packed for member in members))
        # A file without a name stands for the bytes between members: headers and the directory.
        directory_bytes = self._sizes.files[file].download
        self._sizes.leaves.append(Leaf(file, DIRECTORY, 0, 0, directory_bytes))

    def _read_file(
        self, name: str, archive: str, source: Source, size: int, download: int | None, path: str
    ) -> None:
        """Read a file, or a member of the zip file `archive`; `path` is its name for messages.

        `source` has its `size` bytes, of which the archive has `download` (None outside archives).
        """
        file = self._add_file(name, archive, size, download)
        first_leaf = len(self._sizes.leaves)
        self._counter.allow(size)
        self._next_container = 0
        head = source.read(0, _HEAD)
        if head.startswith(ELF_MARK):
            elf = self._sizes.files[file]
            elf.elf_type = int.from_bytes(head[16:18], "little")
            machine = _machine_of(head)
            elf.is_arm, elf.is_x86 = machine == EM_AARCH64, machine == EM_X86_64
            elf.is_open = lacks_registration(source)
        self._read_source(source, file, path, "", 0)
        if self._counter.thorough and self._sizes.files[file].elf_type in LOADED:
            self._counter.finish()
            from pylink.size.hostnames import find_unnamed

            self._sizes.files[file].unnamed = find_unnamed(
                self._sizes, source, self._sizes.leaves[first_leaf:]
            )

    def _read_source(self, source: Source, file: int, path: str, unit: str, depth: int) -> None:
        """Read a source that is not a zip file.

        `file` is the index of its file in the results, `path` its name for messages. `unit` is its
        name as a member of an ar archive, or empty, and `depth` the number of archives around it.
        """
        head = source.read(0, _HEAD)
        if head.startswith((MAGIC, THIN_MAGIC)):
            self._read_archive(source, file, path, depth)
        elif _is_cubin(head):
            self._add_payload(source, (0, source.size), file, path, unit, EntryKind.ELF)
        elif head.startswith((ELF_MARK, FATBIN_MAGIC)):
            self._read_sections(source, file, path, unit)
        elif _is_ptx(source):
            self._add_payload(source, (0, source.size), file, path, unit, EntryKind.PTX)
        elif source.size:
            self._add_host(source, 0, source.size, file, unit, "")

    def _read_archive(self, source: Source, file: int, path: str, depth: int) -> None:
        """Count the members of the ar archive `path`, and the bytes between them.

        `depth` is the number of archives around this one.
        """
        data = source.read(0, source.size)
        position = 0
        try:
            if depth == _MOST_NESTING:
                raise ArchiveError(f"more than {_MOST_NESTING} archives in each other")
            is_thin_archive = is_thin(data, 0, len(data))
            for entry in read_archive(data, 0, len(data)):
                self._members_allowed -= 1
                if self._members_allowed < 0:
                    raise ArchiveError(f"more than {MOST_MEMBERS_IN_ALL} members in all")
                if is_thin_archive:
                    self._read_thin_member(entry.name, path)
                    continue
                self._add_host(source, position, entry.offset, file, entry.name, "")
                part = PartSource(source, entry.offset, entry.size)
                self._read_source(part, file, f"{path}:{entry.name}", entry.name, depth + 1)
                position = entry.offset + entry.size
        except ArchiveError as error:
            leaf = self._add_leaf(source, position, source.size, file, UNREADABLE)
            self._counter.count_unreadable(leaf, path, f"archive is damaged: {error}")
            return
        self._add_host(source, position, source.size, file, "", "")

    def _read_thin_member(self, name: str, path: str) -> None:
        """Read the file that is the member `name` of the thin archive `path`."""
        member_path = member_file(name, path)
        try:
            source = FileSource(member_path)
        except OSError as error:
            self._add_unreadable(f"{path}:{name}", "", 0, None, reason_of(error))
            return
        try:
            if source.read(0, 8) in (MAGIC, THIN_MAGIC):
                reason = "an archive in a thin archive is measured by itself"
                self._add_unreadable(f"{path}:{name}", "", source.size, None, reason)
                return
            file = self._add_file(f"{path}:{name}", "", source.size, None)
            self._counter.allow(source.size)
            self._read_source(source, file, f"{path}:{name}", os.path.basename(name), _MOST_NESTING)
        finally:
            source.close()

    def _add_leaf(
        self, source: Source, start: int, end: int, file: int, kind: str, unit: str = ""
    ) -> Leaf:
        """Add a leaf for a range of `source`, in file number `file`; return it for more fields."""
        size = end - start
        leaf = Leaf(file, kind, size, size, source.download(start, end))
        if unit:
            leaf.unit = unit
        self._sizes.leaves.append(leaf)
        return leaf

    def _add_host(
        self, source: Source, start: int, end: int, file: int, unit: str, section: str
    ) -> None:
        """Add a leaf for host bytes between two offsets of `source`, if there are any."""
        if end > start:
            self._add_leaf(source, start, end, file, HOST, unit).section = section

    def _add_payload(
        self, source: Source, span: tuple[int, int], file: int, path: str, unit: str, kind: int
    ) -> Leaf:
        """Add a cubin or PTX without an entry header; `span` has its start and its end.

        `kind` is an `EntryKind`.
        """
        start, end = span
        leaf = self._add_leaf(source, start, end, file, UNREADABLE, unit)
        if kind == EntryKind.ELF:
            leaf.target = f"sm_{sm_of_cubin(source.read(start, _HEAD))}"
        else:
            leaf.target = _ptx_target(source.read(start, _PTX_HEAD))
        self._counter.count(leaf, path, kind, 0, (source, start, end - start), end - start)
        return leaf

    def _read_sections(self, source: Source, file: int, path: str, unit: str) -> None:
        """Add leaves of file number `file`: device code in any section, host bytes between."""
        sections = sections_of(source)
        last_end = 0
        for device_code in find_device_code(source, sections):
            self._add_host_sections(source, last_end, device_code.start, file, unit, sections)
            read = self._read_container if device_code.is_container else self._read_loose_cubin
            read(source, device_code, file, path, unit)
            last_end = device_code.end
        self._add_host_sections(source, last_end, source.size, file, unit, sections)

    def _add_host_sections(
        self,
        source: Source,
        start: int,
        end: int,
        file: int,
        unit: str,
        sections: list[FileSection],
    ) -> None:
        """Add leaves for host bytes from `start` to `end`, each with its section's name or none."""
        position = start
        for section in sections:
            if section.end <= position or section.start >= end:
                continue
            if section.start > position:
                self._add_host(source, position, section.start, file, unit, "")
                position = section.start
            host_end = min(end, section.end)
            self._add_host(source, position, host_end, file, unit, section.name)
            position = host_end
        self._add_host(source, position, end, file, unit, "")

    def _read_loose_cubin(
        self, source: Source, device_code: Embedded, file: int, path: str, unit: str
    ) -> None:
        """Add a cubin outside of containers."""
        span = device_code.start, device_code.end
        leaf = self._add_payload(source, span, file, path, unit, EntryKind.ELF)
        leaf.section = device_code.section

    def _read_container(
        self, source: Source, device_code: Embedded, file: int, path: str, unit: str
    ) -> None:
        """Add the header of a container and its entries; `path` is the file's name for messages."""
        start, end, section = device_code.start, device_code.end, device_code.section
        number = self._next_container
        self._next_container += 1
        header_leaf = self._add_leaf(source, start, start + HEADER.size, file, CONTAINER, unit)
        header_leaf.section, header_leaf.container, header_leaf.unpacked = section, number, 0
        position, entry_index = start + HEADER.size, 0
        leaves: list[Leaf] = []
        while position < end:
            fields = entry_at(source, position, end)
            label = f"{path}: container {number}, entry {entry_index}"
            if fields is None:
                leaf = self._add_leaf(source, position, end, file, UNREADABLE, unit)
                leaf.section, leaf.container = section, number
                self._counter.count_unreadable(leaf, label, "its header does not fit the container")
                break
            kind, _, header_size, payload_size, compressed_size, *others = fields
            sm, name_offset, name_size, flags, key, full_size = others[3:]
            entry_end = position + header_size + payload_size
            leaf = self._add_leaf(source, position, entry_end, file, UNREADABLE, unit)
            leaf.header = header_size
            leaf.header_download = source.download(position, position + header_size) or 0
            leaf.section, leaf.container, leaf.index = section, number, entry_index
            leaf.target = target_of(kind, sm, flags)
            if not unit:
                leaf.unit = (
                    _name_of_entry(source, position, header_size, name_offset, name_size)
                    or f"container {number}"
                )
            if not is_compressed(flags):
                compressed_size, full_size = payload_size, payload_size
            if kind == EntryKind.LTOIR and key:
                self._counter.count_whole(leaf, label, kind, flags, full_size)
            else:
                payload_range = source, position + header_size, compressed_size or payload_size
                self._counter.count(leaf, label, kind, flags, payload_range, full_size)
            leaves.append(leaf)
            position, entry_index = entry_end, entry_index + 1
        self._containers.append((leaves, section))


def _name_of_entry(source: Source, entry_offset: int, header: int, name: int, length: int) -> str:
    """Return the name of the source file in an entry's header; empty without a valid name.

    `header` is the size of the header; `name` and `length` are the offset and size of the name.
    """
    if not length or name < _LEAST_NAME_OFFSET or name > header or length > header - name:
        return ""
    text = source.read(entry_offset + name, length).rstrip(b"\0")
    return text.decode("utf-8", "surrogateescape").rpartition("/")[2]


def _is_cubin(head: bytes) -> bool:
    return head.startswith(ELF_MARK) and _machine_of(head) == EM_CUDA


def _machine_of(head: bytes) -> int:
    """Return e_machine of an ELF header."""
    return int.from_bytes(head[18:20], "little")


def _is_ptx(source: Source) -> bool:
    """Return whether a source looks like PTX text."""
    head = source.read(0, _PTX_HEAD)
    return head.lstrip()[:2] in (b"//", b".v") and b".version" in head and b".target" in head


def _may_have_code(head: bytes) -> bool:
    """Return whether a member with this head may have device code."""
    return head.startswith((ELF_MARK, FATBIN_MAGIC, MAGIC, b"//", b".version"))


def _ptx_target(head: bytes) -> str:
    """Return the target of PTX text, such as `compute_90`; empty if it states none."""
    words = head[head.find(b".target") :].split(None, 2)
    name = words[1].rstrip(b",").decode("ascii", "replace") if len(words) > 1 else ""
    return f"compute_{name[3:]}" if name.startswith("sm_") else ""
