"""The interface of host machines, and the symbols and the data that their code refers to.

A unit is an object with relocatable device code, in a container (a fat binary); its wrapper is the
structure with the address of the container. A unit arrives when its constructor calls the host
object. `.bss` of the host object holds, in order: the handle of the registered container; the
number of units that arrived; a pointer to the id of each unit; pointers to the containers of the
units that arrived, and a null; pointers to their callbacks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from pylink.facts.elf import CPU_ARCH_OF_MACHINE, EM_AARCH64, EM_X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.machinecode import Code

# Names of sections. MODULE_IDS has the texts of module ids, SEGMENT the wrapper of the container.
TEXT, BSS, MODULE_IDS, SEGMENT = ".text", ".bss", "__nv_module_id", ".nvFatBinSegment"
# Names of generated functions: in the host object (two lines), then in an object of -r.
UNREGISTER, COMMON = "unregister_linked_binary", "register_linked_binary"
EMPTY_CALLBACK = "lend_nothing"
USE_ID, CALLBACK, CONSTRUCTOR = "use_module_id", "register_entities", "register_unit"

# Symbols that linkers define at both ends of the module ids of a file.
FIRST_ID, LAST_ID = "__start___nv_module_id", "__stop___nv_module_id"

WORD = 8  # bytes of an address
# Offsets in `.bss` of the handle of the registered container, of the number of units (objects with
# device code) whose constructors have run, and of the pointers to their ids.
HANDLE, COUNT, ID_POINTERS = 0, WORD, 2 * WORD
# Names of the lists in `.bss` whose offsets depend on the number of units: see `Layout`.
CONTAINER_LIST, CALLBACK_LIST = "containers", "callbacks"


def host_cpu_arch(machine: int) -> str | None:
    """Return the -cpu-arch name of an ELF machine; None if pylink has no host code for it."""
    return CPU_ARCH_OF_MACHINE[machine] if machine in (EM_X86_64, EM_AARCH64) else None


class Layout:
    """Offsets in `.bss` of a host object that registers `count` units (objects with device code).

    `.bss` has pointers to ids, containers and callbacks of the units, and `size` bytes in total.
    """

    __slots__ = ("_offsets", "count", "size")

    def __init__(self, count: int) -> None:
        self.count = count
        containers = ID_POINTERS + WORD * count
        callbacks = containers + WORD * (count + 1)  # a null ends the list of containers
        self._offsets = {CONTAINER_LIST: containers, CALLBACK_LIST: callbacks}
        self.size = callbacks + WORD * count

    def id_pointer(self, number: int) -> int:
        """Return the offset in `.bss` of the pointer to the id of unit `number`, counted from 0."""
        return ID_POINTERS + WORD * number

    def offset(self, name: str) -> int:
        """Return the offset in `.bss` of a list: CONTAINER_LIST or CALLBACK_LIST."""
        return self._offsets[name]


class Machine(ABC):
    """A host machine: numbers of its ELF files, and its code.

    `absolute_type` and `relative_type` are types of relocations: of 8 bytes, and of 4 bytes
    relative to the field. `gnu_property` is the type of the GNU property and the bits of the
    features that the code complies with. `return_register` and `initial_frame` are for unwinding:
    DWARF's number of the register with the return address, and the operations that describe the
    frame at the start of a function, in hexadecimal. `code_align` and `fatbin_align` are the
    alignments of the code and of the container, in bytes.
    """

    elf_machine: int
    instruction_size: int  # size of the smallest instruction, in bytes
    code_align: int
    fatbin_align: int
    absolute_type: int
    relative_type: int
    gnu_property: tuple[int, int]
    return_register: int
    initial_frame: str

    @abstractmethod
    def emit_unregister(self, code: Code) -> None:
        """Emit the function that runs at exit and unregisters the container (the fat binary)."""

    @abstractmethod
    def emit_common(self, code: Code, layout: Layout) -> None:
        """Emit the common function, which registers all units (objects with device code).

        Each unit's function calls it with the unit's wrapper and callback. The call for the last
        unit to arrive registers everything.
        """

    @abstractmethod
    def emit_unit(
        self, code: Code, name: str, wrapper: str | None, id_pointer: int, id_offset: int
    ) -> None:
        """Emit the function that a unit's constructor calls, and that calls the common function.

        `wrapper` is the symbol of the unit's wrapper; if it is None, the wrapper is the second
        argument of the function. `id_pointer` is the offset in `.bss` of the pointer to the unit's
        id, `id_offset` that of the id in the section of module ids.
        """

    @abstractmethod
    def emit_empty_callback(self, code: Code) -> None:
        """Emit a callback that does nothing."""

    @abstractmethod
    def emit_lender(self, code: Code, name: str, wrapper: str, id_offset: int | None) -> None:
        """Emit a constructor for a unit whose device code is taken from a shared library.

        It calls the common function with the unit's wrapper and the empty callback. `id_offset` is
        the offset of an id in the section of module ids; if the linked program or library contains
        a module with this id, the constructor does nothing. With None it always makes the call.
        """

    @abstractmethod
    def emit_constructor(self, code: Code, register: str, wrapper: str) -> None:
        """Emit the functions of an object of -r: constructor, callback, and one that uses the id.

        The constructor calls the symbol `register` with the callback, the symbol `wrapper`, the id,
        and the function that uses the id.
        """
