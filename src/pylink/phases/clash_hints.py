"""Part of merge: notes that say how two files disagree on a symbol."""

from __future__ import annotations

import re

from pylink.diagnostics.record import note
from pylink.facts.elf import STO_ENTRY, STO_MANAGED, STO_SPACE, STT_FUNC
from pylink.tables import section_name, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic
    from pylink.phases.results import Merged, Objects

# The memory space of an undefined variable, by the bits STO_SPACE of its st_other.
_SPACES = {0x20: "global", 0x40: "shared", 0x80: "constant"}

# A name that the compiler made unique with a number.
_NUMBERED = re.compile(r"\$\d+$")


def clash_hints(merged: Merged, kind: str, symbol: int, first: int) -> tuple[list[Diagnostic], int]:
    """Return notes on a clash of two symbol rows, and the symbol row of the earlier declaration.

    `kind` is the kind of the diagnostic, such as "size-mismatch". `first` is the symbol row that
    was read first; it is also the returned one, except for prototypes.
    """
    objects = merged.objects
    if kind == "prototype-mismatch":
        return _note_prototypes(merged, symbol, first)
    if kind == "size-mismatch":
        size, other = (objects.symbols[row].size for row in (symbol, first))
        file, earlier = _files(objects, symbol, first)
        hints = [note("sizes-differ", size=size, file=file, other=other, first=earlier)]
        if _NUMBERED.search(symbol_name(objects, symbol)):
            hints.append(note("numbered-name", symbol=symbol_name(objects, symbol)))
        return hints, first
    if kind == "multiple-definition":
        return [_note_duplicate(objects, symbol, first)], first
    describe = {
        "not-global": _describe_use,
        "space-mismatch": _describe_space,
        "managed-mismatch": _describe_managed,
    }.get(kind)
    if describe is None:
        return [], first
    own_use, other_use = (describe(objects, row) for row in (symbol, first))
    if own_use == other_use:
        return [], first
    file, earlier = _files(objects, symbol, first)
    return [note("kernel-or-not", use=own_use, file=file, other=other_use, first=earlier)], first


def _note_duplicate(objects: Objects, symbol: int, first: int) -> Diagnostic:
    """Return a note on two definitions.

    They are in different files, in one file that is linked twice, or in two equal files.
    """
    file, earlier = _files(objects, symbol, first)
    rows = (objects.files[objects.symbols[row].file] for row in (symbol, first))
    contents, other_contents = (objects.arena[row.offset : row.offset + row.size] for row in rows)
    if contents != other_contents:
        return note("defined-twice", symbol=symbol_name(objects, symbol))
    if file == earlier:
        return note("linked-twice", file=file)
    return note("same-contents", file=file, first=earlier)


def _files(objects: Objects, symbol: int, first: int) -> tuple[str, str]:
    """Return the names of the files of two symbol rows."""
    return (objects.names[objects.symbols[symbol].file], objects.names[objects.symbols[first].file])


def _describe_use(objects: Objects, row: int) -> str:
    """Return words for a function, by its symbol row: a kernel, or one to be called."""
    is_kernel = objects.symbols[row].other & STO_ENTRY
    return "a kernel" if is_kernel else "a function to be called"


def _describe_managed(objects: Objects, row: int) -> str:
    """Return words for a variable, by its symbol row: managed or not."""
    is_managed = objects.symbols[row].other & STO_MANAGED
    return "a managed variable" if is_managed else "a variable that is not managed"


def _describe_space(objects: Objects, row: int) -> str:
    """Return words for a symbol row: a function, or a variable with its memory space."""
    symbol = objects.symbols[row]
    if symbol.info & 15 == STT_FUNC:
        return "a function"
    name = section_name(objects, symbol.section) if symbol.section >= 0 else ""
    for prefix, space in ((".nv.constant", "constant"), (".nv.shared", "shared")):
        if name.startswith(prefix):
            return f"a variable of {space} memory"
    space = "global" if name else _SPACES.get(symbol.other & STO_SPACE, "global")
    return f"a variable of {space} memory"


def _note_prototypes(merged: Merged, symbol: int, first: int) -> tuple[list[Diagnostic], int]:
    """Return notes on different prototypes, and the row of the earlier one.

    No notes, and `first`, if one of the prototypes cannot be found in the files. nvlink's message
    only names the file with the definition, maybe twice.
    """
    from pylink.locate.prototypes import earlier_prototype, prototype_of

    earlier_line = earlier_prototype(merged, symbol)
    prototype = prototype_of(merged, symbol)
    if earlier_line is None or prototype is None:
        return [], first
    row, other = earlier_line
    file, earlier = _files(merged.objects, symbol, row)
    return [
        note("prototypes-differ", prototype=prototype, file=file, other=other, first=earlier)
    ], row
