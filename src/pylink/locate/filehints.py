"""What a file is, where a message says only that it cannot be linked."""

from __future__ import annotations

from struct import unpack_from

from pylink.diagnostics.record import note
from pylink.facts.records import SHDR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics.record import Diagnostic
    from pylink.options import Input

MACHINES = {
    3: "x86",
    21: "PowerPC",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    190: "CUDA",
    243: "RISC-V",
}
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

# Files that are looked at for what they have, and bytes of the beginning that tell a text.
MOST_FILES = 1000
_HEAD = 512

_ET_REL = 1
_NAME, _OFFSET, _SIZE = 0, 4, 5  # of a section header


def what_it_is(data: bytes) -> list[Diagnostic]:
    """A hint on what an input is instead of a cubin; none when that cannot be told."""
    found = _kind(data[:_HEAD])
    return [note("input-is", what=found)] if found else []


def _kind(head: bytes) -> str | None:
    if head[:4] == b"\x7fELF":
        if len(head) < 20:
            return "the beginning of an ELF file"
        (machine,) = unpack_from("<H", head, 18)
        name = MACHINES.get(machine)
        return f"an ELF file for machine {machine}" + (f", {name}" if name else "")
    for magic, name in KINDS:
        if head.startswith(magic):
            return name
    try:
        text = head.decode("utf-8", "strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        return None
    return "a text" if text.isprintable() or (all(map(_is_of_text, text)) and text) else None


def _is_of_text(character: str) -> bool:
    return character.isprintable() or character in "\t\n\r\f"


def not_relocatable(inputs: Sequence[Input]) -> list[Diagnostic]:
    """Hints on host objects with device code that nothing can be linked with."""
    kinds = ((one.name, _linked_already(one)) for one in inputs[:MOST_FILES])
    return [note(kind, file=name) for name, kind in kinds if kind is not None]


def _linked_already(one: Input) -> str | None:
    """The kind of hint on an object that has fat binaries, but none with relocatable code."""
    try:
        if one.data is not None:
            data = one.data
        else:
            with open(one.name, "rb") as stream:
                data = stream.read(_HEAD)
                if data[:4] == b"\x7fELF" and data[16:18] == _ET_REL.to_bytes(2, "little"):
                    data += stream.read()
        names = set(_section_names(data))
    except (OSError, ValueError, IndexError):
        return None
    if b".nv_fatbin" not in names or b"__nv_relfatbin" in names:
        return None
    return "linked-for-device" if b"\0def _" in data else "not-relocatable"


def _section_names(data: bytes) -> Iterator[bytes]:
    """The names of the sections of a relocatable ELF file, nothing of any other."""
    if len(data) < 64 or data[:4] != b"\x7fELF" or unpack_from("<H", data, 16)[0] != _ET_REL:
        return
    (start,) = unpack_from("<Q", data, 40)
    count, strings = unpack_from("<HH", data, 60)
    if start > len(data) or count > (len(data) - start) // SHDR.size or strings >= count:
        return
    headers = [SHDR.unpack_from(data, start + SHDR.size * number) for number in range(count)]
    names = data[headers[strings][_OFFSET] :][: headers[strings][_SIZE]]
    for header in headers:
        end = names.find(b"\0", header[_NAME])
        if end >= 0:
            yield names[header[_NAME] : end]
