"""Numbers in the rows of tables, for native code and for Python code that reads a table.

`header.py` makes constants of them for native code: `EntityFlag.LIVE` is `EF_LIVE` there. An entity
is one distinct symbol of the link: a global name, or one local symbol of one file.
"""

from __future__ import annotations

# Stands for the size of a stack that has no known bound, as with recursion.
NO_STACK_BOUND = 0xFFFFFFFF


class FileFlag:
    """Properties of an input file: bits of FileRow.flags."""

    SPECIFIC = 1  # the code is for one architecture alone
    NARROW = 2  # addresses have 32 bits
    UNCLASSED = 4  # .nv.compat has no ISA_CLASS: the output runs on the target alone
    EARLY = 8  # from sm_100 on: compiled before 13.0
    WHOLE_PROGRAM = 16  # a whole program, of the type ET_WHOLE


class EntityKind:
    """Kinds of entities (distinct symbols of a link): values of EntityRow.kind.

    They decide how relocations use the entity.
    """

    FUNC = 0
    GLOBAL = 1  # lives in .nv.global or .nv.global.init
    CONSTANT = 2
    SHARED = 3
    RESERVED = 4  # a symbol .nv.reservedSmem.*, which the linker defines
    UNIFIED = 5  # __UFT*, __UDT*: symbols of unified tables, which pylink's links do not have
    CONST0_SIZE = 6  # the symbol .nv.ptx.const0.size
    OTHER = 7
    SYSTEM_SHARED = 8  # lives in .nv.shared.reserved.0
    NULL = 9  # the null symbol of a file, where the output has one for it


class EntityFlag:
    """Properties of an entity (a distinct symbol of the link): bits of EntityRow.flags."""

    KERNEL = 1
    DEFINED = 2
    LOCAL = 4
    LIVE = 8  # the output has it
    COMMON = 32
    TAKEN = 64  # its address is taken: a CallBlock.TAKEN row of the call graph names it
    # Executables without --preserve-relocs omit it: a local symbol or a constant that has internal
    # visibility, or an unused constant.
    INTERNAL = 128
    WEAK = 256  # every definition is weak or, without a definition, every reference
    UNSIZED = 512  # extern __shared__ array
    # A file has a row as for TAKEN, but the code that is linked from it does not take the address.
    MAYBE_TAKEN = 1024
    DESELECTED = 2048  # dead only because some kernels were not selected
    UNSELECTED = 4096  # a kernel that is not among the selected ones; device code may launch it
    UNCALLED = 8192  # its address is taken, but no call from a kernel leads to it (`find_live`)
    INNER = 16384  # a function whose code is a part of another function's, as -ewp compiles it
    # A function of a whole program whose stack size (MIN_STACK_SIZE) is NO_STACK_BOUND: its
    # recursion need not show in the call graph.
    UNBOUNDED = 32768
    ALIAS = 65536  # with INNER: another name for the other function, as PTX `.alias` makes it


class Resolution:
    """The result for the definition in an input's symbol: one definition of each entity wins.

    While files are read, the definition that has won so far is the current one.
    """

    NONE = 0  # no definition
    LOST = 1  # lost to an earlier definition, which won in the end
    LOST_EARLY = 2  # lost to an earlier definition, which a later one replaced
    REPLACED = 3  # was current until a later definition replaced it
    WON = 4


class CallBlock:
    """The block of .nv.callgraph that a CallRow comes from.

    In the file, a block begins with a pair of 0 and one of these numbers. PROTOTYPE stands for
    the section .nv.prototype instead.
    """

    DIRECT = -1  # a direct call
    TAKEN = -2  # a function whose address is taken, with its prototype
    INDIRECT = -3  # an indirect call by a prototype
    CANDIDATE = -4  # a function that an indirect call may reach
    PROTOTYPE = -5  # a row of .nv.prototype


class Clash:
    """Contradictions between two symbols of one name: values of ClashRow.kind."""

    MULTIPLE = 1
    SIZE = 2
    SPACE = 3  # variables of different memory, or a variable and a function
    PROTOTYPE = 4
    # The call graph names a function that an earlier file defines as a variable.
    FUNCTION_AS_VARIABLE = 5
    GLOBAL = 6  # one is a kernel (__global__), the other is not
    MANAGED = 7  # one is a variable of unified memory (__managed__), the other is not
    COMMON = 8  # a common symbol with more bytes than its definition


class LinkMode:
    """Options of a link that native code tests: bits of Job.mode."""

    RELOCATABLE = 1  # -r
    KEEP_RELOCS = 2  # --preserve-relocs
    KEEP_CODE = 4  # dead code is not removed: -r, -g, --preserve-relocs, --link-as-tools-patch
    DEBUG = 8  # -g without --suppress-debug-info
    HOST_INFO = 16  # kernels that host code does not name are removed
    NO_RESERVE = 32  # --disable-smem-reservation


class FixupFlag:
    """Ways to patch a field: bits of FixupRow.how."""

    REL = 1  # the field has the addend; FixupRow.addend is for the list of resolved relocations
    CLEAR = 2  # write zeros
    # The symbol's value counts as 0, and so does the addend, except one of RELA for shared memory.
    ZERO = 4
    MERC = 16  # the type is a mercury relocation number
    INSTANCE = 32  # -r: the relocation names the symbol that stands for its kernel's extern arrays


class KeepsFlag:
    """Values that a kernel does not take over from called functions: bits of FunctionRow.keeps."""

    REGISTERS = 1  # the register count
    ALL = 2  # all values: of a kernel that inherits nothing


class ContentsFrom:
    """Sources of the bytes of an output section: values of PlaceRow.contents."""

    INPUTS = 0  # the pieces of the inputs
    SPAN = 1  # bytes that the link made; a SpanRow says where they are
    TWIN = 2  # those of its twin, the plain form of the section, which has the same bytes


# The class whose numbers have each prefix in native code.
PREFIXES = {
    "FILE_": FileFlag,
    "E_": EntityKind,
    "EF_": EntityFlag,
    "RESOLUTION_": Resolution,
    "BLOCK_": CallBlock,
    "CLASH_": Clash,
    "LINK_": LinkMode,
    "FIXUP_": FixupFlag,
    "KEEPS_": KeepsFlag,
    "FROM_": ContentsFrom,
}
