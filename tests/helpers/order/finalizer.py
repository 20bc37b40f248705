"""The second program (docs/order.md) in the order reference: makes the file from sm_100 on."""

from __future__ import annotations

from collections import Counter

from helpers.order.lists import Lists, Section
from helpers.order.reader import final_name

MERCURY_CLASSES = ("debug", "info", "relocations", "constant", "init")


def finalize(
    lists: Lists, shstrtab: bytes, strtab: bytes, symbols: list[str]
) -> tuple[list[str], bytes, bytes, list[str]]:
    """Return the section names, both string tables and the symbol names of the final file."""
    written_sections = lists.in_file_order()
    renamed = Counter(
        s.name
        for s in lists.sections
        if s.has_name and not s.replaced and final_name(s.name) != s.name and s.name[:5] != ".rel."
    )
    cut: dict[str, str] = {}
    for name, times in renamed.items():
        shstrtab, cut[name] = _rename(shstrtab, name, times)
    names = [cut.get(s.name, final_name(s.name)) for s in written_sections]
    of_sections = {y.name for y in lists.locals if y.section is not None}
    symbols = [final_name(name) if name in of_sections else name for name in symbols]
    strtab += b"".join(
        final_name(y.name).encode() + b"\0"
        for y in lists.locals
        if y.section is not None
        and y.section.kind == "constant"
        and y.section.is_written
        and final_name(y.name) != y.name
    )
    code = [s for s in written_sections if s.kind == "text"]
    parameters = [name for section in code for name in _parameters(section)]
    mercury = _mercury_names(written_sections, code)
    shstrtab = _add(shstrtab, parameters) + b"".join(name.encode() + b"\0" for name in mercury)
    return (
        ["", *names, *parameters, *mercury],
        shstrtab,
        _add(strtab, parameters),
        symbols + parameters,
    )


def _rename(table: bytes, name: str, times: int) -> tuple[bytes, str]:
    """Rename a section in a string table; a name of two sections is renamed twice.

    Each time, the text after 23 letters of the bank's name moves to the final prefix.
    """
    new = final_name(name)
    for _ in range(times - 1 if ".optimizer." in name else 0):
        prefix = new[: new.index("2.") + 2]
        new = prefix + new[len(prefix) + 9 :]
    slot = b"\0%s\0" % name.encode()
    return table.replace(slot, (b"\0%s" % new.encode()).ljust(len(slot), b"\0")), new


def _parameters(code: Section) -> list[str]:
    """Return names of the sections of parameters that the second program makes for a function."""
    copy = code.owner.copy if code.owner is not None else None
    if copy is None:
        return []
    return [part.name for part in copy.file.parts if part.kind == "late" and part.owner is copy]


def _mercury_names(written_sections: list[Section], code: list[Section]) -> list[str]:
    """Return the names that the second program adds for mercury sections."""
    names = [f".nv.capmerc{section.name}" for section in code]
    for kind in MERCURY_CLASSES:
        names += [f".nv.merc{s.name}" for s in written_sections if s.kind == kind and _has_twin(s)]
    names += [f".nv.merc{s.name}" for s in written_sections if s.name == ".nv.shared.reserved.0"]
    return [*names, ".nv.merc.symtab"]


def _has_twin(section: Section) -> bool:
    """Return whether the final file has a mercury twin of a section."""
    if section.kind == "relocations":
        return section.has_entries or ".optimizer." in section.name
    return section.name != ".nv.compat"


def _add(table: bytes, names: list[str]) -> bytes:
    """Return the string table with the names that it lacks added at the end."""
    for name in names:
        if b"\0%s\0" % name.encode() not in table:
            table += name.encode() + b"\0"
    return table
