"""The interface of host machines, and the symbols and the data that their code refers to.

`.bss` holds, in order: the handle of the registered container, the number of units that arrived, a
pointer for each unit, the containers of the units that arrived with a null after them, and their
callbacks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from pylink.facts.elf import CPU_ARCH_OF_MACHINE, EM_AARCH64, EM_X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.machinecode import Code

TEXT, BSS, MODULE_IDS, SEGMENT = ".text", ".bss", "__nv_module_id", ".nvFatBinSegment"
UNREGISTER, COMMON = "unregister_linked_binary", "register_linked_binary"
USE, CALLBACK, CONSTRUCTOR = "use_module_id", "register_entities", "register_unit"

NOTHING = "lend_nothing"
# Symbols that linkers define at both ends of the module ids of a file.
FIRST_ID, LAST_ID = "__start___nv_module_id", "__stop___nv_module_id"

WORD = 8  # bytes of an address
HANDLE, COUNT, POINTERS = 0, WORD, 2 * WORD
LIST, CALLBACKS = "list", "callbacks"


def host_cpu_arch(machine: int) -> str | None:
    """The -cpu-arch name of an ELF machine; None if there is no code for it."""
    return CPU_ARCH_OF_MACHINE[machine] if machine in (EM_X86_64, EM_AARCH64) else None


class Layout:
    """Offsets in `.bss` for `count` units."""

    __slots__ = ("_offsets", "count", "size")

    def __init__(self, count: int) -> None:
        self.count = count
        first = POINTERS + WORD * count
        self._offsets = {LIST: first, CALLBACKS: first + WORD * (count + 1)}
        self.size = self._offsets[CALLBACKS] + WORD * count

    def pointer(self, number: int) -> int:
        return POINTERS + WORD * number

    def offset(self, name: str) -> int:
        return self._offsets[name]


class Machine(ABC):
    """A host machine: numbers of its ELF files, and its code.

    `absolute` and `relative` are types of relocations: of 8 bytes, and of 4 bytes relative to the
    field. `property` is the type of the GNU property and the bits that the code complies with.
    `initial_frame` and `return_register` are DWARF's, for unwinding.
    """

    number: int
    instruction: int
    code_align: int
    fatbin_align: int
    absolute: int
    relative: int
    property: tuple[int, int]
    return_register: int
    initial_frame: str

    @abstractmethod
    def emit_unregister(self, code: Code) -> None:
        """Emit the function that runs at exit."""

    @abstractmethod
    def emit_common(self, code: Code, layout: Layout) -> None:
        """Emit the function that takes wrapper and callback of a unit; the last call registers."""

    @abstractmethod
    def emit_unit(
        self, code: Code, name: str, wrapper: str | None, pointer: int, text: int
    ) -> None:
        """Emit the function that a unit's constructor calls.

        Without `wrapper` its second argument is the wrapper. `pointer` is an offset in `.bss`,
        `text` one in the module ids.
        """

    @abstractmethod
    def emit_empty_callback(self, code: Code) -> None:
        """Emit a callback that does nothing."""

    @abstractmethod
    def emit_lender(self, code: Code, name: str, wrapper: str, text: int | None) -> None:
        """Emit a constructor that registers a wrapper with the empty callback.

        `text` is the offset of an id in the module ids. If the file has the module with this id,
        the constructor does nothing.
        """

    @abstractmethod
    def emit_constructor(self, code: Code, register: str, wrapper: str) -> None:
        """Emit the functions of a unit: the user of its id, its callback, and its constructor.

        The constructor calls `register` with the callback, the wrapper, the id and its user.
        """
