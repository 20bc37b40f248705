"""Records of .nv.info and .nv.compat, decoded.

A record is u8 format, u8 attribute, then 2 zero bytes (NVAL), a u8 and 0 (BVAL), a u16 (HVAL), or
the length and the bytes of a longer value (SVAL), padded to 4. Values were checked against what
the public `cuobjdump` prints for cubins of every kind.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pylink.facts import attributes as facts
from pylink.inspect.image import Image, MalformedCubin, Section
from pylink.inspect.rows import Record


class RawRecord(NamedTuple):
    """A record before its value is decoded: `form` is one of NVAL to SVAL, `number` its attribute.

    `small` is the 16-bit value, which for SVAL is the size of `payload` in bytes. `payload` has the
    bytes of a longer value, a multiple of 4; None for other formats.
    """

    form: int
    number: int
    small: int
    payload: bytes | None


def info_records(image: Image, section: Section) -> list[Record]:
    """Return the records of a .nv.info section."""
    # In the section of the whole file, a record on the size of a function is a symbol and a number.
    is_of_file = section.name.endswith("nv.info")
    rows = []
    for form, number, small, payload in _read_records(image, section):
        name, format_name = facts.eiattr_name(number), facts.FORMATS[form]
        if payload is None:
            is_version = number == facts.MERCURY_ISA_VERSION
            value, text = _decode_short(form, small, is_version=is_version)
            rows.append(Record(name, number, format_name, value, text))
            continue
        numbers = [word[0] for word in struct.iter_unpack("<I", payload)]
        if is_of_file and number in facts.SYMBOL_PAIRS and len(numbers) == 2:
            symbol = image.symbol_name(numbers[0], section)
            text = f"{symbol} {numbers[1]:#x}"
            rows.append(Record(name, number, format_name, numbers[1], text, symbol))
            continue
        value, text = _decode_words(image, section, number, numbers)
        rows.append(Record(name, number, format_name, value, text))
    return rows


def compat_records(image: Image, section: Section) -> list[Record]:
    """Return the records of .nv.compat."""
    rows = []
    for form, number, small, payload in _read_records(image, section):
        name, format_name = facts.eicompat_name(number), facts.FORMATS[form]
        value: object
        if payload is None:
            is_version = number == facts.COMPAT_MERCURY_ISA_VERSION
            value, text = _decode_short(form, small, is_version=is_version)
        else:
            value = [word[0] for word in struct.iter_unpack("<I", payload)]
            text = _hex_words(value)
        rows.append(Record(name, number, format_name, value, text))
    return rows


def _read_records(image: Image, section: Section) -> list[RawRecord]:
    """Return the records of a section; MalformedCubin if its bytes are not records."""
    data, position, rows = image.content(section), 0, []
    while position < len(data):
        if len(data) - position < 4:
            raise MalformedCubin(
                f"{section.name}+{position:#x}: {len(data) - position} bytes are not a record"
            )
        form, number, small = struct.unpack_from("<BBH", data, position)
        if form not in facts.FORMATS:
            raise MalformedCubin(f"{section.name}+{position:#x}: no record format {form}")
        start = position + 4
        position = start
        payload = None
        if form == facts.SVAL:
            if small % 4 or small > len(data) - start:
                raise MalformedCubin(
                    f"{section.name}+{start - 4:#x}: record of {small:#x} bytes does not fit"
                )
            position = start + small
            payload = data[start:position]
        rows.append(RawRecord(form, number, small, payload))
    return rows


def _decode_short(form: int, value: int, *, is_version: bool) -> tuple[object, str]:
    """Return the value of a record without payload, for JSON and as text; None, "" for no value."""
    if form == facts.NVAL:
        # The value field should be unused, so it is shown only if it is not 0.
        return (value, f"{value:#x}") if value else (None, "")
    if is_version:  # major and minor, 8 bits each
        return f"{value >> 8}.{value & 0xFF}", f"{value >> 8}.{value & 0xFF}"
    return value, f"{value:#x}"


def _decode_words(
    image: Image, section: Section, number: int, numbers: list[int]
) -> tuple[object, str]:
    """Return the value of a record of 32-bit words, for JSON and as text.

    `number` is its attribute.
    """
    if number == facts.EXTERNS:
        names = [image.symbol_name(word, section) for word in numbers]
        return names, " ".join(names)
    if number == facts.PARAM_CBANK and len(numbers) == 2:
        name, offset, size = (
            image.symbol_name(numbers[0], section),
            numbers[1] & 0xFFFF,
            numbers[1] >> 16,
        )
        value = {"section": name, "offset": offset, "size": size}
        return value, f"{name} offset {offset:#x} size {size:#x}"
    if number == facts.KPARAM_INFO and len(numbers) == 3:
        return _decode_parameter(*numbers)
    if len(numbers) == 1:
        return numbers[0], f"{numbers[0]:#x}"
    return numbers, _hex_words(numbers)


def _decode_parameter(index: int, place: int, properties: int) -> tuple[object, str]:
    """Return a kernel parameter, for JSON and as text; the text omits fields with usual values.

    The arguments are the words of the record. `place` has ordinal and offset, 16 bits each.
    `properties` has, from bit 0 on: alignment (8 bits), space (4), bank (5), one bit for a
    parameter in shared memory, and the size.
    """
    ordinal, offset, size = place & 0xFFFF, place >> 16, properties >> 18
    alignment, space = properties & 0xFF, properties >> 8 & 0xF
    bank, in_shared = properties >> 12 & 0x1F, properties >> 17 & 1
    value = {
        "index": index,
        "ordinal": ordinal,
        "offset": offset,
        "size": size,
        "pointee_log_alignment": alignment,
        "space": space,
        "cbank": bank,
        "in_shared": bool(in_shared),
    }
    text = f"ordinal {ordinal} offset {offset:#x} size {size:#x}"
    rare = [("index", index, 0), ("log alignment", alignment, 0), ("space", space, 0)]
    rare += [("cbank", bank, 0x1F), ("in shared", in_shared, 0)]
    return value, text + "".join(
        f" {name} {number:#x}" for name, number, usual in rare if number != usual
    )


def _hex_words(numbers: list[int]) -> str:
    return " ".join(f"{word:#x}" for word in numbers)
