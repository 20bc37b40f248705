"""Reading relocatable cubins: file bytes into one arena, headers into checked tables.

After `parse`, every offset, count, name and index in the tables is known to lie inside its file,
so later kernels follow them without looking back.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from elf64 cimport *
from pages cimport *
from rows cimport *
from vec cimport *
from workers cimport *

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char* path, int flags)
    int O_RDONLY
    int O_CLOEXEC

cdef extern from "<unistd.h>" nogil:
    ssize_t c_read "read"(int fd, void* data, size_t size)
    int c_close "close"(int fd)

cdef enum:
    ALIGN = 16                  # every file starts at a multiple of this in the arena

# Reasons of a FaultRow; pylink.phases.read has the sentence for each.
cdef enum Reason:
    F_NONE = 0
    F_TOO_SHORT = 1
    F_NOT_ELF = 2
    F_CLASS = 3
    F_ENDIAN = 4
    F_MACHINE = 5
    F_ABI = 6
    F_NOT_RELOCATABLE = 7
    F_SECTION_TABLE = 8
    F_SECTION_BOUNDS = 9
    F_NAME = 10
    F_STRING_TABLE = 11
    F_ALIGN = 12
    F_NO_SYMTAB = 13
    F_ENTSIZE = 14
    F_SYMBOL_SECTION = 15
    F_TARGET = 16
    F_RELOC_SYMBOL = 17
    F_RELOC_OFFSET = 18
    F_TOO_LARGE = 19
    F_LINK = 20
    F_INFO_RECORD = 21
    F_CALLGRAPH = 22
    F_VERSION = 23
    F_CAPSULE = 24
    F_TEXT_ALIGN = 25

cdef uint64_t MAX_NOBITS = <uint64_t>1 << 40


def read_files(list paths, list sizes, list data):
    """Read every input into one arena.

    `paths[i]` is a path as bytes, or None when `data[i]` already holds the bytes; `sizes[i]` is
    the size in bytes either way. Returns `(arena, extents, failed, error)`: the arena, packed
    rows of (offset, size) as uint64, and the first input that could not be read with its errno
    (0: it became shorter), or -1.
    """
    cdef Py_ssize_t n = len(paths), i
    cdef uint64_t total = 0, size
    cdef bytes path, chunk
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, n * 16)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    for i in range(n):
        size = sizes[i]
        extent[2 * i] = total
        extent[2 * i + 1] = size
        total += (size + ALIGN - 1) & ~<uint64_t>(ALIGN - 1)
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


ctypedef struct Reading:
    uint8_t* base
    const uint64_t* extent
    const char** path           # NULL: the bytes are in `data`
    const char** data
    int* outcome                # what `read_one` says


cdef void read_input(void* context, size_t item) noexcept nogil:
    cdef Reading* r = <Reading*>context
    cdef uint64_t size = r.extent[2 * item + 1]
    cdef uint8_t* place = r.base + r.extent[2 * item]
    memset(place + size, 0, ((size + ALIGN - 1) & ~<uint64_t>(ALIGN - 1)) - size)
    r.outcome[item] = 0
    if r.path[item] == NULL:
        memcpy(place, r.data[item], size)
    else:
        r.outcome[item] = read_one(r.path[item], place, size)


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


ctypedef struct Reader:
    const uint8_t* arena
    const RuleRow* rules
    Py_ssize_t rule_count
    Vec files
    Vec sections
    Vec symbols
    FaultRow fault


def parse(bytes arena, bytes extents, bytes rules):
    """Check and tabulate every file of the arena.

    `extents` comes from `read_files`, `rules` from `pylink.sections.rules`. Returns `(files,
    sections, symbols, fault)`: packed FileRow, SectionRow and SymbolRow tables, and a FaultRow,
    empty when all is well.
    """
    cdef Reader r
    cdef const uint64_t* extent = <const uint64_t*>PyBytes_AS_STRING(extents)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(extents) // 16, i
    cdef uint64_t limit = <uint64_t>PyBytes_GET_SIZE(arena)
    cdef bint ok = True
    r.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    r.rules = <const RuleRow*>PyBytes_AS_STRING(rules)
    r.rule_count = PyBytes_GET_SIZE(rules) // <Py_ssize_t>sizeof(RuleRow)
    vec_init(&r.files, sizeof(FileRow))
    vec_init(&r.sections, sizeof(SectionRow))
    vec_init(&r.symbols, sizeof(SymbolRow))
    memset(&r.fault, 0, sizeof(FaultRow))
    for i in range(n):
        if extent[2 * i] > limit or extent[2 * i + 1] > limit - extent[2 * i]:
            raise IndexError(f"file {i} runs past the arena")
    with nogil:
        for i in range(n):
            if not read_file(&r, <int32_t>i, extent[2 * i], extent[2 * i + 1]):
                ok = False
                break
    if not ok and r.fault.reason == F_NONE:
        vec_free(&r.files)
        vec_free(&r.sections)
        vec_free(&r.symbols)
        raise MemoryError
    fault = b"" if ok else PyBytes_FromStringAndSize(<char*>&r.fault, sizeof(FaultRow))
    return vec_take(&r.files), vec_take(&r.sections), vec_take(&r.symbols), fault


cdef bint refuse(Reader* r, int32_t file, int32_t section, int64_t index, int32_t reason,
                 uint64_t value, uint64_t limit) noexcept nogil:
    r.fault.file = file
    r.fault.section = section
    r.fault.index = index
    r.fault.reason = reason
    r.fault.value = value
    r.fault.limit = limit
    return False


cdef inline bint has_no_bytes(uint32_t type) noexcept nogil:
    return (type == SHT_NOBITS or type == SHT_NULL or type == SHT_CUDA_GLOBAL
            or type == SHT_CUDA_SHARED or type == SHT_CUDA_LOCAL
            or type == SHT_CUDA_RESERVED_SHARED)


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
    if header.e_ident[6] != 1 or header.e_version != 1:
        return refuse(r, file, -1, -1, F_VERSION, header.e_version, 1)
    if header.e_ident[7] != ELFOSABI_CUDA or header.e_ident[8] != CUDA_ABI_VERSION:
        return refuse(r, file, -1, -1, F_ABI, header.e_ident[8], CUDA_ABI_VERSION)
    if header.e_type != ET_REL:
        return refuse(r, file, -1, -1, F_NOT_RELOCATABLE, header.e_type, ET_REL)
    if (header.e_shentsize != sizeof(Shdr) or header.e_shoff > size
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


cdef bint read_sections(Reader* r, int32_t file, FileRow* row, const Shdr* table,
                        uint32_t names) noexcept nogil:
    cdef const uint8_t* image = r.arena + row.offset
    cdef const Shdr* h
    cdef SectionRow* s
    cdef SectionRow* rows = <SectionRow*>vec_extend(&r.sections, row.section_count)
    cdef uint32_t i
    cdef const uint8_t* end
    cdef const uint8_t* strings
    cdef uint64_t strings_size = table[names].sh_size
    if rows == NULL:
        return False
    if (table[names].sh_offset > row.size or strings_size > row.size - table[names].sh_offset
            or strings_size == 0
            or image[table[names].sh_offset + strings_size - 1] != 0):
        return refuse(r, file, <int32_t>names, -1, F_STRING_TABLE, strings_size, row.size)
    strings = image + table[names].sh_offset
    for i in range(row.section_count):
        h = &table[i]
        s = &rows[i]
        memset(s, 0, sizeof(SectionRow))
        s.file = <uint32_t>file
        s.target = -1
        if h.sh_name >= strings_size:
            return refuse(r, file, <int32_t>i, -1, F_NAME, h.sh_name, strings_size)
        end = <const uint8_t*>memchr(strings + h.sh_name, 0, strings_size - h.sh_name)
        s.name = <uint64_t>(strings + h.sh_name - r.arena)
        s.name_size = <uint32_t>(end - (strings + h.sh_name))
        if has_no_bytes(h.sh_type):
            if h.sh_size > MAX_NOBITS:
                return refuse(r, file, <int32_t>i, -1, F_TOO_LARGE, h.sh_size, MAX_NOBITS)
        elif h.sh_offset > row.size or h.sh_size > row.size - h.sh_offset:
            return refuse(r, file, <int32_t>i, -1, F_SECTION_BOUNDS, h.sh_offset + h.sh_size,
                          row.size)
        else:
            s.offset = row.offset + h.sh_offset
        # A large alignment would let a small file ask for a huge output.
        if h.sh_addralign & (h.sh_addralign - 1) or h.sh_addralign > 0x10000:
            return refuse(r, file, <int32_t>i, -1, F_ALIGN, h.sh_addralign, 0x10000)
        if h.sh_entsize > 0xffff:
            return refuse(r, file, <int32_t>i, -1, F_ENTSIZE, h.sh_entsize, 24)
        s.size = h.sh_size
        s.flags = h.sh_flags
        s.type = h.sh_type
        s.link = h.sh_link
        s.info = h.sh_info
        s.align = <uint32_t>h.sh_addralign if h.sh_addralign else 1
        s.entsize = <uint32_t>h.sh_entsize
        classify(r, s)
    return True


cdef void classify(Reader* r, SectionRow* s) noexcept nogil:
    """Give the section its kind: the first rule that its name meets; K_OTHER without one."""
    cdef const uint8_t* name = r.arena + s.name
    cdef const RuleRow* rule
    cdef Py_ssize_t i
    cdef uint32_t at, bank = 0
    if s.type == SHT_NULL:
        s.kind = K_NULL
        return
    for i in range(r.rule_count):
        rule = &r.rules[i]
        if (rule.size <= s.name_size and (not rule.exact or rule.size == s.name_size)
                and memcmp(name, rule.text, rule.size) == 0):
            s.kind = rule.kind
            break
    if s.kind == K_CONSTANT:
        # .nv.constant<bank>[.<function>]
        at = 12
        while at < s.name_size and 48 <= name[at] <= 57 and bank < 100:
            bank = bank * 10 + (name[at] - 48)
            at += 1
        s.bank = <uint16_t>bank
        if at < s.name_size:
            s.kind = K_CONSTANT0 if bank == 0 else K_CONSTANT_FUNC


cdef bint read_symbols(Reader* r, int32_t file, FileRow* row) noexcept nogil:
    cdef SectionRow* sections = <SectionRow*>r.sections.data + row.first_section
    cdef SectionRow* symtab = NULL
    cdef SectionRow* merc = NULL
    cdef SectionRow* shndx = NULL
    cdef SectionRow* strtab
    cdef const Sym* input
    cdef const Sym* mercury = NULL
    cdef SymbolRow* symbol
    cdef uint32_t i, index
    cdef const uint8_t* name
    cdef const uint8_t* end
    for i in range(row.section_count):
        if sections[i].kind == K_SYMTAB:
            symtab = &sections[i]
        elif sections[i].kind == K_MERC_SYMTAB:
            merc = &sections[i]
        elif sections[i].kind == K_SYMTAB_SHNDX:
            shndx = &sections[i]
    if symtab == NULL or symtab.type != SHT_SYMTAB:
        return refuse(r, file, -1, -1, F_NO_SYMTAB, 0, 0)
    index = <uint32_t>(symtab - sections)
    if symtab.entsize != sizeof(Sym) or symtab.size % sizeof(Sym) or symtab.size == 0:
        return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, symtab.entsize, sizeof(Sym))
    if symtab.link >= row.section_count or sections[symtab.link].type != SHT_STRTAB:
        return refuse(r, file, <int32_t>index, -1, F_LINK, symtab.link, row.section_count)
    strtab = &sections[symtab.link]
    if strtab.size == 0 or r.arena[strtab.offset + strtab.size - 1] != 0:
        return refuse(r, file, <int32_t>symtab.link, -1, F_STRING_TABLE, strtab.size, row.size)
    if symtab.size // sizeof(Sym) > 0x7fffffff - r.symbols.count:
        return refuse(r, file, <int32_t>index, -1, F_TOO_LARGE, symtab.size, 0x7fffffff)
    row.symbol_count = <uint32_t>(symtab.size // sizeof(Sym))
    row.strtab = strtab.offset
    row.strtab_size = strtab.size
    if shndx != NULL and shndx.size // 4 < row.symbol_count:
        return refuse(r, file, <int32_t>(shndx - sections), -1, F_ENTSIZE, shndx.size,
                      4 * <uint64_t>row.symbol_count)
    if merc != NULL:
        index = <uint32_t>(merc - sections)
        if merc.entsize != sizeof(Sym) or merc.size // sizeof(Sym) > row.symbol_count:
            return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, merc.size, symtab.size)
        row.mercury_symbols = <uint32_t>(merc.size // sizeof(Sym))
        row.merc_symtab = merc.offset
        mercury = <const Sym*>(r.arena + merc.offset)
    symbol = <SymbolRow*>vec_extend(&r.symbols, row.symbol_count)
    if symbol == NULL:
        return False
    input = <const Sym*>(r.arena + symtab.offset)
    for i in range(row.symbol_count):
        memset(&symbol[i], 0, sizeof(SymbolRow))
        if input[i].st_name >= strtab.size:
            return refuse(r, file, <int32_t>(symtab - sections), i, F_NAME, input[i].st_name,
                          strtab.size)
        name = r.arena + strtab.offset + input[i].st_name
        end = <const uint8_t*>memchr(name, 0, strtab.size - input[i].st_name)
        symbol[i].name = strtab.offset + input[i].st_name
        symbol[i].name_size = <uint32_t>(end - name)
        symbol[i].value = input[i].st_value
        symbol[i].size = input[i].st_size
        symbol[i].merc_size = mercury[i].st_size if i < row.mercury_symbols else 0
        symbol[i].file = <uint32_t>file
        symbol[i].info = input[i].st_info
        symbol[i].other = input[i].st_other
        symbol[i].shndx = input[i].st_shndx
        symbol[i].section = -1
        index = input[i].st_shndx
        if index == SHN_XINDEX and shndx != NULL:
            memcpy(&index, r.arena + shndx.offset + 4 * i, 4)
        elif index >= SHN_LORESERVE:
            if index == SHN_COMMON or index == SHN_ABS:
                continue
            return refuse(r, file, <int32_t>(symtab - sections), i, F_SYMBOL_SECTION, index,
                          row.section_count)
        if index >= row.section_count:
            return refuse(r, file, <int32_t>(symtab - sections), i, F_SYMBOL_SECTION, index,
                          row.section_count)
        if index != SHN_UNDEF:
            symbol[i].section = <int32_t>(row.first_section + index)
            # A function's bytes are copied, patched and named by its symbol.
            if ((input[i].st_info & 15) != STT_SECTION and input[i].st_size > MAX_NOBITS):
                return refuse(r, file, <int32_t>(symtab - sections), i, F_TOO_LARGE,
                              input[i].st_size, MAX_NOBITS)
        elif input[i].st_size > MAX_NOBITS:
            return refuse(r, file, <int32_t>(symtab - sections), i, F_TOO_LARGE,
                          input[i].st_size, MAX_NOBITS)
    return True


cdef bint check_links(Reader* r, int32_t file, FileRow* row) noexcept nogil:
    """Resolve sh_info to sections and check the entries of relocation and table sections."""
    cdef SectionRow* sections = <SectionRow*>r.sections.data + row.first_section
    cdef SymbolRow* symbols = <SymbolRow*>r.symbols.data + row.first_symbol
    cdef SectionRow* s
    cdef uint32_t i, info
    for i in range(row.section_count):
        s = &sections[i]
        if s.kind == K_RELOC or s.kind == K_MERC_RELA or s.kind == K_RESOLVED_RELA:
            if s.info == 0 or s.info >= row.section_count:
                return refuse(r, file, <int32_t>i, -1, F_TARGET, s.info, row.section_count)
            s.target = <int32_t>(row.first_section + s.info)
            if not check_relocs(r, file, row, s, i):
                return False
        elif s.kind == K_TEXT or s.kind == K_CAPMERC:
            # sh_info: the function's symbol; families before sm_90 keep REGCOUNT in its top byte.
            info = s.info & 0xffffff if (row.e_flags & 0xff) == 4 and sections[i].kind == K_TEXT \
                else s.info
            if s.kind == K_TEXT and info >= row.symbol_count:
                info = s.info & 0xffffff
            if info == 0 or info >= row.symbol_count:
                return refuse(r, file, <int32_t>i, -1, F_TARGET, s.info, row.symbol_count)
            s.target = <int32_t>(row.first_symbol + info)
            if s.kind == K_TEXT and s.size % 16:
                return refuse(r, file, <int32_t>i, -1, F_TEXT_ALIGN, s.size, 16)
            if s.kind == K_CAPMERC and s.size < 16:
                return refuse(r, file, <int32_t>i, -1, F_CAPSULE, s.size, 16)
            if symbols[info].section < 0:
                return refuse(r, file, <int32_t>i, -1, F_TARGET, s.info, row.symbol_count)
        elif (s.kind == K_INFO_FUNC or s.kind == K_CONSTANT0 or s.kind == K_CONSTANT_FUNC
              or s.kind == K_MERC_INFO_FUNC or s.kind == K_SHARED
              or s.kind == K_MERC_CONSTANT_FUNC):
            if s.info == 0 or s.info >= row.section_count or (
                    sections[s.info].kind != K_TEXT and sections[s.info].kind != K_CAPMERC):
                return refuse(r, file, <int32_t>i, -1, F_TARGET, s.info, row.section_count)
            s.target = <int32_t>(row.first_section + s.info)
        if s.kind == K_INFO or s.kind == K_INFO_FUNC or s.kind == K_MERC_INFO \
                or s.kind == K_MERC_INFO_FUNC:
            if not check_info(r, file, row, s, i):
                return False
        elif s.kind == K_CALLGRAPH or s.kind == K_PROTOTYPE:
            if not check_pairs(r, file, row, s, i):
                return False
    return True


cdef inline uint32_t field_size(uint32_t type) noexcept nogil:
    """Bytes that a relocation may touch: 1, 4 or 8 (docs/format-notes.md)."""
    if type in (1, 3, 70, 71, 72, 103):
        return 4
    if 76 <= type <= 91 or 104 <= type <= 111:
        return 1
    return 8


cdef bint check_relocs(Reader* r, int32_t file, FileRow* row, SectionRow* s,
                       uint32_t index) noexcept nogil:
    cdef bint mercury = s.kind == K_MERC_RELA
    cdef uint64_t entsize = 16 if s.type == SHT_REL else 24
    cdef uint64_t limit = (<SectionRow*>r.sections.data)[s.target].size
    cdef uint16_t target_kind = (<SectionRow*>r.sections.data)[s.target].kind
    cdef uint64_t i, n
    cdef const Rel* entry
    cdef uint32_t width
    if s.entsize != entsize or s.size % entsize:
        return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, s.entsize, entsize)
    n = s.size // entsize
    if n > <uint64_t>0xffffffffU:
        return refuse(r, file, <int32_t>index, -1, F_TOO_LARGE, n, <uint64_t>0xffffffffU)
    for i in range(n):
        entry = <const Rel*>(r.arena + s.offset + i * entsize)
        if entry.r_sym >= row.symbol_count:
            return refuse(r, file, <int32_t>index, <int64_t>i, F_RELOC_SYMBOL, entry.r_sym,
                          row.symbol_count)
        # Mercury code is described, not stored, in a capsule: offsets are not file offsets.
        if mercury and target_kind == K_CAPMERC:
            continue
        width = 4 if mercury else field_size(entry.r_type)
        if entry.r_offset > limit or limit - entry.r_offset < width:
            return refuse(r, file, <int32_t>index, <int64_t>i, F_RELOC_OFFSET, entry.r_offset,
                          limit)
    return True


cdef bint check_info(Reader* r, int32_t file, FileRow* row, SectionRow* s,
                     uint32_t index) noexcept nogil:
    """EIATTR records: {u8 format, u8 attribute, u16}, and with format 4 that many bytes more."""
    cdef const uint8_t* data = r.arena + s.offset
    cdef uint64_t at = 0, length
    cdef uint32_t word, i
    cdef uint8_t attribute
    while at < s.size:
        if s.size - at < 4:
            return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, s.size - at, 4)
        length = 0
        if data[at] == 4:
            length = <uint64_t>data[at + 2] | <uint64_t>data[at + 3] << 8
            if length > s.size - at - 4 or length % 4:
                return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, length,
                              s.size - at - 4)
            attribute = data[at + 1]
            if (attribute == EIATTR_REGCOUNT or attribute == EIATTR_FRAME_SIZE
                    or attribute == EIATTR_MIN_STACK_SIZE or attribute == EIATTR_MAX_STACK_SIZE
                    or attribute == EIATTR_PARAM_CBANK):
                if length < 8:
                    return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, length, 8)
                memcpy(&word, data + at + 4, 4)
                if word >= row.symbol_count:
                    return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, word,
                                  row.symbol_count)
            elif attribute == EIATTR_EXTERNS:
                for i in range(<uint32_t>(length // 4)):
                    memcpy(&word, data + at + 4 + 4 * i, 4)
                    if word >= row.symbol_count:
                        return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, word,
                                      row.symbol_count)
        elif data[at] < 1 or data[at] > 4:
            return refuse(r, file, <int32_t>index, <int64_t>at, F_INFO_RECORD, data[at], 4)
        at += 4 + length
    return True


cdef bint check_pairs(Reader* r, int32_t file, FileRow* row, SectionRow* s,
                      uint32_t index) noexcept nogil:
    """.nv.callgraph and .nv.prototype: pairs of u32, symbol and symbol or string offset."""
    cdef const uint32_t* pair = <const uint32_t*>(r.arena + s.offset)
    cdef uint64_t i
    cdef int32_t block = 0
    cdef bint names
    if s.size % 8:
        return refuse(r, file, <int32_t>index, -1, F_ENTSIZE, s.size, 8)
    for i in range(s.size // 8):
        if pair[2 * i] == 0 and s.kind == K_CALLGRAPH:
            block = <int32_t>pair[2 * i + 1]
            continue
        names = s.kind == K_PROTOTYPE or block == -2 or block == -3
        if pair[2 * i] >= row.symbol_count:
            return refuse(r, file, <int32_t>index, <int64_t>i, F_CALLGRAPH, pair[2 * i],
                          row.symbol_count)
        if names and pair[2 * i + 1] >= row.strtab_size:
            return refuse(r, file, <int32_t>index, <int64_t>i, F_CALLGRAPH, pair[2 * i + 1],
                          row.strtab_size)
        if not names and pair[2 * i + 1] >= row.symbol_count:
            return refuse(r, file, <int32_t>index, <int64_t>i, F_CALLGRAPH, pair[2 * i + 1],
                          row.symbol_count)
    return True


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
