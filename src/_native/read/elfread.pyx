"""Reading relocatable cubins: headers into checked tables, and what tables say of whole files.

After `parse`, every offset, count, name and index in the tables is known to lie inside its file,
so native functions that run later follow them without checks.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memset

from base.clocks cimport time_rows
from base.extents cimport count_files
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.threads cimport MOST_THREADS, claim, release_threads, run_each, run_parts
from base.vector cimport vec_over
from elfnumbers cimport STO_ENTRY
from exits.trap cimport is_only_trap
from mercury.ties cimport Tie, keep_tied, tie_key
from outcomes cimport F_NONE
from pylink._native.results cimport ObjectTables
from pylink._native.tables cimport Faults, Files, Sections, Symbols, detach_rows
from read.faults cimport Reader
from read.links cimport check_references
from read.notes cimport TOOL_STEP
from read.shares cimport Share, count_rows_of_share, read_shares, reserve_rows
from read.symbols cimport check_symbols
from rownumbers cimport FILE_NARROW, FILE_UNCLASSED
from sectionkinds cimport IS_CODE, K_SYMTAB
from tables.kinds cimport is_a
from tables.rows cimport (
    FaultRow, FileCounter, FileNumber, FileRow, SectionRef, SectionRow, SymbolRow, function_symbol,
)
from tables.views cimport ObjectsView


# `extents` has offset and size of each file in `arena` (u64). `times` gets a TimeRow for each file.
def parse(bytes arena not None, bytes extents not None, bytearray times=None):
    """Return checked tables of all files in buffer `arena`: (files, sections, symbols, faults)."""
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)   # offset, size
    cdef Py_ssize_t file_count = count_files(arena, extents), i
    cdef uint64_t size = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef Reader tables
    cdef Share[MOST_THREADS] shares         # parts of the files, one for each thread
    cdef uint64_t[MOST_THREADS] spent       # by thread: its processor time so far
    cdef Share* last                        # first share with a fault or no memory, else the last
    cdef size_t helpers = claim(size, file_count, MOST_THREADS - 1)     # threads besides this one
    cdef size_t share_count = helpers + 1, number
    cdef Scratch scratch
    memset(&tables, 0, sizeof(Reader))
    memset(spent, 0, sizeof(spent))
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &tables.files, sizeof(FileRow))
        scratch_vector(&scratch, &tables.sections, sizeof(SectionRow))
        scratch_vector(&scratch, &tables.symbols, sizeof(SymbolRow))
        i = 0
        for number in range(share_count):
            scratch_vector(&scratch, &shares[number].reader.marks, sizeof(uint64_t))
            shares[number].arena = <const uint8_t*>PyBytes_AS_STRING(arena)
            shares[number].extent = extent
            shares[number].times = time_rows(times, file_count)
            shares[number].spent = spent
            shares[number].most_sections = shares[number].most_symbols = 0
            shares[number].first_file = i
            while (i < file_count
                    and (number == helpers or extent[2 * i] < size // share_count * (number + 1))):
                i += 1
            shares[number].end_file = i
        with nogil:
            run_parts(count_rows_of_share, shares, share_count)
            reserve_rows(&scratch, &tables, file_count, shares, share_count)
            if not scratch.failed:
                last = read_shares(&tables, shares, share_count)
                scratch.failed = not last.is_read and last.reader.fault.reason == F_NONE
        check_memory(not scratch.failed)
        fault = (b"" if last.is_read
                 else PyBytes_FromStringAndSize(<char*>&last.reader.fault, sizeof(FaultRow)))
        return (Files(detach_rows(&tables.files)), Sections(detach_rows(&tables.sections)),
                Symbols(detach_rows(&tables.symbols)), Faults(fault))
    finally:
        release_threads(helpers)
        scratch_free(&scratch)


def check_again(ObjectTables objects not None, list numbers not None):
    """Check files whose contents were changed since `parse`, and return the first fault, if any."""
    cdef Reader reader
    cdef FileRow* file
    cdef FileNumber number
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
        scratch_vector(&scratch, &reader.marks, sizeof(uint64_t))
        ok = not scratch.failed
        for number in numbers if ok else ():
            file = <FileRow*>reader.files.data + number
            reader.file = number
            reader.names = 0
            with nogil:
                ok = (check_symbols(&reader, file, find_symtab(&reader, file))
                      and check_references(&reader, file))
            if not ok:
                break
        check_memory(ok or reader.fault.reason != F_NONE)
    finally:
        scratch_free(&scratch)
    return Faults(b"" if ok else PyBytes_FromStringAndSize(<char*>&reader.fault, sizeof(FaultRow)))


cdef int32_t find_symtab(const Reader* reader, const FileRow* file) noexcept nogil:
    """Return the section index of .symtab in a file, which must have one."""
    cdef const SectionRow* sections = <const SectionRow*>reader.sections.data + file.first_section
    cdef int32_t i = 0
    while sections[i].kind != K_SYMTAB:
        i += 1
    return i


def find_changes(Files files not None):
    """Return the numbers of files of another toolkit, target or flags than the previous file's."""
    cdef const FileRow* rows = files.rows
    cdef size_t i
    cdef list numbers = []
    for i in range(files.count):
        if (i == 0 or rows[i].flags & (FILE_NARROW | FILE_UNCLASSED)
                or rows[i].flags != rows[i - 1].flags or rows[i].toolkit != rows[i - 1].toolkit
                or rows[i].patch != rows[i - 1].patch or rows[i].sm != rows[i - 1].sm
                or rows[i].ptx_sm != rows[i - 1].ptx_sm or rows[i].format != rows[i - 1].format):
            numbers.append(i)
    return numbers


