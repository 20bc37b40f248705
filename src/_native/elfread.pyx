"""Reading relocatable cubins: file bytes into one arena, headers into checked tables.

After `parse`, every offset, count, name and index in the tables is known to lie inside its file,
so later kernels follow them without looking back.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset, strlen

from clocks cimport *
from elf64 cimport *
from elffaults cimport *
from elfkinds cimport *
from elflinks cimport check_links
from elfsections cimport read_sections
from elfsymbols cimport read_symbols
from heap cimport *
from pages cimport *
from rows cimport *
from ties cimport *
from vec cimport *
from workers cimport *

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char* path, int flags)
    int O_RDONLY
    int O_CLOEXEC

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct Stat "struct stat":
        uint64_t st_dev
        uint64_t st_ino
        int64_t st_size
        uint32_t st_mode
    int c_stat "stat"(const char* path, Stat* status)
    bint S_ISREG(uint32_t mode)

cdef extern from "<unistd.h>" nogil:
    ssize_t c_read "read"(int fd, void* data, size_t size)
    int c_close "close"(int fd)

cdef enum:
    ALIGN = 16                  # every file starts at a multiple of this in the arena


cdef inline uint64_t padded(uint64_t size) noexcept nogil:
    return (size + ALIGN - 1) & ~<uint64_t>(ALIGN - 1)


cdef uint64_t place_files(list sizes, uint64_t* extent) except? 0:
    """Fill the rows of an arena, offset and size of each file; returns the size of all."""
    cdef uint64_t total = 0, size
    cdef Py_ssize_t i
    for i in range(len(sizes)):
        size = sizes[i]
        extent[2 * i] = total
        extent[2 * i + 1] = size
        total += padded(size)
    return total


def read_files(list paths, list sizes, list data, bytearray times=None):
    """Read every input into one arena.

    `paths[i]` is a path as bytes, or None when `data[i]` already holds the bytes; `sizes[i]` is
    the size in bytes either way. Returns `(arena, extents, failed, error)`: the arena, packed
    rows of (offset, size) as uint64, and the first input that could not be read with its errno
    (0: it became shorter), or -1. `times` takes a TimeRow of each input.
    """
    cdef Py_ssize_t n = len(paths), i
    cdef bytes path, chunk
    if len(sizes) != n or len(data) != n:
        raise ValueError("one size and one place for data per path")
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, n * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    cdef uint64_t total = place_files(sizes, extent)
    cdef bytes arena = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    cdef Reading r
    r.base = <uint8_t*>PyBytes_AS_STRING(arena)
    r.extent = extent
    cdef bytes outcomes = PyBytes_FromStringAndSize(NULL, n * sizeof(int))
    r.outcome = <int*>PyBytes_AS_STRING(outcomes)
    cdef bytes sources = PyBytes_FromStringAndSize(NULL, n * sizeof(char*))
    r.path = <const char**>PyBytes_AS_STRING(sources)
    cdef bytes contents = PyBytes_FromStringAndSize(NULL, n * sizeof(char*))
    r.data = <const char**>PyBytes_AS_STRING(contents)
    r.times = time_rows(times, n)
    r.main = pthread_self()
    r.spent[0] = r.spent[1] = 0
    for i in range(n):
        if paths[i] is None:
            chunk = data[i]
            if PyBytes_GET_SIZE(chunk) != <Py_ssize_t>extent[2 * i + 1]:
                raise ValueError(f"input {i} changed its size")
            r.path[i] = NULL
            r.data[i] = PyBytes_AS_STRING(chunk)
        else:
            path = paths[i]
            r.path[i] = PyBytes_AS_STRING(path)
    with nogil:
        prefer_large_pages(r.base, total)
        for_each(read_input, &r, n, total)
    for i in range(n):
        if r.outcome[i] != 0:
            return arena, extents, i, max(r.outcome[i], 0)
    return arena, extents, -1, 0


def gather(list sizes, produce):
    """An arena of files that `produce(i)` gives one by one, as bytes of `sizes[i]`.

    Each is let go before the next is asked for. Returns `(arena, extents)` as `read_files`; what
    comes in another size is empty there, and its place is left untouched: nobody but a damaged
    input says how large that is.
    """
    cdef Py_ssize_t n = len(sizes), i
    cdef uint64_t size
    cdef bytes chunk
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, n * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    cdef uint64_t total = place_files(sizes, extent)
    cdef bytes arena = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    cdef uint8_t* base = <uint8_t*>PyBytes_AS_STRING(arena)
    prefer_large_pages(base, total)
    for i in range(n):
        chunk = produce(i)
        size = extent[2 * i + 1]
        if <uint64_t>PyBytes_GET_SIZE(chunk) != size:
            extent[2 * i + 1] = 0
            continue
        memcpy(base + extent[2 * i], PyBytes_AS_STRING(chunk), size)
        memset(base + extent[2 * i] + size, 0, padded(size) - size)
    return arena, extents


def measure(list paths, uint64_t largest, output):
    """The size of each file in bytes, or -1 of what is not sure to be an input.

    Sure is a regular file that holds between 1 and `largest` bytes and is not `output`, a pair of
    device and inode or None. `paths` are bytes; None has the size -1.
    """
    cdef Py_ssize_t n = len(paths), i
    cdef bytes path
    cdef Measuring m
    cdef bytes found = PyBytes_FromStringAndSize(NULL, n * sizeof(int64_t))
    cdef bytes sources = PyBytes_FromStringAndSize(NULL, n * sizeof(char*))
    m.size = <int64_t*>PyBytes_AS_STRING(found)
    m.path = <const char**>PyBytes_AS_STRING(sources)
    m.largest = largest
    m.has_output = output is not None
    if m.has_output:
        m.output_device, m.output_inode = output
    for i in range(n):
        m.path[i] = NULL
        if paths[i] is not None:
            path = paths[i]
            if strlen(PyBytes_AS_STRING(path)) == <size_t>PyBytes_GET_SIZE(path):
                m.path[i] = PyBytes_AS_STRING(path)
    with nogil:
        for_each(measure_input, &m, n, n * AS_BYTES)
    return [m.size[i] for i in range(n)]


cdef enum:
    AS_BYTES = 4096             # moved in the time of one `stat`


ctypedef struct Measuring:
    const char** path           # NULL: there is no file to look at
    int64_t* size
    uint64_t largest
    bint has_output
    uint64_t output_device
    uint64_t output_inode


cdef void measure_input(void* context, size_t item) noexcept nogil:
    cdef Measuring* m = <Measuring*>context
    cdef Stat status
    m.size[item] = -1
    if m.path[item] == NULL or c_stat(m.path[item], &status) != 0 or not S_ISREG(status.st_mode):
        return
    if status.st_size <= 0 or <uint64_t>status.st_size > m.largest:
        return
    if (m.has_output and status.st_dev == m.output_device and status.st_ino == m.output_inode):
        return
    m.size[item] = status.st_size


ctypedef struct Reading:
    uint8_t* base
    const uint64_t* extent
    const char** path           # NULL: the bytes are in `data`
    const char** data
    int* outcome                # what `read_one` says
    TimeRow* times              # NULL: nobody wants to know
    pthread_t main
    uint64_t spent[2]           # by thread, see start_item


cdef TimeRow* time_rows(bytearray times, Py_ssize_t n) except? NULL:
    """The rows of `times`, one an item; NULL when there is no such table."""
    if times is None:
        return NULL
    if PyByteArray_GET_SIZE(times) != n * <Py_ssize_t>sizeof(TimeRow):
        raise ValueError(f"{n} items need {n * sizeof(TimeRow)} bytes of times")
    return <TimeRow*>PyByteArray_AS_STRING(times)


cdef void read_input(void* context, size_t item) noexcept nogil:
    cdef Reading* r = <Reading*>context
    cdef uint64_t size = r.extent[2 * item + 1]
    cdef uint8_t* place = r.base + r.extent[2 * item]
    cdef TimeRow* row = NULL if r.times == NULL else &r.times[item]
    start_item(row, not pthread_equal(pthread_self(), r.main), r.spent)
    memset(place + size, 0, padded(size) - size)
    r.outcome[item] = 0
    if r.path[item] == NULL:
        memcpy(place, r.data[item], size)
    else:
        r.outcome[item] = read_one(r.path[item], place, size)
    end_item(row, r.spent)


cdef int read_one(const char* path, uint8_t* place, uint64_t size) noexcept nogil:
    """0, an errno, or -1 when the file ends before `size` bytes."""
    cdef int fd = c_open(path, O_RDONLY | O_CLOEXEC), failure = 0
    cdef uint64_t done = 0
    cdef ssize_t got
    if fd < 0:
        return errno
    while done < size:
        got = c_read(fd, place + done, size - done)
        if got < 0:
            if errno == EINTR:
                continue
            failure = errno
            break
        if got == 0:
            failure = -1
            break
        done += <uint64_t>got
    c_close(fd)
    return failure


def keep_memory():
    """Make the heap of this process one region of large pages that nothing is returned from."""
    with nogil:
        widen_heap(HEAP_STEP)


def classify(bytes arena, bytes extents):
    """What each file of the arena is: an InputKind byte each, nothing when all are cubins."""
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(extents) // 16, i
    cdef uint64_t limit = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, n)
    cdef uint8_t* kind = <uint8_t*>PyBytes_AS_STRING(kinds)
    cdef uint8_t any_other = IN_CUBIN
    for i in range(n):
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"file {i} runs past the arena")
    with nogil:
        for i in range(n):
            kind[i] = input_kind(base + extent[2 * i], extent[2 * i + 1])
            any_other |= kind[i]
    return kinds if any_other else b""


def parse(bytes arena, bytes extents, bytes rules, bytearray times=None):
    """Check and tabulate every file of the arena.

    `extents` comes from `read_files`, `rules` from `pylink.sections.rules`. Returns `(files,
    sections, symbols, fault)`: packed FileRow, SectionRow and SymbolRow tables, and a FaultRow,
    empty when all is well. `times` takes a TimeRow of each file, without processor times.
    """
    cdef Reader r
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(extents) // 16, i
    cdef uint64_t limit = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef bint ok = True
    cdef TimeRow* row = time_rows(times, n)
    r.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    r.rules = <const RuleRow*>PyBytes_AS_STRING(rules)
    r.rule_count = PyBytes_GET_SIZE(rules) // <Py_ssize_t>sizeof(RuleRow)
    cdef uint64_t section_room = 0, symbol_room = 0
    vec_init(&r.marks, 8)
    memset(&r.fault, 0, sizeof(FaultRow))
    for i in range(n):
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"file {i} runs past the arena")
    with nogil:
        for i in range(n):
            count_rows(r.arena + extent[2 * i], extent[2 * i + 1], &section_room, &symbol_room)
    cdef bytes files = vec_over_table(&r.files, sizeof(FileRow), n)
    cdef bytes sections = vec_over_table(&r.sections, sizeof(SectionRow), section_room)
    cdef bytes symbols = vec_over_table(&r.symbols, sizeof(SymbolRow), symbol_room)
    with nogil:
        for i in range(n):
            if row != NULL:
                row[i].start = nanoseconds(CLOCK_MONOTONIC)
            if not read_file(&r, <int32_t>i, extent[2 * i], extent[2 * i + 1]):
                ok = False
                break
            if row != NULL:
                row[i].wall = nanoseconds(CLOCK_MONOTONIC) - row[i].start
    vec_free(&r.marks)
    if not ok and r.fault.reason == F_NONE:
        raise MemoryError
    fault = b"" if ok else PyBytes_FromStringAndSize(<char*>&r.fault, sizeof(FaultRow))
    return (vec_table(&r.files, files), vec_table(&r.sections, sections),
            vec_table(&r.symbols, symbols), fault)


cdef inline void count_rows(const uint8_t* image, uint64_t size, uint64_t* sections,
                            uint64_t* symbols) noexcept nogil:
    """Add up how many rows the file can have: what `read_file` refuses of it needs none."""
    cdef const Ehdr* header = <const Ehdr*>image
    cdef const Shdr* table
    cdef uint64_t count, i, most = 0
    if (size < sizeof(Ehdr) or header.e_shoff > size
            or size - header.e_shoff < sizeof(Shdr)):
        return
    table = <const Shdr*>(image + header.e_shoff)
    count = header.e_shnum if header.e_shnum else table[0].sh_size
    if count > (size - header.e_shoff) // sizeof(Shdr):
        return
    sections[0] += count
    for i in range(count):      # one of them is the symbol table
        if table[i].sh_type == SHT_SYMTAB:
            most = max(most, min(table[i].sh_size, size))
    symbols[0] += most // sizeof(Sym)


cdef bint read_file(Reader* r, int32_t file, uint64_t offset, uint64_t size) noexcept nogil:
    cdef const uint8_t* image = r.arena + offset
    cdef const Ehdr* header = <const Ehdr*>image
    cdef const Shdr* table
    cdef uint64_t count, names
    cdef FileRow* row
    if size < sizeof(Ehdr):
        return refuse(r, file, -1, -1, F_TOO_SHORT, size, sizeof(Ehdr))
    if memcmp(image, b"\x7fELF", 4) != 0:
        return refuse(r, file, -1, -1, F_NOT_ELF, 0, 0)
    if header.e_ident[4] != 2:
        return refuse(r, file, -1, -1, F_CLASS, header.e_ident[4], 2)
    if header.e_ident[5] != 1:
        return refuse(r, file, -1, -1, F_ENDIAN, header.e_ident[5], 1)
    if header.e_machine != EM_CUDA:
        return refuse(r, file, -1, -1, F_MACHINE, header.e_machine, EM_CUDA)
    if header.e_ident[6] != 1:
        return refuse(r, file, -1, -1, F_VERSION, header.e_ident[6], 1)
    if header.e_version != 1:
        return refuse(r, file, -1, -1, F_VERSION, header.e_version, 1)
    if header.e_ident[7] != ELFOSABI_CUDA:
        return refuse(r, file, -1, -1, F_OSABI, header.e_ident[7], ELFOSABI_CUDA)
    if header.e_ident[8] != CUDA_ABI_VERSION:
        return refuse(r, file, -1, -1, F_ABI, header.e_ident[8], CUDA_ABI_VERSION)
    if header.e_type != ET_REL:
        return refuse(r, file, -1, -1, F_NOT_RELOCATABLE, header.e_type, ET_REL)
    if (header.e_shentsize != sizeof(Shdr) or header.e_shoff < sizeof(Ehdr)
            or header.e_shoff > size
            or size - header.e_shoff < sizeof(Shdr)):
        return refuse(r, file, -1, -1, F_SECTION_TABLE, header.e_shoff, size)
    table = <const Shdr*>(image + header.e_shoff)
    # With 0xff00 sections or more, counts move into the null section header (gABI, 4-7).
    count = header.e_shnum if header.e_shnum else table[0].sh_size
    names = header.e_shstrndx if header.e_shstrndx != SHN_XINDEX else table[0].sh_link
    if count == 0 or count > (size - header.e_shoff) // sizeof(Shdr) or names >= count:
        return refuse(r, file, -1, -1, F_SECTION_TABLE, count,
                      (size - header.e_shoff) // sizeof(Shdr))
    if r.sections.count + count > 0x7fffffff:
        return refuse(r, file, -1, -1, F_TOO_LARGE, r.sections.count + count, 0x7fffffff)
    r.names = 0
    row = <FileRow*>vec_push(&r.files)
    if row == NULL:
        return False
    memset(row, 0, sizeof(FileRow))
    row.offset = offset
    row.size = size
    row.first_section = <uint32_t>r.sections.count
    row.section_count = <uint32_t>count
    row.first_symbol = <uint32_t>r.symbols.count
    row.e_flags = header.e_flags
    return (read_sections(r, file, row, table, <uint32_t>names)
            and read_symbols(r, file, row)
            and check_links(r, file, row))


def find_kernels(bytes arena, bytes files, bytes sections, bytes symbols, bint every):
    """Numbers of the files with a kernel that has a fence or, with `every`, with any kernel.

    A fence is an instruction with the low 12 bits 0x992 (MEMBAR).
    """
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* symbol = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef int64_t last = -1
    cdef bint found
    cdef list numbers = []
    for i in range(n):
        if s[i].kind != K_TEXT or s[i].file == last or not symbol[s[i].target].other & STO_ENTRY:
            continue
        with nogil:
            found = every or has_fence(base + s[i].offset, s[i].size)
        if found:
            last = s[i].file
            numbers.append(s[i].file)
    return numbers


cdef bint has_fence(const uint8_t* code, uint64_t size) noexcept nogil:
    cdef uint64_t at
    for at in range(0, size, 16):
        if code[at] == 0x92 and (code[at + 1] & 0x0f) == 0x09:
            return True
    return False


def find_ties(bytes arena, bytes files, bytes sections):
    """Numbers of the files whose Mercury sections agree in kinds, sizes and names with another's.

    Files without Mercury debug sections never agree.
    """
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const FileRow* f = <const FileRow*>PyBytes_AS_STRING(files)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef size_t n = PyBytes_GET_SIZE(files) // sizeof(FileRow), i, count = 0
    cdef Tie* tie = <Tie*>calloc(n + 1, sizeof(Tie))
    cdef list numbers = []
    if tie == NULL:
        raise MemoryError
    with nogil:
        for i in range(n):
            tie[count].key = tie_key(base, s, &f[i], False)
            tie[count].file = <int32_t>i
            count += tie[count].key != 0
        count = keep_tied(tie, count)
        for i in range(count):
            tie[i].key = tie_key(base, s, &f[tie[i].file], True)
        count = keep_tied(tie, count)
    for i in range(count):
        numbers.append(tie[i].file)
    free(tie)
    numbers.sort()
    return numbers
