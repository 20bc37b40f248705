"""Shared memory: one offset for each variable, one size for each kernel.

A kernel has its *own* variables (`.nv.shared.K`). Statics of device functions and file-scope
variables lie in `.nv_debug.shared`: they are called *common* variables here. The place of a common
variable depends on the kernels that use it. An example has common variables a, b, c of 8 bytes,
used by K1 {a}, K2 {a, b}, K3 {c}:

    a   two users: the common part, at 0 for every kernel
    b   one user: the private part of K2, sorted with its own variables, after a
    c   one user: the private part of K3, at 0, since K3 does not use a

Common part. All common variables are sorted by ascending size and walked backwards. Each that has
not exactly one user joins the first group in which no variable has a user in common with it, or
opens a group. Groups follow each other; all variables of a group begin at its start, and it has the
largest size and alignment of them. A variable that no code refers to has no place.

Private part. The list of a kernel is sorted by descending alignment, then ascending size, and
starts at the end of what the kernel uses of the common part.

Sort. Equal variables come out in the order of one particular merge sort of linked lists: push the
items alternately to the front of two lists, sort both, merge; of equal ones the first list's goes
first.

Extern arrays (`extern __shared__ int x[]`) are not variables, yet they take part in the first sort,
with size 0, and so change the order of equal variables. Their address is the end of the kernel's
variables, rounded up to 16, or to a larger alignment, which compilers state since CUDA 13.1. Since
then the size of such a kernel is rounded up to its alignment, and so is the address with -g. The
arrays that a function uses have one address for all kernels that reach it, so these all grow to the
largest of them. With -g, each extern array instead of each function has one address for all kernels
that reach it.

Alignment. Once a common variable is in the common part, every kernel has at least the alignment of
the most aligned common variable, except for kernels that get their section late (merge/idle.pxd),
for extern arrays alone. If any extern array exists, an empty kernel has a section, too, if its
alignment is exactly 16; on sm_90 also if it is larger.

Cost: the sorts take n log n. Choosing groups takes, for each use of a variable, one step per 64
groups that the variable cannot join: 1000 variables that all overlap, 100 uses each, need 1e6
steps. docs/format-notes/shared-memory.md has the evidence. Rows: see the stub.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport round_up
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_push
from pylink._native.results cimport SharedTables
from pylink._native.tables cimport Offsets, SharedSizes
from shared.arrays cimport ArrayTies, allocate_ties, place_externs
from tables.sharedrows cimport (
    ARRAYS_ONLY, COMMON, DEAD, EXTERN, EXTERN_ALIGN, HAS_SYMBOL, REFERENCED, RESERVED, STAYS,
    SURVIVES, ExternUseRow, KernelNumber, KernelRef, KernelRow, UseRef, UseRow, VariableRef,
    VariableRow, sort_list,
)
from traits cimport FAMILY_COUNT, FAMILY_TRAITS, TRAIT_FILLS_SHARED, TRAIT_MERCURY

cdef extern from *:
    int __builtin_ctzll(unsigned long long) nogil

# Kernels, variables and options of the placement, and its working arrays.
ctypedef struct Placing:
    const VariableRow* rows
    size_t variable_count
    const UseRow* uses
    size_t use_count
    size_t kernel_count
    size_t common_count         # number of common variables, which any kernel may use
    uint32_t traits             # TRAIT_ bits; 0 if no bytes are reserved for the system
    bint keeps_common           # .nv_debug.shared has the size of the common part, not 0
    bint has_extern             # one of the variables is an extern array
    bint aligns_arrays          # sizes of kernels with extern arrays are multiples of their align
    uint64_t most_aligned       # largest alignment of common variables; 1 without a common part
    KernelRow* kernels          # by kernel, and one more row for .nv_debug.shared
    int64_t* offsets            # by variable; -1: no place
    uint32_t* first_user        # by variable: v has users[first_user[v]:first_user[v + 1]]
    KernelRef* users            # kernels that use variable 0, then those of variable 1 and so on
    UseRef* uses_by_kernel      # numbers of uses, sorted by kernel
    uint32_t* first_item        # by kernel: k has items[first_item[k]:first_item[k + 1]]
    VariableRef* items          # variables of the private part of kernel 0, then of 1 and so on
    VariableRef* order          # common variables in the reverse order of the first sort
    VariableRef* sort_spare     # room for `sort_list`
    size_t group_count          # groups of the common part
    uint32_t* group             # by variable, of the common part: its group
    uint64_t* group_size        # by group: size in bytes; later its offset
    uint64_t* group_align       # by group: largest alignment of its variables
    # Each row stands for 64 groups, and has a word for each kernel: a bit is 1 if the kernel uses a
    # variable of that group.
    Vec taken_groups            # uint64_t
    ArrayTies arrays


cdef void allocate_placing(Placing* placing, Scratch* scratch) noexcept:
    """Allocate the arrays by variable, kernel and use, all zero.

    Those by variable and kernel have two more elements, since counting sorts count the elements of
    list i in element i + 1 or i + 2.
    """
    cdef size_t v = placing.variable_count + 2, k = placing.kernel_count + 2
    placing.group_size = <uint64_t*>scratch_zeros(scratch, v, 8)
    placing.group_align = <uint64_t*>scratch_zeros(scratch, v, 8)
    placing.first_user = <uint32_t*>scratch_zeros(scratch, v, 4)
    placing.items = <VariableRef*>scratch_zeros(scratch, v, 4)
    placing.order = <VariableRef*>scratch_zeros(scratch, v, 4)
    placing.sort_spare = <VariableRef*>scratch_zeros(scratch, v, 4)
    placing.group = <uint32_t*>scratch_zeros(scratch, v, 4)
    placing.users = <KernelRef*>scratch_zeros(scratch, placing.use_count, 4)
    placing.uses_by_kernel = <UseRef*>scratch_zeros(scratch, placing.use_count, 4)
    placing.first_item = <uint32_t*>scratch_zeros(scratch, k, 4)
    scratch_vector(scratch, &placing.taken_groups, (placing.kernel_count + 1) * sizeof(uint64_t))


cdef void index_users(Placing* placing) noexcept nogil:
    """List the users of each variable, without repeats.

    Two counting sorts, by kernel and then by variable, make repeated uses neighbors.
    """
    cdef const UseRow* uses = placing.uses
    cdef size_t i, start = 0, stop, kept_count = 0
    cdef VariableRef v
    for i in range(placing.use_count):
        placing.first_item[uses[i].kernel + 1] += 1
        placing.first_user[uses[i].variable + 1] += 1
    for i in range(placing.kernel_count):
        placing.first_item[i + 1] += placing.first_item[i]
    for i in range(placing.variable_count):
        placing.first_user[i + 1] += placing.first_user[i]
    for i in range(placing.use_count):
        placing.uses_by_kernel[placing.first_item[uses[i].kernel]] = <UseRef>i
        placing.first_item[uses[i].kernel] += 1
    for i in range(placing.use_count):
        v = uses[placing.uses_by_kernel[i]].variable
        placing.users[placing.first_user[v]] = uses[placing.uses_by_kernel[i]].kernel
        placing.first_user[v] += 1
    for v in range(<VariableRef>placing.variable_count):    # first_user[v] has become the end of v
        stop = placing.first_user[v]
        placing.first_user[v] = <uint32_t>kept_count
        for i in range(start, stop):
            if i == start or placing.users[i] != placing.users[i - 1]:
                placing.users[kept_count] = placing.users[i]
                kept_count += 1
        start = stop
    placing.first_user[placing.variable_count] = <uint32_t>kept_count


cdef void order_common(Placing* placing) noexcept nogil:
    """List the common variables, which any kernel may use, in the reverse order of the first sort.
    """
    cdef const VariableRow* rows = placing.rows
    cdef size_t i
    cdef VariableRef v
    for v in range(<VariableRef>placing.variable_count):
        if rows[v].owner == COMMON:
            placing.order[placing.common_count] = v
            placing.common_count += 1
            placing.most_aligned = max(placing.most_aligned, rows[v].align)
    sort_list(rows, placing.order, placing.sort_spare, placing.common_count, False)
    for i in range(placing.common_count // 2):
        v = placing.order[i]
        placing.order[i] = placing.order[placing.common_count - 1 - i]
        placing.order[placing.common_count - 1 - i] = v


cdef bint join_group(Placing* placing, VariableRef v) noexcept nogil:
    """Put a variable into the first group in which no variable has one of its users.

    Variables of a group get one offset, since no kernel uses two of them. False without memory.
    """
    cdef const VariableRow* row = &placing.rows[v]
    cdef uint64_t bits              # by group, 64 of them: 1 if a user of `v` uses a variable of it
    cdef uint64_t* group_words      # by kernel: bits of the same 64 groups, for this kernel alone
    cdef size_t word = 0, u
    cdef uint32_t g
    while True:
        if word == placing.taken_groups.count:
            group_words = <uint64_t*>vec_push(&placing.taken_groups)
            if group_words == NULL:
                return False
            memset(group_words, 0, placing.taken_groups.row)
        group_words = <uint64_t*>(placing.taken_groups.data + word * placing.taken_groups.row)
        bits = 0
        for u in range(placing.first_user[v], placing.first_user[v + 1]):
            bits |= group_words[placing.users[u]]
        if bits != <uint64_t>-1:
            break
        word += 1
    g = <uint32_t>(word * 64 + __builtin_ctzll(~bits))
    for u in range(placing.first_user[v], placing.first_user[v + 1]):
        group_words[placing.users[u]] |= <uint64_t>1 << (g & 63)
    placing.group[v] = g
    placing.group_count = max(placing.group_count, <size_t>g + 1)
    placing.group_size[g] = max(placing.group_size[g], row.size)
    placing.group_align[g] = max(placing.group_align[g], row.align)
    return True


cdef bint place_common_variables(Placing* placing) noexcept nogil:
    """Place the common variables, except those that one kernel alone uses; False without memory.

    Extern arrays, and variables that no code refers to, get no offset. The size of the common part
    becomes that of the last KernelRow.
    """
    cdef const VariableRow* rows = placing.rows
    cdef KernelRow* kernels = placing.kernels
    cdef int64_t* offsets = placing.offsets
    cdef size_t i, u
    cdef VariableRef v
    cdef KernelRef k
    cdef uint64_t start, end = 0
    order_common(placing)
    for i in range(placing.common_count):
        v = placing.order[i]
        if (placing.first_user[v + 1] - placing.first_user[v] == 1 or rows[v].flags & EXTERN
                or not rows[v].flags & REFERENCED):
            continue
        if not join_group(placing, v):
            return False
        offsets[v] = 0
    for i in range(placing.group_count):
        start = round_up(end, placing.group_align[i])
        end = start + placing.group_size[i]
        placing.group_size[i] = start       # from here on the group's offset
    for v in range(<VariableRef>placing.variable_count):
        if offsets[v] == -1:
            continue
        offsets[v] = <int64_t>placing.group_size[placing.group[v]]
        for u in range(placing.first_user[v], placing.first_user[v + 1]):
            k = placing.users[u]
            kernels[k].size = max(kernels[k].size, offsets[v] + rows[v].size)
            kernels[k].align = max(kernels[k].align, rows[v].align)
    if placing.group_count == 0:
        placing.most_aligned = 1
    kernels[placing.kernel_count].size = end
    return True


cdef inline KernelNumber find_private_kernel(const VariableRow* row, const Placing* placing,
                                             VariableRef v) noexcept nogil:
    """Return the kernel in whose private part variable v lies; a negative number if in none.

    A whole program's memory (STAYS) is in none: it is placed after the private part.
    """
    if row.flags & STAYS:
        return -1
    if row.owner != COMMON:
        return row.owner        # a kernel, or DEAD, which is negative
    if row.flags & EXTERN or placing.first_user[v + 1] - placing.first_user[v] != 1:
        return -1
    return <KernelNumber>placing.users[placing.first_user[v]]


cdef void place_private_variables(Placing* placing) noexcept nogil:
    """Place each kernel's own variables and those it alone uses, then those of whole programs."""
    cdef const VariableRow* rows = placing.rows
    cdef KernelRow* kernels = placing.kernels
    cdef int64_t* offsets = placing.offsets
    cdef size_t i, k
    cdef VariableRef v
    cdef KernelNumber owner
    # The size of list k is counted in first_item[k + 2]. So first_item[k + 1] becomes its start
    # and, while it is filled, its end, which is the start of list k + 1.
    memset(placing.first_item, 0, (placing.kernel_count + 2) * 4)
    for v in range(<VariableRef>placing.variable_count):
        owner = find_private_kernel(&rows[v], placing, v)
        if owner >= 0:
            placing.first_item[owner + 2] += 1
    for k in range(placing.kernel_count):
        placing.first_item[k + 2] += placing.first_item[k + 1]
    for v in range(<VariableRef>placing.variable_count):
        if rows[v].owner >= 0 and not rows[v].flags & STAYS:
            placing.items[placing.first_item[rows[v].owner + 1]] = v
            placing.first_item[rows[v].owner + 1] += 1
    for i in range(placing.common_count):
        owner = find_private_kernel(&rows[placing.order[i]], placing, placing.order[i])
        if owner >= 0:
            placing.items[placing.first_item[owner + 1]] = placing.order[i]
            placing.first_item[owner + 1] += 1
    for k in range(placing.kernel_count):
        sort_list(rows, placing.items + placing.first_item[k], placing.sort_spare,
                  placing.first_item[k + 1] - placing.first_item[k], True)
        for i in range(placing.first_item[k], placing.first_item[k + 1]):
            v = placing.items[i]
            offsets[v] = <int64_t>round_up(kernels[k].size, rows[v].align)
            kernels[k].size = offsets[v] + rows[v].size
            kernels[k].align = max(kernels[k].align, rows[v].align)
    for v in range(<VariableRef>placing.variable_count):
        if rows[v].flags & STAYS and rows[v].owner >= 0:
            place_whole_program(&rows[v], &kernels[rows[v].owner], &offsets[v])


