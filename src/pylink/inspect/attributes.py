"""Records of .nv.info and .nv.compat, decoded.

A record is u8 format, u8 attribute, then 2 zero bytes (NVAL), a u8 and 0 (BVAL), a u16 (HVAL), or
the length and the bytes of a longer value (SVAL), padded to 4. Values were checked against what
the public `cuobjdump` prints for cubins of every kind.
"""

from __future__ import annotations

import struct

from pylink.facts import attributes as ei
from pylink.inspect.image import Image, MalformedCubin, Section
from pylink.inspect.rows import Record


def info_records(image: Image, section: Section) -> list[Record]:
    """The records of a .nv.info section."""
    # Only the file-wide section has the function of each size.
    of_file = section.name.endswith("nv.info")
    rows = []
    for form, number, small, payload in _split(image, section):
        name, fmt = ei.eiattr_name(number), ei.FORMATS[form]
        if payload is None:
            value, text = _small(form, small, version=number == ei.MERCURY_ISA_VERSION)
            rows.append(Record(name, number, fmt, value, text))
            continue
        numbers = [word[0] for word in struct.iter_unpack("<I", payload)]
        if of_file and number in ei.SYMBOL_PAIRS and len(numbers) == 2:
            symbol = image.symbol_name(numbers[0], section)
            text = f"{symbol} {numbers[1]:#x}"
            rows.append(Record(name, number, fmt, numbers[1], text, symbol))
            continue
        value, text = _words(image, section, number, numbers)
        rows.append(Record(name, number, fmt, value, text))
    return rows


def compat_records(image: Image, section: Section) -> list[Record]:
    """The records of .nv.compat."""
    rows = []
    for form, number, small, payload in _split(image, section):
        name, fmt = ei.eicompat_name(number), ei.FORMATS[form]
        value: object
        if payload is None:
            value, text = _small(form, small, version=number == ei.COMPAT_MERCURY_ISA_VERSION)
        else:
            value = [word[0] for word in struct.iter_unpack("<I", payload)]
            text = _hex(value)
        rows.append(Record(name, number, fmt, value, text))
    return rows


def _split(image: Image, section: Section) -> list[tuple[int, int, int, bytes | None]]:
    """Format, attribute, 16-bit value, and the bytes of a longer one (a multiple of 4)."""
    data, position, rows = image.content(section), 0, []
    while position < len(data):
        if len(data) - position < 4:
            raise MalformedCubin(
                f"{section.name}+{position:#x}: {len(data) - position} bytes are not a record"
            )
        form, number, small = struct.unpack_from("<BBH", data, position)
        if form not in ei.FORMATS:
            raise MalformedCubin(f"{section.name}+{position:#x}: no record format {form}")
        start = position + 4
        position = start
        payload = None
        if form == ei.SVAL:
            if small % 4 or small > len(data) - start:
                raise MalformedCubin(
                    f"{section.name}+{start - 4:#x}: record of {small:#x} bytes does not fit"
                )
            position = start + small
            payload = data[start:position]
        rows.append((form, number, small, payload))
    return rows


def _small(form: int, value: int, *, version: bool) -> tuple[object, str]:
    if form == ei.NVAL:
        # The value field should be unused, so it is shown only if it is not 0.
        return (value, f"{value:#x}") if value else (None, "")
    if version:
        return f"{value >> 8}.{value & 0xFF}", f"{value >> 8}.{value & 0xFF}"
    return value, f"{value:#x}"


def _words(image: Image, section: Section, number: int, numbers: list[int]) -> tuple[object, str]:
    if number == ei.EXTERNS:
        names = [image.symbol_name(word, section) for word in numbers]
        return names, " ".join(names)
    if number == ei.PARAM_CBANK and len(numbers) == 2:
        name, base, size = (
            image.symbol_name(numbers[0], section),
            numbers[1] & 0xFFFF,
            numbers[1] >> 16,
        )
        value = {"section": name, "offset": base, "size": size}
        return value, f"{name} offset {base:#x} size {size:#x}"
    if number == ei.KPARAM_INFO and len(numbers) == 3:
        return _parameter(*numbers)
    if len(numbers) == 1:
        return numbers[0], f"{numbers[0]:#x}"
    return numbers, _hex(numbers)


def _parameter(index: int, place: int, form: int) -> tuple[object, str]:
    """A kernel parameter: its value, and text, with rare fields only if they differ from usual."""
    ordinal, offset, size = place & 0xFFFF, place >> 16, form >> 18
    alignment, space, bank = form & 0xFF, form >> 8 & 0xF, form >> 12 & 0x1F
    value = {
        "index": index,
        "ordinal": ordinal,
        "offset": offset,
        "size": size,
        "pointee_log_alignment": alignment,
        "space": space,
        "cbank": bank,
        "in_shared": bool(form >> 17 & 1),
    }
    text = f"ordinal {ordinal} offset {offset:#x} size {size:#x}"
    rare = [("index", index, 0), ("log alignment", alignment, 0), ("space", space, 0)]
    rare += [("cbank", bank, 0x1F), ("in shared", form >> 17 & 1, 0)]
    return value, text + "".join(f" {name} {v:#x}" for name, v, usual in rare if v != usual)


def _hex(numbers: list[int]) -> str:
    return " ".join(f"{word:#x}" for word in numbers)
