"""The object of a device-link step: the container (a fat binary), and code that registers it.

Each linked unit has a constructor, which calls a function of this object with the unit's wrapper.
The last such call registers everything. See docs/format-notes/device-link.md.
"""

from __future__ import annotations

import struct
from itertools import accumulate, groupby

from pylink.devicelink.aarch64 import AArch64
from pylink.devicelink.hostmachine import (
    BSS,
    CONTAINER_LIST,
    FIRST_ID,
    LAST_ID,
    MODULE_IDS,
    SEGMENT,
    TEXT,
    WORD,
    Layout,
)
from pylink.devicelink.machinecode import Code, FrameTable
from pylink.devicelink.objectfile import ObjectFile, Section
from pylink.devicelink.x86_64 import X86_64
from pylink.facts.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_NOBITS,
    SHT_NOTE,
    STT_FUNC,
    STV_DEFAULT,
    STV_HIDDEN,
)
from pylink.facts.fatbinentries import LINKED_SECTION, REGISTER_PREFIX, WRAPPER_PREFIX
from pylink.facts.records import NOTE_HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.container import Container
    from pylink.devicelink.hostmachine import Machine

MACHINES: dict[str, type[Machine]] = {"X86_64": X86_64, "AARCH64": AArch64}

REGISTER, WRAPPER = REGISTER_PREFIX.decode(), WRAPPER_PREFIX.decode()
# The first fields of a wrapper, the structure with a fat binary's address; version 2: linked code.
WRAPPER_MAGIC, WRAPPER_VERSION = 0x466243B1, 2
# Names of sections: of the addresses of the units' anchors (see `Unit`), and of constructors.
ANCHORS, CONSTRUCTORS = ".data.rel.ro", ".init_array"
SHT_INIT_ARRAY = 14

NT_GNU_PROPERTY_TYPE_0 = 5

# Roles of a unit.
OWN = 0  # the unit's own constructor calls this object
LENT = 1  # only a shared library contains the unit: this object has a constructor for it
# A shared library and a member of an archive contain the unit: like OWN if the host linker takes
# the member, else like LENT.
OPTIONAL = 2
# The start of a unit's text in the section of module ids, by role.
ID_PREFIXES = {OWN: "def", OPTIONAL: "def lend"}


class Unit:
    """A linked module; `id` is its module id, such as `_5f_a_cu_1`.

    The wrapper of a `hidden` unit is visible only in its shared library, which passes its address.
    `anchor` is a symbol of that library, or empty; the object refers to it, so that the host linker
    keeps the library. If `role` is not OWN, the object itself has a constructor for the unit.
    """

    __slots__ = ("anchor", "hidden", "id", "role")

    def __init__(self, id: str, *, hidden: bool = False, anchor: str = "", role: int = OWN) -> None:
        self.id = id
        self.hidden = hidden
        self.anchor = anchor
        self.role = role


class HostObject:
    """The host object of a device-link step: a container (fat binary), and code that registers it.

    `machine` is a name in `MACHINES`, and `units` are the linked modules. Only `pieces` needs the
    container. With `hides` the functions of units have hidden visibility, like with
    -fvisibility=hidden, except for units that are `hidden` themselves; those of OPTIONAL units
    always have it. With `backwards` the module ids are in reverse order, like those of gcc from -O1
    on. `_file` is the object, `_payload` its section for the container.
    """

    __slots__ = ("_file", "_payload")

    def __init__(
        self, units: Sequence[Unit], machine: str, *, hides: bool = False, backwards: bool = False
    ) -> None:
        host = MACHINES[machine]()
        layout = Layout(len(units))
        registered = [unit for unit in units if unit.role != LENT]
        id_texts, id_offsets = _make_module_ids(registered, backwards=backwards)
        offset_of_id = dict(zip(registered, id_offsets, strict=True))
        code = Code(host.instruction_size)
        host.emit_unregister(code)
        if units:
            host.emit_common(code, layout)
        first_unit = len(code.functions)
        _emit_units(registered, offset_of_id, layout, host, code)
        constructors = _emit_lenders(units, offset_of_id, host, code)
        object_file = ObjectFile(host.elf_machine)
        text = Section(
            TEXT, [code.finish()], flags=SHF_ALLOC | SHF_EXECINSTR, align=host.code_align
        )
        text.relocations = code.relocations
        object_file.add(text)
        writable = SHF_ALLOC | SHF_WRITE
        object_file.add(
            Section(BSS, [], type=SHT_NOBITS, flags=writable, align=16, size=layout.size)
        )
        if registered:
            object_file.add(Section(MODULE_IDS, [id_texts], flags=SHF_ALLOC))
        payload = Section(LINKED_SECTION, [], flags=SHF_ALLOC, align=host.fatbin_align)
        object_file.add(payload)
        segment = Section(
            SEGMENT,
            [struct.pack("<IIQQ", WRAPPER_MAGIC, WRAPPER_VERSION, 0, 0)],
            flags=writable,
            align=WORD,
        )
        # Set the two zeros above to the addresses of the container and of the list of containers.
        segment.relocations = [
            (WORD, host.absolute_type, LINKED_SECTION, 0),
            (2 * WORD, host.absolute_type, BSS, layout.offset(CONTAINER_LIST)),
        ]
        object_file.add(segment)
        anchors = [unit.anchor for unit in units if unit.anchor]
        if anchors:
            section = object_file.add(
                Section(ANCHORS, [bytes(WORD * len(anchors))], flags=writable, align=WORD)
            )
            section.relocations = [
                (WORD * number, host.absolute_type, anchor, 0)
                for number, anchor in enumerate(anchors)
            ]
        if constructors:
            init_array = object_file.add(
                Section(
                    CONSTRUCTORS,
                    [bytes(WORD * len(constructors))],
                    type=SHT_INIT_ARRAY,
                    flags=writable,
                    align=WORD,
                )
            )
            init_array.entry_size = WORD
            init_array.relocations = [
                (WORD * number, host.absolute_type, TEXT, code.offset_of(name))
                for number, name in enumerate(constructors)
            ]
            object_file.hidden = frozenset((FIRST_ID, LAST_ID))
        add_notes(object_file, host, code)
        object_file.define("fatbinData", payload)
        end_of_units = first_unit + len(registered)
        for function in code.functions[:first_unit]:
            object_file.define(function.name, text, function.start, function.size, type=STT_FUNC)
        object_file.define_functions(
            code.functions[first_unit:end_of_units],
            text,
            [
                STV_HIDDEN if unit.role == OPTIONAL or (hides and not unit.hidden) else STV_DEFAULT
                for unit in registered
            ],
        )
        for function in code.functions[end_of_units:]:
            object_file.define(function.name, text, function.start, function.size, type=STT_FUNC)
        object_file.add_tables()
        self._file, self._payload = object_file, payload

    def pieces(self, container: Container) -> list[bytes]:
        """Return the bytes of the object with this container, in order.

        This must be called only once.
        """
        self._payload.pieces, self._payload.size = container.pieces, container.size
        return self._file.pieces()