cdef inline void place_whole_program(const VariableRow* row, KernelRow* kernel,
                                     int64_t* offset) noexcept nogil:
    """Place a whole program's shared memory in `kernel`, after all other variables there."""
    offset[0] = <int64_t>round_up(kernel.size, row.align)
    kernel.size = offset[0] + row.size
    kernel.align = max(kernel.align, row.align)
    kernel.flags |= STAYS


cdef void decide_sections(const Placing* placing) noexcept nogil:
    """Decide which shared sections the output keeps, with size and alignment."""
    cdef size_t i
    cdef KernelRow* row
    cdef bint is_common, always_stays, fills = placing.traits & TRAIT_FILLS_SHARED != 0
    for i in range(placing.kernel_count + 1):
        row = &placing.kernels[i]
        is_common = i == placing.kernel_count
        if not row.flags & ARRAYS_ONLY:
            row.align = max(row.align, placing.most_aligned)
        always_stays = row.flags & STAYS
        row.flags = 0
        if placing.aligns_arrays and row.extern_address >= 0:
            row.size = round_up(row.size, row.align)
        if is_common and placing.has_extern:
            row.align = max(row.align, <uint64_t>EXTERN_ALIGN)
        if is_common and not placing.keeps_common:
            row.size = 0
            fills = False
        if row.size == 0 and not always_stays and not (placing.has_extern and (
                row.align == EXTERN_ALIGN or (fills and row.align > EXTERN_ALIGN))):
            continue
        row.flags = SURVIVES
        if always_stays and row.size == 0 and fills:
            continue
        if row.size > 0 or fills:
            row.flags |= HAS_SYMBOL
        if fills or placing.traits & TRAIT_MERCURY:
            row.size += RESERVED


