"""Reading relocatable cubins: headers into checked tables, and what tables say of whole files.

After `parse`, every offset, count, name and index in the tables is known to lie inside its file,
so later kernels follow them without looking back.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from base.clocks cimport time_rows
from base.elf64 cimport STO_ENTRY
from base.extents cimport count_files
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.threads cimport MOST_THREADS, claim, release_threads, run_each, run_parts
from base.vector cimport vec_over
from exits.trap cimport is_only_trap
from mercury.ties cimport Tie, keep_tied, tie_key
from pylink._native.tables cimport Faults, Files, ObjectTables, Sections, Symbols, detach_rows
from read.faults cimport F_NONE, Reader
from read.links cimport check_links
from read.notes cimport TOOL_STEP
from read.shares cimport Share, count_share, read_shares, reserve_rows
from read.symbols cimport check_symbols
from rownumbers cimport FILE_NARROW, FILE_UNCLASSED
from sectionkinds cimport IS_CODE, K_SYMTAB
from tables.kinds cimport is_a
from tables.rows cimport FaultRow, FileRow, SectionRow, SymbolRow
from tables.views cimport ObjectsView


def parse(bytes arena, bytes extents, bytearray times=None):
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = count_files(arena, extents), i
    cdef uint64_t size = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef Reader tables
    cdef Share[MOST_THREADS] shares
    cdef Share* last
    cdef size_t helpers = claim(size, n, MOST_THREADS - 1), count = helpers + 1, k
    cdef Scratch scratch
    memset(&tables, 0, sizeof(Reader))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &tables.files, sizeof(FileRow))
        scratch_vector(&scratch, &tables.sections, sizeof(SectionRow))
        scratch_vector(&scratch, &tables.symbols, sizeof(SymbolRow))
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
            run_parts(count_share, shares, count)
            reserve_rows(&scratch, &tables, n, shares, count)
            if not scratch.failed:
                last = read_shares(&tables, shares, count)
                scratch.failed = not last.good and last.reader.fault.reason == F_NONE
        if scratch.failed:
            raise MemoryError
        fault = b"" if last.good else PyBytes_FromStringAndSize(<char*>&last.reader.fault,
                                                                sizeof(FaultRow))
        return (Files(detach_rows(&tables.files)), Sections(detach_rows(&tables.sections)),
                Symbols(detach_rows(&tables.symbols)), Faults(fault))
    finally:
        release_threads(helpers)
        scratch_free(&scratch)


def check_again(ObjectTables objects not None, list numbers not None):
    cdef Reader reader
    cdef FileRow* row
    cdef int32_t number
    cdef Scratch scratch
    cdef bint ok
    reader.arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    vec_over(&reader.files, <void*>objects.files.rows, sizeof(FileRow), objects.files.count)
    vec_over(&reader.sections, <void*>objects.sections.rows, sizeof(SectionRow),
             objects.sections.count)
    vec_over(&reader.symbols, <void*>objects.symbols.rows, sizeof(SymbolRow), objects.symbols.count)
    memset(&reader.fault, 0, sizeof(FaultRow))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &reader.marks, 8)
        ok = not scratch.failed
        for number in numbers if ok else ():
            row = <FileRow*>reader.files.data + number
            reader.file = number
            reader.names = 0
            with nogil:
                ok = (check_symbols(&reader, row, symtab_of(&reader, row))
                      and check_links(&reader, row))
            if not ok:
                break
        if not ok and reader.fault.reason == F_NONE:
            raise MemoryError
    finally:
        scratch_free(&scratch)
    return Faults(b"" if ok else PyBytes_FromStringAndSize(<char*>&reader.fault, sizeof(FaultRow)))


cdef int32_t symtab_of(const Reader* reader, const FileRow* row) noexcept nogil:
    """The index of the symbol table of a file that has one."""
    cdef const SectionRow* sections = <const SectionRow*>reader.sections.data + row.first_section
    cdef int32_t i = 0
    while sections[i].kind != K_SYMTAB:
        i += 1
    return i


def find_changes(Files files not None):
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
    cdef const FileRow* f = files.rows
    cdef size_t i
    cdef list numbers = []
    for i in range(files.count):
        if f[i].flags & bit:
            numbers.append(i)
    return numbers


def find_files_outside(Files files not None, uint64_t low, uint64_t high):
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


# A search over all files.
ctypedef struct FileSearch:
    ObjectsView objects
    bint every
    uint8_t* found              # by file
    Tie* tie
    bint names                  # keys tell of these, too


cdef FileSearch start_search(ObjectTables objects):
    cdef FileSearch search
    memset(&search, 0, sizeof(FileSearch))
    objects.view(&search.objects)
    return search


def find_kernels(ObjectTables objects not None, *, bint every):
    cdef size_t n = objects.files.count, i
    cdef FileSearch search = start_search(objects)
    cdef bytes has_kernel = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>n)
    search.every = every
    search.found = <uint8_t*>PyBytes_AS_STRING(has_kernel)
    with nogil:
        run_each(find_kernel, &search, n, search.objects.arena_size)
    return [i for i in range(n) if search.found[i]]


cdef void find_kernel(void* context, size_t number) noexcept nogil:
    """Mark a file with a kernel whose code is rewritten."""
    cdef FileSearch* search = <FileSearch*>context
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
        return every or has_operation(code, size, OP_FENCE) or is_only_trap(code, size)
    return every and has_operation(code, size, OP_EXIT)


cdef bint has_operation(const uint8_t* code, uint64_t size, uint8_t operation) noexcept nogil:
    """Whether an instruction has these low 8 bits, and 9 above them."""
    cdef uint64_t offset
    for offset in range(0, size, 16):
        if code[offset] == operation and (code[offset + 1] & 0x0f) == 0x09:
            return True
    return False


def find_ties(ObjectTables objects not None):
    cdef size_t n = objects.files.count, i, count = 0
    cdef FileSearch search = start_search(objects)
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
            run_each(find_key, &search, n, search.objects.arena_size)
            for i in range(n):
                tie[count] = tie[i]
                count += tie[i].key != 0
            count = keep_tied(tie, count)
            search.names = True
            run_each(find_key, &search, count, search.objects.arena_size)
            count = keep_tied(tie, count)
        return sorted([tie[i].file for i in range(count)])
    finally:
        scratch_free(&scratch)


cdef void find_key(void* context, size_t number) noexcept nogil:
    cdef FileSearch* search = <FileSearch*>context
    cdef Tie* tie = &search.tie[number]
    tie.key = tie_key(search.objects.arena, search.objects.sections,
                      &search.objects.files[tie.file], search.names)