def _emit_units(
    units: Sequence[Unit],
    offset_of_id: dict[Unit, int],
    layout: Layout,
    host: Machine,
    code: Code,
) -> None:
    """Emit the function of each unit (linked module), which the unit's constructor calls.

    These functions differ only in the symbols and addends of their relocations. So one for hidden
    units and one for others are made, with the symbol WRAPPER in place of a wrapper, and then
    copied. `offset_of_id` has the offsets of the units' texts in the section of module ids.
    """
    patterns = {}
    for hidden in {unit.hidden for unit in units}:
        patterns[hidden] = Code(host.instruction_size)
        host.emit_unit(patterns[hidden], "", None if hidden else WRAPPER, 0, 0)
    first = 0
    for hidden, group in groupby(units, _is_hidden):
        neighbors = list(group)
        end = first + len(neighbors)
        moves: dict[str, tuple[str | list[str], Sequence[int]]] = {
            BSS: (BSS, range(layout.id_pointer(first), layout.id_pointer(end), WORD)),
            MODULE_IDS: (MODULE_IDS, [offset_of_id[unit] for unit in neighbors]),
            WRAPPER: ([f"{WRAPPER}{unit.id}" for unit in neighbors], [0] * len(neighbors)),
        }
        names = [f"{REGISTER}{unit.id}" for unit in neighbors]
        code.append_copies(patterns[hidden], names, moves)
        first = end


def _is_hidden(unit: Unit) -> bool:
    return unit.hidden


def _emit_lenders(
    units: Sequence[Unit], offset_of_id: dict[Unit, int], host: Machine, code: Code
) -> list[str]:
    """Emit constructors for the units of role LENT or OPTIONAL, and return their names.

    Shared libraries contain these units. `offset_of_id` has the offsets of the units' texts in the
    section of module ids.
    """
    lent = [unit for unit in units if unit.role != OWN]
    if lent:
        host.emit_empty_callback(code)
    for unit in lent:
        id_offset = None
        if unit.role == OPTIONAL:
            id_offset = offset_of_id[unit] + len(f"{ID_PREFIXES[OPTIONAL]} ")
        host.emit_lender(code, f"lend{unit.id}", f"{WRAPPER}{unit.id}", id_offset)
    return [f"lend{unit.id}" for unit in lent]


def add_notes(object_file: ObjectFile, host: Machine, code: Code) -> None:
    """Add the sections with unwinding data, with GNU properties, and for the stack."""
    frames = FrameTable(
        code.functions,
        TEXT,
        host.relative_type,
        instruction_size=host.instruction_size,
        return_register=host.return_register,
        initial_frame=host.initial_frame,
    )
    unwinding = object_file.add(Section(".eh_frame", [frames.data], flags=SHF_ALLOC, align=8))
    unwinding.relocations = frames.relocations
    note = _property_note(*host.gnu_property)
    object_file.add(Section(".note.gnu.property", [note], type=SHT_NOTE, flags=SHF_ALLOC, align=8))
    object_file.add(Section(".note.GNU-stack", []))  # the stack is not executable


def _make_module_ids(units: Sequence[Unit], *, backwards: bool) -> tuple[bytes, list[int]]:
    """Return the contents of the section of module ids, and the offset of the text of each unit.

    A text is `def ID` or `def lend ID` and a zero.
    """
    texts = [f"{ID_PREFIXES[unit.role]} {unit.id}\0" for unit in units]
    if backwards:
        texts.reverse()
    offsets = list(accumulate(map(len, texts), initial=0))[:-1]
    if backwards:
        offsets.reverse()
    return "".join(texts).encode("ascii"), offsets


def _property_note(kind: int, bits: int) -> bytes:
    """Return a note with one GNU property, whose value `bits` has 4 bytes."""
    name = b"GNU\0"
    value_size, padding = 4, 0
    description = struct.pack("<IIII", kind, value_size, bits, padding)
    head = NOTE_HEADER.pack(len(name), len(description), NT_GNU_PROPERTY_TYPE_0)
    return head + name + description
