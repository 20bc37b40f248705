"""Hints on the kind of a file that cannot be linked."""

from __future__ import annotations

import re
from itertools import islice
from struct import unpack_from

from pylink._native.elfheaders import read_sections
from pylink.diagnostics.record import note
from pylink.facts.elf import E_SHOFF, ET_DYN, ET_REL, MACHINE_TITLES
from pylink.facts.fatbinentries import LINKED_SECTION, RELOCATABLE_SECTION
from pylink.facts.inputkinds import UNKNOWN
from pylink.inputs.archiveformat import is_thin, read_archive
from pylink.inputs.archivethin import member_file
from pylink.inputs.kinds import ELF_MAGIC, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylink.diagnostics.record import Diagnostic
    from pylink.options.model import Input


KINDS = (
    (b"!<arch>", "an archive"),
    (b"!<thin>", "a thin archive"),
    (b"\x50\xed\x55\xba", "a fat binary"),
    (b"MZ", "a program or object for Windows"),
    (b"\xcf\xfa\xed\xfe", "an object for macOS"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\x1f\x8b", "a file that gzip compressed"),
    (b"\x28\xb5\x2f\xfd", "a file that Zstandard compressed"),
    (b"PK\x03\x04", "a zip file"),
)

# Texts that take the place of another file, by patterns of their beginnings.
TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"version https://git-lfs", "a pointer of Git LFS (run 'git lfs pull' to get the file)"),
        (r"\s*<(?:!doctype )?html", "an HTML page, which a download may have ended at"),
        (r"(?s:.*)(?:__global__|__device__|#include)", "source code (compile it with nvcc -dc)"),
        (
            r"/\* GNU ld script|(?:(?s:.*)\s)?(?:GROUP|INPUT|OUTPUT_FORMAT)\s*\(",
            "a linker script of the host",
        ),
    )
)

# Kinds of those hints of `find_hidden_code` that say that no device code can be read from a file.
WITHOUT_CODE = ("hidden-by-lto", "not-an-object")

_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")
_LINKED, _RELOCATABLE = LINKED_SECTION.encode(), RELOCATABLE_SECTION.encode()

# Limit of files that are searched for hidden code, and bytes of a file that tell its kind.
MOST_FILES = 1000
_HEAD_SIZE = 512


def file_kind_hints(data: bytes) -> list[Diagnostic]:
    """Return a hint on the kind of an input that is not a cubin; empty if unknown."""
    kind = _describe_kind(data[:_HEAD_SIZE])
    return [note("input-is", format=kind)] if kind else []


def _describe_kind(head: bytes) -> str | None:
    """Return words for the kind of a file with this head; None if unknown."""
    if head.startswith(ELF_MAGIC):
        if len(head) < 20:
            return "the beginning of an ELF file"
        (machine,) = unpack_from("<H", head, 18)
        name = MACHINE_TITLES.get(machine)
        return f"an ELF file for machine {machine}" + (f", {name}" if name else "")
    for magic, name in KINDS:
        if head.startswith(magic):
            return name
    try:
        text = head.decode("utf-8", "strict" if len(head) < _HEAD_SIZE else "ignore")
    except UnicodeDecodeError:
        return None
    if not text or not all(map(_is_in_texts, text)):
        return None
    return next((name for pattern, name in TEXTS if pattern.match(text)), "a text")


def machine_name(machine: int) -> str:
    """Return the common name of an ELF machine."""
    return MACHINE_TITLES.get(machine, f"machine {machine}")


def _is_in_texts(character: str) -> bool:
    """Return whether texts contain such a character: no control character except for blanks."""
    return character.isprintable() or character in "\t\n\r\f"


def find_hidden_code(sources: Iterable[Input]) -> list[Diagnostic]:
    """Return hints on files that contribute nothing to a link but have device code, or should have.

    Members of archives are searched, too, but not members of nested archives.
    """
    files = islice((file for source in sources for file in _read_objects(source)), MOST_FILES)
    return [hint for name, data in files if (hint := _why_hidden(name, data)) is not None]


def _read_objects(source: Input) -> Iterator[tuple[str, bytes]]:
    """Yield name and contents of an input, or of each member of an archive."""
    try:
        data = source.data if source.data is not None else _read_start(source.name)
        if not data.startswith(_ARCHIVES):
            yield source.name, data
            return
        thin = is_thin(data, 0, len(data))
        for entry in read_archive(data, 0, len(data)):
            if thin:
                contents = _read_start(member_file(entry.name, source.name))
            else:
                contents = data[entry.offset : entry.offset + entry.size]
            yield f"{source.name}:{entry.name}", contents
    except (OSError, ValueError):
        return


def _read_start(name: str) -> bytes:
    """Return a file's bytes; only the head if it is neither an object nor an archive."""
    with open(name, "rb") as stream:
        data = stream.read(_HEAD_SIZE)
        if data.startswith(_ARCHIVES) or (
            data.startswith(ELF_MAGIC) and data[16:18] == ET_REL.to_bytes(2, "little")
        ):
            data += stream.read()
    return data


def _is_hidden(names: Collection[bytes]) -> bool:
    """Return whether an object with these sections has its device code only in GCC's bytecode."""
    if _LINKED in names or _RELOCATABLE in names:
        return False
    return any(name.startswith(b".gnu.lto_") and b"fatbin" in name for name in names)


def _why_hidden(name: str, data: bytes) -> Diagnostic | None:
    """Return a hint on a file whose device code a link cannot use; None for other files.

    These are objects whose fat binaries are not relocatable or are in GCC's bytecode, files that
    are not objects, and shared libraries without section headers.
    """
    if not data.startswith(ELF_MAGIC):
        kind_name = (
            _describe_kind(data[:_HEAD_SIZE]) if kind_of(data[:_HEAD_SIZE]) == UNKNOWN else None
        )
        return note("not-an-object", file=name, format=kind_name) if kind_name is not None else None
    if data.startswith(ELF_MAGIC + b"\2") and data[16:18] == ET_DYN.to_bytes(2, "little"):
        return None if any(data[E_SHOFF]) else note("library-bare", file=name)
    try:
        file = read_sections(data)
    except ValueError:
        return None
    names = {section.name for section in file.sections} if file.type == ET_REL else set()
    if _is_hidden(names):
        return note("hidden-by-lto", file=name)
    if _LINKED not in names or _RELOCATABLE in names:
        return None
    return note("linked-for-device" if b"\0def _" in data else "not-relocatable", file=name)
