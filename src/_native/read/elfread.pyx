"""Reading relocatable cubins: headers into checked tables, and what tables say of whole files.

After `parse`, every offset, count, name and index in the tables is known to lie inside its file,
so later kernels follow them without looking back.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from sectionkinds cimport IS_CODE, K_SYMTAB
from base.clocks cimport time_rows
from base.elf64 cimport STO_ENTRY
from read.faults cimport F_NONE, Reader
from read.links cimport check_links
from read.notes cimport TOOL_STEP
from read.symbols cimport check_symbols
from exits.trap cimport only_traps
from base.extents cimport count_files
from pylink._native.tables cimport Faults, Files, ObjectTables, Sections, Symbols, take_rows
from tables.kinds cimport is_a
from tables.rows cimport FILE_NARROW, FILE_UNCLASSED, FaultRow, FileRow, SectionRow, SymbolRow
from mercury.ties cimport Tie, keep_tied, tie_key
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport vec_over
from base.threads cimport MOST_THREADS, claim, for_each, give_back, in_parts
from tables.views cimport ObjectsView
from read.shares cimport Share, count_share, read_shares, reserve_rows


def parse(bytes arena, bytes extents, bytearray times=None):
    """Check and tabulate every file of the arena.

    `extents` comes from `inputfiles.read_files`. Returns `(files, sections, symbols, faults)`, the
    last empty when all is well; else it has the first fault, and the tables what stands before it.
    `times` takes a TimeRow of each file, without processor times.
    """
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = count_files(arena, extents), i
    cdef uint64_t size = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef Reader whole
    cdef Share[MOST_THREADS] shares
    cdef Share* last
    cdef size_t helpers = claim(size, n, MOST_THREADS - 1), count = helpers + 1, k
    cdef Scratch scratch
    memset(&whole, 0, sizeof(Reader))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &whole.files, sizeof(FileRow))
        scratch_vector(&scratch, &whole.sections, sizeof(SectionRow))
        scratch_vector(&scratch, &whole.symbols, sizeof(SymbolRow))
        i = 0
        for k in range(count):
            scratch_vector(&scratch, &shares[k].reader.marks, 8)
            shares[k].arena = <const uint8_t*>PyBytes_AS_STRING(arena)
            shares[k].extent = extent
            shares[k].times = time_rows(times, n)
            shares[k].sections = shares[k].symbols = 0
            shares[k].first = i
            while i < n and (k == helpers or extent[2 * i] < size // count * (k + 1)):
                i += 1
            shares[k].end = i
        with nogil:
            in_parts(count_share, shares, count)
            reserve_rows(&scratch, &whole, n, shares, count)
            if not scratch.failed:
                last = read_shares(&whole, shares, count)
                scratch.failed = not last.good and last.reader.fault.reason == F_NONE
        if scratch.failed:
            raise MemoryError
        fault = b"" if last.good else PyBytes_FromStringAndSize(<char*>&last.reader.fault,
                                                                sizeof(FaultRow))
        return (Files(take_rows(&whole.files)), Sections(take_rows(&whole.sections)),
                Symbols(take_rows(&whole.symbols)), Faults(fault))
    finally:
        give_back(helpers)
        scratch_free(&scratch)


def check_again(ObjectTables objects not None, list numbers not None):
    """The first thing that is wrong with files whose contents were changed since `parse`.

    What the rows say already is written to them once more, and nothing else.
    """
    cdef Reader r
    cdef FileRow* row
    cdef int32_t number
    cdef Scratch scratch
    cdef bint ok
    r.arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    vec_over(&r.files, <void*>objects.files.rows, sizeof(FileRow), objects.files.count)
    vec_over(&r.sections, <void*>objects.sections.rows, sizeof(SectionRow), objects.sections.count)
    vec_over(&r.symbols, <void*>objects.symbols.rows, sizeof(SymbolRow), objects.symbols.count)
    memset(&r.fault, 0, sizeof(FaultRow))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &r.marks, 8)
        ok = not scratch.failed
        for number in numbers if ok else ():
            row = <FileRow*>r.files.data + number
            r.file = number
            r.names = 0
            with nogil:
                ok = check_symbols(&r, row, symtab_of(&r, row)) and check_links(&r, row)
            if not ok:
                break
        if not ok and r.fault.reason == F_NONE:
            raise MemoryError
    finally:
        scratch_free(&scratch)
    return Faults(b"" if ok else PyBytes_FromStringAndSize(<char*>&r.fault, sizeof(FaultRow)))


cdef int32_t symtab_of(const Reader* r, const FileRow* row) noexcept nogil:
    """The index of the symbol table of a file that has one."""
    cdef const SectionRow* sections = <const SectionRow*>r.sections.data + row.first_section
    cdef int32_t i = 0
    while sections[i].kind != K_SYMTAB:
        i += 1
    return i


def find_changes(Files files not None):
    """Numbers of the files that say other things of themselves than the file before.

    With them all that a link warns of: of 32-bit addresses, and without ISA_CLASS.
    """
    cdef const FileRow* f = files.rows
    cdef size_t i
    cdef list numbers = []
    for i in range(files.count):
        if (i == 0 or f[i].flags & (FILE_NARROW | FILE_UNCLASSED) or f[i].flags != f[i - 1].flags
                or f[i].toolkit != f[i - 1].toolkit or f[i].patch != f[i - 1].patch
                or f[i].sm != f[i - 1].sm
                or f[i].ptx_sm != f[i - 1].ptx_sm or f[i].format != f[i - 1].format):
            numbers.append(i)
    return numbers


def find_flagged(Files files not None, int bit):
    """Numbers of the files that say it of themselves."""
    cdef const FileRow* f = files.rows
    cdef size_t i
    cdef list numbers = []
    for i in range(files.count):
        if f[i].flags & bit:
            numbers.append(i)
    return numbers


def find_apart(Files files not None, uint64_t low, uint64_t high):
    """Numbers of the files that a tool below `low`, or one from `high` on, made."""
    cdef const FileRow* f = files.rows
    cdef size_t i
    cdef uint64_t tool
    cdef list numbers = []
    for i in range(files.count):
        tool = <uint64_t>f[i].toolkit * TOOL_STEP + f[i].patch
        if not low <= tool < high:
            numbers.append(i)
    return numbers


cdef enum:
    OP_FENCE = 0x92
    OP_EXIT = 0x4d


# What is looked for in each file.
ctypedef struct Search:
    ObjectsView objects
    bint every
    uint8_t* found              # by file
    Tie* tie
    bint names                  # keys tell of these, too


cdef Search search_of(ObjectTables objects):
    cdef Search search
    memset(&search, 0, sizeof(Search))
    objects.view(&search.objects)
    return search


def find_kernels(ObjectTables objects not None, bint every):
    """Numbers of the files with a kernel that has a fence or, with `every`, with code that exits.

    Kernels that only trap count as well. A fence is an instruction with the low 12 bits 0x992
    (MEMBAR). Kernels exit, and functions with an EXIT (0x94d).
    """
    cdef size_t n = objects.files.count, i
    cdef Search search = search_of(objects)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>n)
    search.every = every
    search.found = <uint8_t*>PyBytes_AS_STRING(found)
    with nogil:
        for_each(find_kernel, &search, n, search.objects.arena_size)
    return [i for i in range(n) if search.found[i]]


cdef void find_kernel(void* context, size_t number) noexcept nogil:
    cdef Search* search = <Search*>context
    cdef const FileRow* file = &search.objects.files[number]
    cdef const SectionRow* s
    cdef uint32_t i
    search.found[number] = False
    for i in range(file.first_code, file.code_end):
        s = &search.objects.sections[i]
        if is_a(s.kind, IS_CODE) and is_rewritten(
                search.objects.symbols[s.target].other & STO_ENTRY != 0, search.every,
                search.objects.arena + s.offset, s.size):
            search.found[number] = True
            return


cdef bint is_rewritten(bint kernel, bint every, const uint8_t* code, uint64_t size) noexcept nogil:
    if kernel:
        return every or has_operation(code, size, OP_FENCE) or only_traps(code, size)
    return every and has_operation(code, size, OP_EXIT)


cdef bint has_operation(const uint8_t* code, uint64_t size, uint8_t operation) noexcept nogil:
    """Whether an instruction has these low 8 bits, and 9 above them."""
    cdef uint64_t at
    for at in range(0, size, 16):
        if code[at] == operation and (code[at + 1] & 0x0f) == 0x09:
            return True
    return False


def find_ties(ObjectTables objects not None):
    """Numbers of the files whose Mercury sections agree in kinds, sizes and names with another's.

    Files without Mercury debug sections never agree.
    """
    cdef size_t n = objects.files.count, i, count = 0
    cdef Search search = search_of(objects)
    cdef Tie* tie
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        tie = search.tie = <Tie*>scratch_zeros(&scratch, n, sizeof(Tie))
        if scratch.failed:
            raise MemoryError
        for i in range(n):
            tie[i].file = <int32_t>i
        with nogil:
            for_each(find_key, &search, n, search.objects.arena_size)
            for i in range(n):
                tie[count] = tie[i]
                count += tie[i].key != 0
            count = keep_tied(tie, count)
            search.names = True
            for_each(find_key, &search, count, search.objects.arena_size)
            count = keep_tied(tie, count)
        return sorted([tie[i].file for i in range(count)])
    finally:
        scratch_free(&scratch)


cdef void find_key(void* context, size_t number) noexcept nogil:
    cdef Search* search = <Search*>context
    cdef Tie* tie = &search.tie[number]
    tie.key = tie_key(search.objects.arena, search.objects.sections,
                      &search.objects.files[tie.file], search.names)