cdef bint check_tables(SharedTables shared) except -1:
    """Raise an exception for invalid rows. Returns whether any variable is an extern array."""
    cdef const VariableRow* rows = shared.variables.rows
    cdef const ExternUseRow* use = shared.extern_uses.rows
    cdef size_t i
    cdef bint has_extern = False
    for i in range(shared.variables.count):
        if not DEAD <= rows[i].owner < shared.kernel_count:
            raise IndexError(f"variable {i}: no kernel {rows[i].owner}")
        if rows[i].size > <uint64_t>0xffffffff or rows[i].align > <uint64_t>0xffffffff:
            raise ValueError(f"variable {i}: size or alignment does not fit 32 bits")
        if rows[i].flags & EXTERN:
            has_extern = True
    for i in range(shared.extern_uses.count):
        if (use[i].kernel >= <size_t>shared.kernel_count
                or not -1 <= use[i].tie < shared.tie_count):
            raise IndexError(f"extern use {i}: no such kernel or tie")
    return has_extern


# With `keeps_common`, .nv_debug.shared has the common part's size, not 0. With `aligns_arrays`, the
# size of a kernel with an extern array is a multiple of the kernel's alignment; with `ties_arrays`
# (-g), so is the array's address. Bytes for the system are reserved with `reserves`, where the
# architectures of `family` have any.
def layout_shared(SharedTables shared not None, int family, *, bint keeps_common,
                  bint aligns_arrays, bint ties_arrays, bint reserves=True):
    """Lay out shared memory: fills `offsets`, `kernels` and `ties`."""
    shared.fill()
    cdef Placing placing
    cdef Py_ssize_t kernel_count = shared.kernel_count, tie_count = shared.tie_count, i
    cdef Scratch scratch
    placing.rows = shared.variables.rows
    placing.variable_count = shared.variables.count
    placing.uses = shared.uses.rows
    placing.use_count = shared.uses.count
    placing.kernel_count = <size_t>kernel_count
    placing.common_count = placing.group_count = 0
    placing.keeps_common = keeps_common
    placing.aligns_arrays = aligns_arrays
    placing.most_aligned = 1
    if not 0 <= family < FAMILY_COUNT:
        raise ValueError(f"no such family: {family}")
    if not (0 <= kernel_count < 2**30 and 0 <= tie_count < 2**30
            and placing.variable_count < 2**31 and placing.use_count < 2**31):
        raise ValueError("a count does not fit 31 bits")
    placing.traits = FAMILY_TRAITS[family] if reserves else 0
    placing.has_extern = check_tables(shared)
    for i in range(<Py_ssize_t>placing.use_count):
        if (placing.uses[i].variable >= placing.variable_count
                or placing.uses[i].kernel >= placing.kernel_count):
            raise IndexError(f"use {i}: no such variable or kernel")
    cdef bytes offsets = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>placing.variable_count * 8)
    cdef bytes kernels = start_kernels(kernel_count)
    cdef bytes addresses = PyBytes_FromStringAndSize(NULL, tie_count * 8)   # by tie
    placing.offsets = <int64_t*>PyBytes_AS_STRING(offsets)
    placing.kernels = placing.arrays.kernels = <KernelRow*>PyBytes_AS_STRING(kernels)
    placing.arrays.addresses = <int64_t*>PyBytes_AS_STRING(addresses)
    placing.arrays.is_relocatable = False
    memset(placing.offsets, 0xff, placing.variable_count * 8)
    scratch_init(&scratch)
    try:
        allocate_placing(&placing, &scratch)
        allocate_ties(&placing.arrays, shared, &scratch)
        if not scratch.failed:
            with nogil:
                index_users(&placing)
                scratch.failed = not place_common_variables(&placing)
                if not scratch.failed:
                    place_private_variables(&placing)
                    placing.arrays.least_align = (
                        placing.most_aligned if aligns_arrays and ties_arrays else 0)
                    place_externs(&placing.arrays)
                    decide_sections(&placing)
        check_memory(not scratch.failed)
    finally:
        scratch_free(&scratch)
    shared.offsets = Offsets(offsets)
    shared.kernels = SharedSizes(kernels)
    shared.ties = Offsets(addresses)


