"""Checks the tables of directories and files of a DWARF 5 line program before they are read.

Each table has the format of its entries and then their number (DWARF 5, section 6.2.4.1). A damaged
table may state any number of entries without bytes, and pyelftools would create them all.
"""

from __future__ import annotations

from pylink.locate.inlining import read_uleb

# Forms of values (DW_FORM_): those of known size in bytes (data1, data2, data4, data8, data16),
# those of the size of an offset (strp, line_strp), and others.
_SIZES = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
_OFFSETS = (0x0E, 0x1F)
_STRING, _BLOCK, _UDATA = 0x08, 0x09, 0x0F


def check_tables(data: bytes, offset: int, *, is_wide: bool) -> None:
    """Check the tables of directories and files at `offset`; `is_wide` is for 64-bit DWARF.

    ValueError for entries without bytes or of an unknown form, or if a string has no end.
    IndexError if the tables are truncated elsewhere.
    """
    for _ in range(2):
        field_count, offset = data[offset], offset + 1
        forms = []
        for _ in range(field_count):
            _, offset = read_uleb(data, offset)  # the content type of the field
            form, offset = read_uleb(data, offset)
            forms.append(form)
        count, offset = read_uleb(data, offset)
        if count and not forms:
            raise ValueError(f"{count} entries of a table of files have no bytes")
        for _ in range(count):
            for form in forms:
                offset = _skip_value(data, offset, form, is_wide=is_wide)


def _skip_value(data: bytes, offset: int, form: int, *, is_wide: bool) -> int:
    """Return the offset after a value; IndexError or ValueError as in `check_tables`."""
    if form == _UDATA:
        _, offset = read_uleb(data, offset)
        return offset
    if form == _STRING:
        return data.index(b"\0", offset) + 1
    if form == _BLOCK:
        size, offset = read_uleb(data, offset)
    elif form in _OFFSETS:
        size = 8 if is_wide else 4
    elif form in _SIZES:
        size = _SIZES[form]
    else:
        raise ValueError(f"form {form:#x} in a table of files")
    if size > len(data) - offset:
        raise IndexError(offset)
    return offset + size
