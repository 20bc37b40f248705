"""Offsets of shared memory variables, sizes of kernels' shared memory.

Tables are ``bytes`` of rows in native byte order. In:

========== ============================== =====================================================
variable   size u64, alignment u64,       every one of all inputs that is not overridden, in
           owner i32, flags u32           order of birth (below)
use        variable u32, kernel u32       live code of the kernel, or of a function that it
                                          reaches, refers to the variable; any order, repeats
                                          allowed
extern use kernel u32, function i32       the same for extern arrays; function -1 is the
                                          kernel's own code
========== ============================== =====================================================

``owner`` is a kernel, or -1 for a variable of ``.nv_debug.shared``, or -2 for an own variable of a
kernel that is not linked. ``flags``: 1 some code of any input, dead code too, refers to it; 2 it
is an unsized extern array. Order of birth is file after file, symbol table order, a name that is
defined later than first mentioned at its definition.

Out:

========== ============================== =====================================================
offset     i64                            one per variable; -1 for one without a place
kernel     size u64, alignment u64,       size and sh_addralign of ``.nv.shared.K`` and the
           extern i64, flags u32, 0 u32   address of extern arrays in its own code, -1 without;
                                          flags: 1 the section survives, 2 it has a symbol
function   i64                            one per function: address of extern arrays in it, or -1
========== ============================== =====================================================
"""

def layout_shared(
    family: int,
    kernel_count: int,
    function_count: int,
    variables: bytes,
    uses: bytes,
    extern_uses: bytes,
) -> tuple[bytes, bytes, bytes, int, bool]:
    """Lay out shared memory: (offsets, kernels, functions, common size, keeps_debug_shared).

    ``family`` is 0 for sm_75 to sm_89, 1 for sm_90, 2 from sm_100 on; sizes of the last two
    include the 0x400 bytes that the system reserves, addresses and offsets do not. Common size
    is the end of the part that all kernels share. The last item says whether
    ``.nv_debug.shared`` stays in an executable.

    ``ValueError`` for tables that end inside a row and sizes over 32 bits, ``IndexError`` for
    rows that name no variable, kernel or function.
    """