def find_flagged(Files files not None, int bit):
    """Return the numbers of the files with this bit in the column `flags`, ascending."""
    cdef const FileRow* rows = files.rows
    cdef size_t i
    cdef list numbers = []
    for i in range(files.count):
        if rows[i].flags & bit:
            numbers.append(i)
    return numbers


def find_files_outside(Files files not None, uint64_t low, uint64_t high):
    """Return the numbers of the files compiled by a tool below `low`, or by one from `high` on."""
    cdef const FileRow* rows = files.rows
    cdef size_t i
    cdef uint64_t tool
    cdef list numbers = []
    for i in range(files.count):
        tool = <uint64_t>rows[i].toolkit * TOOL_STEP + rows[i].patch
        if not low <= tool < high:
            numbers.append(i)
    return numbers


cdef enum:
    # Low 8 bits of the opcode of an instruction; the 4 bits above are OP_GROUP for both.
    OP_FENCE = 0x92             # MEMBAR
    OP_EXIT = 0x4d
    OP_GROUP = 0x9


# A search over all files: for kernels, or for ties, i.e. files whose Mercury sections agree.
ctypedef struct FileSearch:
    ObjectsView objects
    bint every                  # kernels: all, and functions that exit (`is_rewritten_code`)
    uint8_t* has_kernel         # by input file: 1 if it has code that is rewritten; for kernels
    Tie* ties                   # ties: rows of the files that are compared
    bint with_names             # ties: keys also tell names of sections apart


cdef FileSearch start_search(ObjectTables objects):
    """Return a search of the files of a link; the caller sets the fields after `objects`."""
    cdef FileSearch search
    memset(&search, 0, sizeof(FileSearch))
    objects.view(&search.objects)
    return search


def find_kernels(ObjectTables objects not None, *, bint every):
    """Return the numbers of the files whose code is rewritten where it exits, ascending."""
    # Device functions, and kernels that have no fence and do more than trap, count only with
    # `every`.
    cdef size_t file_count = objects.files.count, i
    cdef FileSearch search = start_search(objects)
    cdef bytes has_kernel = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>file_count)
    search.every = every
    search.has_kernel = <uint8_t*>PyBytes_AS_STRING(has_kernel)
    with nogil:
        run_each(find_kernel, &search, file_count, search.objects.arena_size)
    return [i for i in range(file_count) if search.has_kernel[i]]


cdef void find_kernel(void* context, FileCounter number) noexcept nogil:
    """Mark a file if it has code that is rewritten where it exits; a task of `run_each`."""
    cdef FileSearch* search = <FileSearch*>context
    cdef const FileRow* file = &search.objects.files[number]
    cdef const SectionRow* section
    cdef const SymbolRow* symbol
    cdef SectionRef i
    search.has_kernel[number] = False
    for i in range(file.first_code, file.code_end):
        section = &search.objects.sections[i]
        if not is_a(section.kind, IS_CODE):
            continue
        symbol = &search.objects.symbols[function_symbol(section)]
        if is_rewritten_code(symbol.other & STO_ENTRY != 0, search.every,
                             search.objects.arena + section.offset, section.size):
            search.has_kernel[number] = True
            return


cdef bint is_rewritten_code(bint is_kernel, bint every, const uint8_t* code,
                            uint64_t size) noexcept nogil:
    """Return whether the code of a function is rewritten where it exits.

    A kernel is rewritten if it has a fence or only traps; with `every`, any kernel is. A device
    function is rewritten only with `every`, and only if it has an EXIT.
    """
    if is_kernel:
        return every or has_operation(code, size, OP_FENCE) or is_only_trap(code, size)
    return every and has_operation(code, size, OP_EXIT)


cdef bint has_operation(const uint8_t* code, uint64_t size, uint8_t operation) noexcept nogil:
    """Return whether code has an instruction with this OP_ number."""
    cdef uint64_t offset
    for offset in range(0, size, 16):       # bytes of an instruction
        if code[offset] == operation and (code[offset + 1] & 0x0f) == OP_GROUP:
            return True
    return False


def find_ties(ObjectTables objects not None):
    """Return the files whose Mercury sections agree with another file's: kinds, sizes, names."""
    cdef size_t file_count = objects.files.count, i, count = 0
    cdef FileSearch search = start_search(objects)
    cdef Tie* ties
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        ties = search.ties = <Tie*>scratch_zeros(&scratch, file_count, sizeof(Tie))
        check_memory(not scratch.failed)
        for i in range(file_count):
            ties[i].file = <FileNumber>i
        with nogil:
            run_each(find_key, &search, file_count, search.objects.arena_size)
            for i in range(file_count):
                ties[count] = ties[i]
                count += ties[i].key != 0
            count = keep_tied(ties, count)
            search.with_names = True
            run_each(find_key, &search, count, search.objects.arena_size)
            count = keep_tied(ties, count)
        return sorted([ties[i].file for i in range(count)])
    finally:
        scratch_free(&scratch)


cdef void find_key(void* context, size_t number) noexcept nogil:
    """Set the key of Tie `number`: equal if Mercury sections agree; a task of `run_each`."""
    cdef FileSearch* search = <FileSearch*>context
    cdef Tie* tie = &search.ties[number]
    tie.key = tie_key(search.objects.arena, search.objects.sections,
                      &search.objects.files[tie.file], search.with_names)
