"""Shared libraries of the host with relocatable device code: what they say, and what is linked.

A module of such code, one for each source file, has an id, which the library names in two symbols:

    __cudaRegisterLinkedBinary<ID>   called when the program starts; whoever links the code has it
    __fatbinwrap<ID>                 where the code is

An id is open if the library does not define the first: nobody has linked the code yet, and this
link does. It is closed if a link for the library itself did; its code is none of ours.
docs/shared-libraries.md has the rules, and tests/differential/test_shared_programs.py holds them.
"""

from __future__ import annotations

import os
from struct import Struct

from pylink._native import sharedlibs
from pylink.inputs.kinds import ELF_MAGIC, HOST
from pylink.inputs.sources import TOGETHER, Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from pylink.diagnostics import Sink
    from pylink.inputs.found import Found
    from pylink.inputs.sources import Source, Sources

# DynamicRow of sharedlibs.pyx, its numbers, and the states of a file.
ROW = Struct("<2I3Q")
OPEN, CLOSED, WRAPPER, ANCHOR = 1, 2, 3, 4
NO_CODE, HAS_CODE = 0, 1
DAMAGE = {
    2: "its dynamic symbols lie outside the file",
    3: "the name of a dynamic symbol lies outside the string table",
}

# What `__nv_module_id` has besides ids of modules: one word for each that is no relocatable code,
# and what the registration functions of a device link put there.
NOT_RELOCATABLE = b"__NV_MODULE_ID"
DEFINED = b"def "

_E_SHOFF = slice(40, 48)
_HEADER_SIZE = 64


def read_library(
    data: bytes | mmap, offset: int, size: int, name: str, sink: Sink
) -> Library | None:
    """What the library says, None without relocatable device code; damage is reported."""
    state, rows, has_runtime = sharedlibs.find_symbols(data, offset, size)
    if state == NO_CODE:
        return None
    if state in DAMAGE:
        sink.report("host-format", file=name, reason=DAMAGE[state])
        return None
    library = Library(name)
    library.has_runtime = has_runtime
    for what, interposable, start, length, _ in ROW.iter_unpack(rows):
        text = data[offset + start : offset + start + length]
        if what == OPEN:
            library.open[text] = None
        elif what == CLOSED:
            library.closed[text] = None
            if interposable:
                library.interposable.add(text)
        elif what == WRAPPER:
            library.wrappers.add(text)
        else:
            library.anchor = text
    return library


def probe(path: str, sink: Sink) -> tuple[Library | None, bytes]:
    """What the library in a file says, and its header; (None, b"") for any other file.

    Looks at no more of the file than it needs. The header says that there are no sections.
    """
    import mmap  # noqa: PLC0415 -- few links have libraries

    try:
        with (
            open(path, "rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            library = read_library(data, 0, len(data), path, sink)
            header = bytearray(data[:_HEADER_SIZE])
    except (OSError, ValueError):  # gone, a directory, empty
        return None, b""
    header[_E_SHOFF] = bytes(8)
    return library, bytes(header)


class Libraries:
    """The shared libraries of a link that have device code.

    `found` has them in the order of the inputs, also those that the link takes nothing of.
    `anchors` has the ids that are linked though no other file sees their wrapper, each with a
    symbol of its library.
    """

    __slots__ = ("anchors", "found")

    def __init__(self) -> None:
        self.found: list[Library] = []
        self.anchors: dict[str, str] = {}

    def take(self, source: Source, library: Library | None, sink: Sink) -> Library | None:
        """What is known of a shared library, or is read now; None if the link needs none of it."""
        if library is None and source.arena.startswith(ELF_MAGIC, source.offset):
            library = read_library(source.arena, source.offset, source.size, source.name, sink)
        if library is None:
            return None
        self.found.append(library)
        return library if library.open else None

    def choose(self, sources: Sources, found: Found, sink: Sink) -> dict[int, set[int]]:
        """Which containers of each library are linked, by number; sets what `found` says of it.

        An open module is, unless an object or archive has it as well, or another library of the
        link defines its registration: each is registered once. The first of two equal ones counts.
        """
        static = static_ids(sources, found)
        registered = set(static)
        self._warn_of_losses(static, sink)
        owned = {one for library in self.found for one in library.closed}
        linked: dict[int, set[int]] = {}
        for source, library in sources.libraries.items():
            ids = module_ids(found.ids(source))
            containers = found.containers(source)
            if len(ids) != containers:
                sink.report(
                    "library-ids", file=sources.names[source], ids=len(ids), containers=containers
                )
            library.modules = len(ids)
            chosen = {
                one: number
                for number, one in enumerate(ids)
                if one in library.open and one not in registered and one not in owned
            }
            registered |= set(chosen)
            found.restrict(source, list(chosen))
            linked[source] = set(chosen.values())
            if chosen:
                self._check(library, list(chosen), sink)
        return linked

    def _check(self, library: Library, ids: list[bytes], sink: Sink) -> None:
        """What the program of these modules of a library needs of it."""
        if library.has_runtime:
            sink.report("library-runtime", file=library.file)
        for one in ids:
            if one in library.wrappers:
                continue
            if library.anchor is None:
                sink.report("library-hidden", file=library.file, id=os.fsdecode(one))
            self.anchors[os.fsdecode(one)] = os.fsdecode(library.anchor or b"")

    def _warn_of_losses(self, static: dict[bytes, str | None], sink: Sink) -> None:
        """Modules that are registered twice: the kernels of one image are lost at run time.

        `static` is as `static_ids` has it.
        """
        first: dict[bytes, str] = {}
        for library in self.found:
            both = [one for one in library.interposable if one in static]
            if both and not set(static).issuperset(library.closed):
                sink.report("library-part", file=library.file, id=os.fsdecode(min(both)))
            again = [one for one in library.interposable if one in first]
            if again:
                one = min(again)
                sink.report(
                    "library-twice", file=library.file, other=first[one], id=os.fsdecode(one)
                )
            first.update((one, library.file) for one in library.interposable - set(first))
            twin = next(
                (name for one, name in static.items() if name and one in library.open), None
            )
            if twin is not None:
                sink.report("library-twin", file=library.file, other=twin)


def static_ids(sources: Sources, found: Found) -> dict[bytes, str | None]:
    """The modules that the program registers of objects, with their names, and of archives.

    The host program has all of an object, and of an archive what the library does not have.
    """
    ids: dict[bytes, str | None] = {}
    for number, kind in enumerate(sources.kinds):
        if kind == HOST and sources.demands[number] != TOGETHER and found.containers(number):
            name = None if sources.group(number) else sources.names[number]
            for one in module_ids(found.ids(number)):
                ids[one] = ids.get(one) or name
    return ids


def module_ids(ids: list[bytes] | None) -> list[bytes]:
    """Those of relocatable code."""
    return [one for one in ids or () if one != NOT_RELOCATABLE and not one.startswith(DEFINED)]
