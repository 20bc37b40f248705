"""Offsets of shared memory variables, sizes of kernels' shared memory.

Tables are columns of `SharedTables`, with packed rows in native byte order. In:

========== ============================== =====================================================
variable   size u64, alignment u64,       every variable of the inputs that is not overridden, in
           owner i32, flags u32           creation order (below)
use        variable u32, kernel u32       live code of the kernel, or of a function that it
                                          reaches, refers to the variable; any order, repeats
                                          allowed
extern use kernel u32, tie i32,           the same for extern arrays; the tie is the device
           alignment u64, flags u32       function with the use, -1 in the kernel's own code;
                                          in `-g` links the tie is the extern array instead;
                                          the alignment is that of the array, 0 for 16; flag 4:
                                          the kernel has its section only for extern arrays
========== ============================== =====================================================

`owner` is a kernel, or -1 for a variable of `.nv_debug.shared`, or -2 for an own variable of a
kernel that is not linked. `flags`: 1 some code of any input, dead code too, refers to it; 2 it
is an unsized extern array, 4 its alignment is what its symbol says, 8 it is the shared memory of a
whole program, whose section stays even without bytes. Creation order goes file by file, and in each
through the symbol table. A name that is mentioned before its definition stands at the definition.

Out:

========== ============================== =====================================================
offset     i64                            one per variable; -1 for one without a place
kernel     size u64, alignment u64,       size and sh_addralign of `.nv.shared.K`, and the address
           extern i64, flags u32          of the extern arrays that it or its callees use, or -1;
                                          flags: 1 the section survives, 2 it has a symbol.
                                          One row more than kernels, for `.nv_debug.shared`
tie        i64                            address of extern arrays in that function (with `-g`,
                                          of that array), or -1 if no kernel reaches it
========== ============================== =====================================================
"""

from pylink._native.results import SharedTables

def layout_shared(
    shared: SharedTables,
    family: int,
    *,
    keeps_common: bool,
    aligns_arrays: bool,
    ties_arrays: bool,
    reserves: bool = True,
) -> None:
    """Lay out shared memory: fills `offsets`, `kernels` and `ties`.

    `family` is 0 for sm_75 to sm_89, 1 for sm_90, 2 from sm_100 on; sizes of the last two
    include the 0x400 bytes that the system reserves, addresses and offsets do not. Without
    `reserves` (`--disable-smem-reservation`) all are as before sm_90.
    `keeps_common` (`-g` and `--preserve-relocs`): `.nv_debug.shared` has the size of the
    part that kernels have in common, not 0. `aligns_arrays`: the size of a kernel that uses an
    extern array is a multiple of the kernel's alignment, and with `ties_arrays` (`-g`) so is the
    address of the array.

    `ValueError` for sizes over 32 bits, `IndexError` for rows that name no variable, kernel or
    tie.
    """

def layout_relocatable(shared: SharedTables, *, aligns_arrays: bool, ties_arrays: bool) -> None:
    """Compute sizes for `-r`, which places nothing: fills `kernels` and `ties`, for any family.

    Extern uses are those of the kernels' own code only, with tie -1, or with `-g` the array.
    A kernel's extern address is the value of its `externsharedinstance`. The last two
    arguments and errors are like those of `layout_shared`.
    """
