"""The object of a relocatable step (-r): a unit, like a compiled file with device code.

It has the linked relocatable code, a wrapper, and a constructor that passes the wrapper to the
object of the program's final step. See docs/format-notes/device-link.md.
"""

from __future__ import annotations

import struct

from pylink.devicelink.hostmachine import BSS, CONSTRUCTOR, MODULE_IDS, SEGMENT, TEXT, WORD
from pylink.devicelink.hostobject import (
    CONSTRUCTORS,
    MACHINES,
    REGISTER,
    SHT_INIT_ARRAY,
    WRAPPER,
    WRAPPER_MAGIC,
    add_notes,
)
from pylink.devicelink.machinecode import Code
from pylink.devicelink.objectfile import STB_GLOBAL, ObjectFile, Section
from pylink.facts.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_NOBITS,
    STB_WEAK,
    STT_FUNC,
    STT_OBJECT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.container import Container

RELOCATABLE_CODE = "__nv_relfatbin"
WRAPPER_VERSION = 1
DUMMIES = ".data.rel"
DUMMY = "__nv__fatDeviceText_dummy"


def make_unit(identifier: str, container: Container, machine: str) -> list[bytes]:
    """The pieces of the object whose module id is `identifier`."""
    host = MACHINES[machine]()
    wrapper = f"{WRAPPER}{identifier}"
    code = Code(host.instruction)
    host.emit_constructor(code, f"{REGISTER}{identifier}", wrapper)
    object_file = ObjectFile(host.number)
    text = Section(TEXT, [code.finish()], flags=SHF_ALLOC | SHF_EXECINSTR, align=host.code_align)
    text.relocations = code.relocations
    object_file.add(text)
    data = SHF_ALLOC | SHF_WRITE
    object_file.add(Section(BSS, [], type=SHT_NOBITS, flags=data, align=WORD, size=WORD))
    payload = object_file.add(
        Section(RELOCATABLE_CODE, container.pieces, flags=SHF_ALLOC, align=host.fatbin_align)
    )
    head = struct.pack("<IIQQ", WRAPPER_MAGIC, WRAPPER_VERSION, 0, 0)
    segment = object_file.add(Section(SEGMENT, [head], flags=data, align=WORD))
    segment.relocations = [(WORD, host.absolute, RELOCATABLE_CODE, 0)]
    dummy = object_file.add(Section(DUMMIES, [bytes(WORD)], flags=data, align=WORD))
    dummy.relocations = [(0, host.absolute, wrapper, 0)]
    name = identifier.encode("ascii") + b"\0"
    object_file.add(Section(MODULE_IDS, [name], flags=SHF_ALLOC, align=_array_align(len(name))))
    start = object_file.add(
        Section(CONSTRUCTORS, [bytes(WORD)], type=SHT_INIT_ARRAY, flags=data, align=WORD)
    )
    start.entry_size = WORD
    start.relocations = [(0, host.absolute, TEXT, code.offset_of(CONSTRUCTOR))]
    add_notes(object_file, host, code)
    object_file.define("fatbinData", payload)
    for function in code.functions:
        object_file.define(function.name, text, function.start, function.size, type=STT_FUNC)
    object_file.define(wrapper, segment, 0, len(head), type=STT_OBJECT, binding=STB_GLOBAL)
    object_file.define(DUMMY, dummy, 0, WORD, type=STT_OBJECT, binding=STB_WEAK)
    object_file.add_tables()
    return object_file.pieces()


def _array_align(size: int) -> int:
    """The alignment that gcc gives an array of `size` bytes."""
    return 32 if size >= 32 else 16 if size >= 16 else 8
