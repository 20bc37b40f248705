"""What the code of a host refers to, and what a machine has to say for it.

Places in `.bss`, in order: the handle of the registered container, the number of units that
arrived, a pointer for each unit, the containers of the units that arrived with a null behind
them, their callbacks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.devicelink.machinecode import Code

TEXT, BSS, MODULE_IDS, SEGMENT = ".text", ".bss", "__nv_module_id", ".nvFatBinSegment"
UNREGISTER, COMMON = "unregister_linked_binary", "register_linked_binary"
USE, CALLBACK, CONSTRUCTOR = "use_module_id", "register_entities", "register_unit"

WORD = 8  # bytes of an address
HANDLE, COUNT, POINTERS = 0, WORD, 2 * WORD
LIST, CALLBACKS = "list", "callbacks"


class Layout:
    """Where things lie in `.bss` for so many units."""

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
    """A machine that programs run on: numbers of its ELF files, and the kinds of functions.

    `absolute` and `relative` are types of relocations: of 8 bytes, and of 4 by the place.
    `property` is the type of the note and the bits of it that the code keeps to. `initial_frame`
    and `return_register` are DWARF's, for unwinding.
    """

    number: int
    instruction: int
    code_align: int
    container_align: int
    absolute: int
    relative: int
    property: tuple[int, int]
    return_register: int
    initial_frame: str

    @abstractmethod
    def unregister(self, code: Code) -> None:
        """What runs at exit."""

    @abstractmethod
    def common(self, code: Code, layout: Layout) -> None:
        """What takes the wrapper of a unit and its callback, and registers all at the last one."""

    @abstractmethod
    def unit(self, code: Code, name: str, wrapper: str | None, pointer: int, text: int) -> None:
        """What a unit's constructor calls; without `wrapper` the second argument is the wrapper.

        `pointer` is a place in `.bss`, `text` one in the module ids.
        """

    @abstractmethod
    def constructor(self, code: Code, register: str, wrapper: str) -> None:
        """The functions of a unit: what uses its id, its callback, and its constructor.

        The last calls `register` with the callback, the wrapper, the id and what uses it.
        """
