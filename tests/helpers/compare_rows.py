"""Section contents as lines of text, so that a comparison can name the record that differs."""

from __future__ import annotations

import struct
from collections.abc import Callable

from helpers.compare_image import Image, Section
from helpers.compare_names import EIATTR, RELOCATIONS

Reader = Callable[[Image, Section], list[str]]


def rows_reader(name: str) -> Reader | None:
    """The reader for a section of this name, or None when its bytes are compared as they are."""
    if name in (".symtab", ".nv.merc.symtab"):
        return _symbols
    if name in (".strtab", ".shstrtab"):
        return _strings
    if name.startswith((".rela", ".nv.merc.rela", ".nv.resolvedrela")):
        return _rela
    if name.startswith(".rel."):
        return _rel
    if name.startswith((".nv.info", ".nv.merc.nv.info")):
        return _nvinfo
    if name in (".nv.callgraph", ".nv.prototype"):
        return _pairs_of_symbols
    if name == ".nv.compat":
        return _compat
    return None


def _symbols(image: Image, section: Section) -> list[str]:
    rows = []
    for i, entry in enumerate(struct.iter_unpack("<IBBHQQ", image.content(section))):
        name, info, other, shndx, value, size = entry
        rows.append(
            f"{image.symbol_name(i, section)} name={name:#x} bind={info >> 4} type={info & 15}"
            f" other={other:#x} in {image.section_name(shndx)} value={value:#x} size={size:#x}"
        )
    return rows


def _strings(image: Image, section: Section) -> list[str]:
    return image.content(section).decode("latin-1").split("\0")


def _rela(image: Image, section: Section) -> list[str]:
    rows = []
    for offset, info, addend in struct.iter_unpack("<QQq", image.content(section)):
        kind, symbol = info & 0xFFFFFFFF, info >> 32
        label = f"{kind:#x}" if kind >= 0x10000 else f"{RELOCATIONS.get(kind, '?')}({kind})"
        rows.append(f"{offset:#x} {label} {image.symbol_name(symbol, section)}+{addend:#x}")
    return rows


def _rel(image: Image, section: Section) -> list[str]:
    rows = []
    for offset, info in struct.iter_unpack("<QQ", image.content(section)):
        kind, symbol = info & 0xFFFFFFFF, info >> 32
        name = image.symbol_name(symbol, section)
        rows.append(f"{offset:#x} {RELOCATIONS.get(kind, '?')}({kind}) {name}")
    return rows


def _nvinfo(image: Image, section: Section) -> list[str]:
    data, at, rows = image.content(section), 0, []
    while at < len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        text = f"{value:#x}"
        if form == 4:
            payload = data[at : at + value]
            at += value
            text = payload.hex(" ", 4)
            per_symbol = attribute in (0x11, 0x12, 0x23, 0x2F, 0x1E)
            if per_symbol and section.name.endswith("nv.info") and len(payload) == 8:
                symbol, number = struct.unpack("<II", payload)
                text = f"{image.symbol_name(symbol, section)} {number:#x}"
            elif attribute == 0x0F and len(payload) % 4 == 0:
                symbols = [row[0] for row in struct.iter_unpack("<I", payload)]
                text = " ".join(image.symbol_name(symbol, section) for symbol in symbols)
        rows.append(f"{EIATTR.get(attribute, '?')}({attribute:#x}) {text}")
    return rows


def _pairs_of_symbols(image: Image, section: Section) -> list[str]:
    rows = []
    for caller, callee in struct.iter_unpack("<Ii", image.content(section)):
        name = image.symbol_name(caller, section) if caller else "0"
        prototype = section.name == ".nv.prototype"
        strtab = image.section(".strtab")
        if prototype and strtab:
            rows.append(f"{name} {image.string(strtab.offset + callee)!r}")
        else:
            rows.append(
                f"{name} -> {callee if callee <= 0 else image.symbol_name(callee, section)}"
            )
    return rows


def _compat(image: Image, section: Section) -> list[str]:
    data = image.content(section)
    return [data[i : i + 4].hex(" ") for i in range(0, len(data), 4)]
