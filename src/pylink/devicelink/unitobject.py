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
from pylink.devicelink.objectfile import ObjectFile, Section
from pylink.facts.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_NOBITS,
    STB_GLOBAL,
    STB_WEAK,
    STT_FUNC,
    STT_OBJECT,
)
from pylink.facts.fatbinentries import RELOCATABLE_SECTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.container import Container

WRAPPER_VERSION = 1  # the version field of a wrapper of relocatable code
# A section and the variable in it, as in nvcc's objects. The variable has the address of the
# wrapper, and so keeps the wrapper in the link.
DUMMY_SECTION, DUMMY = ".data.rel", "__nv__fatDeviceText_dummy"


def make_unit(identifier: str, container: Container, machine: str) -> list[bytes]:
    """Return the bytes, as pieces in order, of the relocatable object that a step of -r writes.

    `identifier` is the module id of that object, and `machine` a name in MACHINES. `container` is
    the fat binary with the linked relocatable code.
    """
    host = MACHINES[machine]()
    wrapper = f"{WRAPPER}{identifier}"
    code = Code(host.instruction_size)
    host.emit_constructor(code, f"{REGISTER}{identifier}", wrapper)
    object_file = ObjectFile(host.elf_machine)
    text = Section(TEXT, [code.finish()], flags=SHF_ALLOC | SHF_EXECINSTR, align=host.code_align)
    text.relocations = code.relocations
    object_file.add(text)
    writable = SHF_ALLOC | SHF_WRITE
    object_file.add(Section(BSS, [], type=SHT_NOBITS, flags=writable, align=WORD, size=WORD))
    payload = object_file.add(
        Section(RELOCATABLE_SECTION, container.pieces, flags=SHF_ALLOC, align=host.fatbin_align)
    )
    wrapper_data = struct.pack("<IIQQ", WRAPPER_MAGIC, WRAPPER_VERSION, 0, 0)
    segment = object_file.add(Section(SEGMENT, [wrapper_data], flags=writable, align=WORD))
    segment.relocations = [(WORD, host.absolute_type, RELOCATABLE_SECTION, 0)]
    dummy = object_file.add(Section(DUMMY_SECTION, [bytes(WORD)], flags=writable, align=WORD))
    dummy.relocations = [(0, host.absolute_type, wrapper, 0)]
    id_text = identifier.encode("ascii") + b"\0"
    object_file.add(
        Section(MODULE_IDS, [id_text], flags=SHF_ALLOC, align=_array_align(len(id_text)))
    )
    init_array = object_file.add(
        Section(CONSTRUCTORS, [bytes(WORD)], type=SHT_INIT_ARRAY, flags=writable, align=WORD)
    )
    init_array.entry_size = WORD
    init_array.relocations = [(0, host.absolute_type, TEXT, code.offset_of(CONSTRUCTOR))]
    add_notes(object_file, host, code)
    object_file.define("fatbinData", payload)
    for function in code.functions:
        object_file.define(function.name, text, function.start, function.size, type=STT_FUNC)
    object_file.define(wrapper, segment, 0, len(wrapper_data), type=STT_OBJECT, binding=STB_GLOBAL)
    object_file.define(DUMMY, dummy, 0, WORD, type=STT_OBJECT, binding=STB_WEAK)
    object_file.add_tables()
    return object_file.pieces()


def _array_align(size: int) -> int:
    """Return the alignment that gcc gives an array of `size` bytes, 8 or more, on the host."""
    return 32 if size >= 32 else 16 if size >= 16 else 8
