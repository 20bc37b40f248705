"""A naive reference of the bytes of a cubin by function and part, from docs/size-rules.md."""

from __future__ import annotations

import struct
from collections import Counter

SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
# Types of sections without bytes in the file.
EMPTY = {0, 8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015}
SHARED = ""  # the function of bytes that belong to none

# The part of a section, by the first prefix that its name has.
PREFIXES = [
    (".text", "code"),
    (".nv.constant", "constants"),
    (".nv.capmerc", "mercury code"),
    (".nv.merc.debug", "debug"),
    (".nv.merc.nv_debug", "debug"),
    (".nv.merc.", "mercury rest"),
    (".debug", "debug"),
    (".nv_debug", "debug"),
    (".rel", "relocations"),
    (".nv.rel.action", "relocations"),
    (".symtab", "names, symbols"),
    (".strtab", "names, symbols"),
    (".shstrtab", "names, symbols"),
    (".nv.info", "attributes"),
    (".note", "attributes"),
    (".nv.compat", "attributes"),
    (".nv.callgraph", "attributes"),
    (".nv.prototype", "attributes"),
]


def cubin_bytes(data: bytes) -> Counter[tuple[str, str]]:
    """Return the number of bytes of each (function, part)."""
    table, count, strings = (
        struct.unpack_from("<Q", data, 40)[0],
        struct.unpack_from("<H", data, 60)[0],
        struct.unpack_from("<H", data, 62)[0],
    )
    rows = [SHDR.unpack_from(data, table + 64 * i) for i in range(count)]
    names = [text(data, rows[strings][4] + row[0]) for row in rows]
    functions = [name[6:] for name in names if name.startswith(".text.") and name != ".text."]
    owners = [owner(i, names, rows, functions) for i in range(count)]
    labels: list[tuple[str, str] | None] = [None] * len(data)
    headers = [(0, 64), (table, 64 * count)]
    segments, width, number = (
        struct.unpack_from("<Q", data, 32)[0],
        *struct.unpack_from("<HH", data, 54),
    )
    headers.append((segments, width * number))
    pieces = [(at, 0, size, (SHARED, "headers"), -1) for at, size in headers if size]
    for i, row in enumerate(rows):
        if row[1] not in EMPTY and row[5]:
            pieces.append((row[4], i + 1, row[5], (owners[i], part(names[i], row[2])), i))
    for at, _, size, label, i in sorted(pieces):
        own_labels = label_names(data, rows, names, owners, functions, strings, i) if i >= 0 else {}
        for byte in range(at, at + size):
            if labels[byte] is None:
                labels[byte] = own_labels.get(byte, label)
    return Counter(label or (SHARED, "padding") for label in labels)


def text(data: bytes, at: int) -> str:
    """Return the string at an offset."""
    return data[at : data.index(b"\0", at)].decode("latin-1")


def owner(i: int, names: list[str], rows: list[tuple[int, ...]], functions: list[str]) -> str:
    """Return the function to which section `i` belongs; SHARED if it belongs to none."""
    fits = [name for name in functions if names[i].endswith(f".{name}")]
    if fits:
        return max(fits, key=len)
    info = rows[i][7]
    if rows[i][1] not in (2, 3) and 0 < info < len(rows) and names[info].startswith(".text."):
        return names[info][6:]
    return SHARED


def part(name: str, flags: int) -> str:
    """Return the part of the file to which a section belongs."""
    for prefix, word in PREFIXES:
        if name.startswith(prefix):
            return word
    return "data" if flags & 2 else "other"


def label_names(
    data: bytes,
    rows: list[tuple[int, ...]],
    names: list[str],
    owners: list[str],
    functions: list[str],
    strings: int,
    i: int,
) -> dict[int, tuple[str, str]]:
    """Return the function and part of each byte of section `i`, by offset in the file.

    Empty unless the section is a symbol or string table. `strings` is the number of .shstrtab.
    """
    word = "names, symbols"
    labels: dict[int, tuple[str, str]] = {}
    tables = [row for row in rows if row[1] == 2]
    if tables:
        _, _, _, _, at, size, link, *_ = tables[0]
        for n in range(size // 24):
            name, info, _, index, _, _ = SYM.unpack_from(data, at + 24 * n)
            full = text(data, rows[link][4] + name)
            function = SHARED
            if info & 15 == 2 and full in functions:
                function = full
            elif 0 < index < len(rows):
                function = owners[index]
            if rows[i] is tables[0]:
                labels |= dict.fromkeys(range(at + 24 * n, at + 24 * n + 24), (function, word))
            if i == link:
                paint(data, labels, rows[link][4] + name, (function, word))
    if i == strings:
        for n, row in enumerate(rows):
            paint(data, labels, rows[strings][4] + row[0], (owners[n], word))
    if rows[i][1] in (2, 3):
        at, size = rows[i][4], rows[i][5]
        return dict.fromkeys(range(at, at + size), (SHARED, word)) | labels
    return labels


def paint(data: bytes, labels: dict[int, tuple[str, str]], at: int, label: tuple[str, str]) -> None:
    """Label the bytes of a string and the zero after it, except those that have a label."""
    for byte in range(at, data.index(b"\0", at) + 1):
        labels.setdefault(byte, label)
