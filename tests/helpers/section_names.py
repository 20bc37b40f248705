"""Cubins with other section names than a compiler gives, for tests of hostile inputs."""

from __future__ import annotations

from collections.abc import Iterator

from helpers.cubin_builder import EHDR, SHDR

SHN_XINDEX = 0xFFFF
SHSTRNDX, SHNUM, SHOFF = 13, 12, 6  # fields of the ELF header, by position


def section_rows(image: bytes) -> tuple[list[list[int]], list[bytes]]:
    """Return the section headers of a file and the names of the sections."""
    header = EHDR.unpack_from(image)
    rows = [
        list(SHDR.unpack_from(image, header[SHOFF] + i * SHDR.size)) for i in range(header[SHNUM])
    ]
    start = rows[header[SHSTRNDX]][4]
    return rows, [image[start + row[0] : image.index(b"\0", start + row[0])] for row in rows]


def with_names(image: bytes, names: list[bytes]) -> bytes:
    """Return the file with other section names, each with its string in a new table at the end."""
    header = EHDR.unpack_from(image)
    rows, _ = section_rows(image)
    changed = bytearray(image)
    changed += bytes(-len(changed) % 16)
    strings = bytearray(b"\0")
    for row, name in zip(rows, names, strict=True):
        row[0] = len(strings) if name else 0
        strings += name + b"\0" if name else b""
    rows[header[SHSTRNDX]][4:6] = [len(changed), len(strings)]
    for i, row in enumerate(rows):
        SHDR.pack_into(changed, header[SHOFF] + i * SHDR.size, *row)
    return bytes(changed + strings)


def with_section(image: bytes, section: int, **fields: int) -> bytes:
    """Return the file with `type`, `flags`, `link` or `info` of a section changed."""
    at = EHDR.unpack_from(image)[SHOFF] + section * SHDR.size
    row = list(SHDR.unpack_from(image, at))
    for name, value in fields.items():
        row[{"type": 1, "flags": 2, "link": 6, "info": 7}[name]] = value
    changed = bytearray(image)
    SHDR.pack_into(changed, at, *row)
    return bytes(changed)


def with_numbers_in_first_header(
    image: bytes, *, count: int | None = None, names: int | None = None
) -> bytes:
    """Return the file as if it had too many sections for the fields of the ELF header.

    The number of sections, and the number of the section with their names, are then in the first
    section header. `count` and `names` replace them.
    """
    header = list(EHDR.unpack_from(image))
    row = list(SHDR.unpack_from(image, header[SHOFF]))
    row[5] = header[SHNUM] if count is None else count
    row[6] = header[SHSTRNDX] if names is None else names
    header[SHNUM], header[SHSTRNDX] = 0, SHN_XINDEX
    changed = bytearray(image)
    EHDR.pack_into(changed, 0, *header)
    SHDR.pack_into(changed, header[SHOFF], *row)
    return bytes(changed)


def flipped(name: bytes) -> Iterator[bytes]:
    """Yield names with one bit flipped: in the first word, after that, and in the last letter."""
    for at in sorted({1, min(6, len(name) - 1), len(name) - 1}):
        yield name[:at] + bytes([name[at] ^ 1]) + name[at + 1 :]


def renamed(image: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield files in which one section, of each type and set of flags, has another name.

    Yields the section's name, the new name, and the file.
    """
    rows, names = section_rows(image)
    seen = set()
    for i, name in enumerate(names):
        kind = (rows[i][1], rows[i][2], name.partition(b"_")[0])
        if not name or kind in seen:
            continue
        seen.add(kind)
        for other in flipped(name):
            changed = [*names[:i], other, *names[i + 1 :]]
            yield name.decode(), other, with_names(image, changed)
