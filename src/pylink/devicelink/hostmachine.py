"""What the code of a host refers to, and what a machine has to say for it.

Places in `.bss`, in order: the handle of the registered container, the number of units that
arrived, a pointer for each unit, the containers of the units that arrived with a null after
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

NOTHING = "lend_nothing"
# What linkers put at both ends of all module ids in a file.
FIRST_ID, LAST_ID = "__start___nv_module_id", "__stop___nv_module_id"

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
    def nothing(self, code: Code) -> None:
        """A callback that does nothing."""

    @abstractmethod
    def lend(self, code: Code, name: str, wrapper: str, text: int | None) -> None:
        """A constructor of this name that hands over a wrapper, with the callback `nothing`.

        With `text`, a place in the module ids, it does so unless the id there is one of the file's.
        """

    @abstractmethod
    def constructor(self, code: Code, register: str, wrapper: str) -> None:
        """The functions of a unit: what uses its id, its callback, and its constructor.

        The last calls `register` with the callback, the wrapper, the id and what uses it.
        """