cdef bytes start_kernels(Py_ssize_t count):
    """Return a KernelRow for each kernel and one for .nv_debug.shared, of size 0."""
    cdef bytes kernels = PyBytes_FromStringAndSize(
        NULL, (count + 1) * <Py_ssize_t>sizeof(KernelRow))
    cdef KernelRow* kernel = <KernelRow*>PyBytes_AS_STRING(kernels)
    cdef Py_ssize_t i
    memset(kernel, 0, <size_t>(count + 1) * sizeof(KernelRow))
    for i in range(count + 1):
        kernel[i].align = 1
        kernel[i].extern_address = -1
    return kernels


def layout_relocatable(SharedTables shared not None, *, bint aligns_arrays, bint ties_arrays):
    """Compute sizes for `-r`, which places nothing: fills `kernels` and `ties`, for any family."""
    shared.fill()
    cdef Py_ssize_t kernel_count = shared.kernel_count, tie_count = shared.tie_count
    cdef const VariableRow* rows = shared.variables.rows
    cdef Py_ssize_t count = shared.variables.count, i, k
    cdef ArrayTies arrays
    cdef Scratch scratch
    cdef uint64_t most_aligned = 1
    cdef bint has_extern, always_stays
    if not (0 <= kernel_count < 2**30 and 0 <= tie_count < 2**30):
        raise ValueError("a count does not fit 31 bits")
    has_extern = check_tables(shared)
    cdef bytes kernels = start_kernels(kernel_count)
    cdef bytes addresses = PyBytes_FromStringAndSize(NULL, tie_count * 8)   # by tie
    cdef KernelRow* kernel = <KernelRow*>PyBytes_AS_STRING(kernels)
    arrays.kernels, arrays.addresses = kernel, <int64_t*>PyBytes_AS_STRING(addresses)
    arrays.is_relocatable = True
    scratch_init(&scratch)
    try:
        allocate_ties(&arrays, shared, &scratch)
        check_memory(not scratch.failed)
        with nogil:
            for i in range(count):
                if rows[i].owner == DEAD:
                    continue
                k = kernel_count
                if rows[i].owner == COMMON:
                    most_aligned = max(most_aligned, rows[i].align)
                else:
                    k = rows[i].owner
                kernel[k].size += rows[i].size
                kernel[k].align = max(kernel[k].align, rows[i].align)
                kernel[k].flags |= rows[i].flags & STAYS
            if has_extern:
                kernel[kernel_count].align = max(kernel[kernel_count].align, <uint64_t>EXTERN_ALIGN)
            arrays.least_align = most_aligned if aligns_arrays and ties_arrays else 0
            place_externs(&arrays)
            for k in range(kernel_count + 1):
                if not kernel[k].flags & ARRAYS_ONLY:
                    kernel[k].align = max(kernel[k].align, most_aligned)
                always_stays = kernel[k].flags & STAYS
                kernel[k].flags = 0
                if kernel[k].size > 0:
                    kernel[k].flags = SURVIVES | HAS_SYMBOL
                elif always_stays:
                    kernel[k].flags = SURVIVES
                elif has_extern and (k == kernel_count or kernel[k].align == EXTERN_ALIGN):
                    kernel[k].flags = SURVIVES
                else:
                    continue
                if aligns_arrays and kernel[k].extern_address >= 0:
                    kernel[k].size = round_up(kernel[k].size, kernel[k].align)
                if kernel[k].size <= kernel[k].align:
                    kernel[k].size += kernel[k].align
    finally:
        scratch_free(&scratch)
    shared.kernels = SharedSizes(kernels)
    shared.ties = Offsets(addresses)
