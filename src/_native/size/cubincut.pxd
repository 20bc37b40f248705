# The bytes of a cubin by part and function. Every byte counts once: sections in the order of their
# offsets, the first has what two share, and what is in none is padding.
#
# A section belongs to the function whose name ends the section's name, else to the owner of the
# section that sh_info names, else to no function. A symbol's entry and its name in the string table
# belong to the symbol's function.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, strlen

from base.elf64 cimport EM_CUDA, ET_EXEC, SHN_LORESERVE, STT_FUNC, Shdr, Sym
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ElfFile, has_bytes, is_in_file, name_at, open_elf, open_names,
    open_table,
)
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room, scratch_zeros
from base.stretches cimport NO_SECTION, Stretch, list_own_stretches
from base.texts cimport has_start
from base.vector cimport vec_push
from elfnumbers cimport SHF_ALLOC, SHT_NOTE, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB
from size.cutting cimport (
    PART_ATTRIBUTES, PART_CODE, PART_CONSTANTS, PART_DATA, PART_DEBUG, PART_HEADERS,
    PART_MERCURY_CODE, PART_MERCURY_REST, PART_NAMES, PART_OTHER, PART_PADDING, PART_RELOCATIONS,
    SHARED, Cutting, add_function, count_bytes, find_function,
)
from size.digests cimport (
    Digest, Fingerprint, absorb, absorb_header, absorb_records, absorb_relocations, absorb_text,
    absorb_words, has_records,
)

cdef extern from "size/search.h":
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size) nogil

cdef enum:
    # Names may share bytes; all together no more than this many times the file.
    NAME_LIMIT = 4
    # Shorter data is equal by chance.
    LEAST_DATA = 256

cdef inline uint32_t part_of(const Shdr* section, const char* name) noexcept nogil:
    """The Part of a section, by its name and type."""
    if has_start(name, b".text"):
        return PART_CODE
    if has_start(name, b".nv.constant"):
        return PART_CONSTANTS
    if has_start(name, b".nv.capmerc"):
        return PART_MERCURY_CODE
    if has_start(name, b".nv.merc."):
        if has_start(name, b".nv.merc.debug") or has_start(name, b".nv.merc.nv_debug"):
            return PART_DEBUG
        return PART_MERCURY_REST
    if has_start(name, b".debug") or has_start(name, b".nv_debug"):
        return PART_DEBUG
    if (section.sh_type in (SHT_REL, SHT_RELA) or has_start(name, b".rel")
            or has_start(name, b".nv.rel.action")):
        return PART_RELOCATIONS
    if section.sh_type in (SHT_SYMTAB, SHT_STRTAB) or has_start(name, b".symtab"):
        return PART_NAMES
    if (has_start(name, b".nv.info") or has_start(name, b".note") or has_start(name, b".nv.compat")
            or has_start(name, b".nv.callgraph") or has_start(name, b".nv.prototype")):
        return PART_ATTRIBUTES
    return PART_DATA if section.sh_flags & SHF_ALLOC else PART_OTHER


cdef inline int64_t owner_by_name(Cutting* cutting, const char* name) noexcept nogil:
    """The function whose name ends that of a section, the longest one; -1 without memory."""
    cdef uint64_t size = strlen(name)
    cdef const char* at = name
    cdef const char* end = name + size
    cdef const char* dot
    cdef int64_t owner
    cdef int tries = 0
    while tries < 16:
        dot = <const char*>memchr(at, b'.', end - at)
        if dot == NULL:
            break
        at = dot + 1
        owner = find_function(cutting, <const uint8_t*>at, <uint32_t>(end - at))
        if owner != SHARED:
            return owner
        tries += 1
    return SHARED


cdef inline bint is_text(const char* name) noexcept nogil:
    return has_start(name, b".text.") and name[6] != 0


cdef inline bint find_owners(Cutting* cutting, const ElfFile* elf, uint32_t* owner) noexcept nogil:
    """The function of each section; False without memory, or with `bad` set."""
    cdef uint64_t i, names = 0
    cdef const char* name
    cdef const Shdr* section
    cdef int64_t function
    for i in range(elf.count):
        name = name_at(elf, &elf.table[i])
        if name == NULL or (has_bytes(elf.table[i].sh_type) and not is_in_file(elf, &elf.table[i])):
            cutting.bad = True
            return False
        names += strlen(name)
        if names > NAME_LIMIT * elf.size:
            cutting.bad = True
            return False
        if is_text(name):
            function = add_function(cutting, <const uint8_t*>name + 6, <uint32_t>strlen(name + 6))
            if function < 0:
                return False
    for i in range(elf.count):
        function = owner_by_name(cutting, name_at(elf, &elf.table[i]))
        if function < 0:
            return False
        owner[i] = <uint32_t>function
    for i in range(elf.count):
        section = &elf.table[i]
        if (owner[i] == SHARED and section.sh_type not in (SHT_SYMTAB, SHT_STRTAB)
                and 0 < section.sh_info < elf.count
                and is_text(name_at(elf, &elf.table[section.sh_info]))):
            owner[i] = owner[section.sh_info]
    return True


ctypedef struct Names:
    const Shdr* symbols         # header of the symbol table, or NULL
    uint64_t strings            # section with their names, 0: none
    uint32_t* painted[2]        # owner + 1 of each byte: names of symbols, of sections
    uint32_t* owner             # by section
    uint32_t* symbol_owner      # by symbol, or NULL


cdef inline void paint(const ElfFile* elf, uint64_t strings, uint32_t* painted, uint64_t offset,
                       uint32_t owner) noexcept nogil:
    """Assign a string to `owner`, up to its end or to the first byte that is assigned already."""
    cdef const Shdr* section = &elf.table[strings]
    while offset < section.sh_size and painted[offset] == 0:
        painted[offset] = owner + 1
        if elf.data[section.sh_offset + offset] == 0:
            break
        offset += 1


cdef inline int64_t find_symbol_owner(Cutting* cutting, const ElfFile* elf, const Names* n,
                                      const Sym* symbol) noexcept nogil:
    """The function that a symbol belongs to; -1 without memory."""
    cdef const Shdr* texts = &elf.table[n.strings]
    cdef const char* name
    cdef int64_t function
    if symbol.st_name < texts.sh_size and symbol.st_name != 0:
        name = <const char*>elf.data + texts.sh_offset + symbol.st_name
        if symbol.st_info & 15 == STT_FUNC:
            function = find_function(cutting, <const uint8_t*>name, <uint32_t>strlen(name))
            if function != SHARED:
                return function
    if 0 < symbol.st_shndx < SHN_LORESERVE and symbol.st_shndx < elf.count:
        return n.owner[symbol.st_shndx]
    return SHARED


cdef inline bint paint_names(Cutting* cutting, const ElfFile* elf, Names* n) noexcept nogil:
    """Paint both string tables; False without memory."""
    cdef uint64_t i, count
    cdef Sym symbol
    cdef int64_t function
    cdef uint64_t spent = 0
    if n.symbols != NULL:
        count = n.symbols.sh_size // sizeof(Sym)
        for i in range(count):
            memcpy(&symbol, elf.data + n.symbols.sh_offset + i * sizeof(Sym), sizeof(Sym))
            function = SHARED
            if n.strings and spent <= NAME_LIMIT * elf.size:
                if symbol.st_name < elf.table[n.strings].sh_size:
                    spent += strlen(<const char*>elf.data + elf.table[n.strings].sh_offset
                                    + symbol.st_name)
                function = find_symbol_owner(cutting, elf, n, &symbol)
                if function < 0:
                    return False
            n.symbol_owner[i] = <uint32_t>function
            if n.strings:
                paint(elf, n.strings, n.painted[0], symbol.st_name, <uint32_t>function)
    for i in range(elf.count):
        paint(elf, elf.strings, n.painted[1], elf.table[i].sh_name, n.owner[i])
    return True


cdef inline void count_painted(Cutting* cutting, const uint32_t* painted, uint64_t start,
                               uint64_t end) noexcept nogil:
    """Bytes of a string table; those of no name are shared."""
    cdef uint64_t offset = start, begin
    while offset < end:
        begin = offset
        while offset < end and painted[offset] == painted[begin]:
            offset += 1
        count_bytes(cutting, painted[begin] - 1 if painted[begin] else SHARED, PART_NAMES,
                    offset - begin)


cdef inline void count_stretch(Cutting* cutting, const ElfFile* elf, const Names* n,
                               const Stretch* stretch) noexcept nogil:
    """Bytes of the file that are all of one section."""
    cdef uint32_t number = stretch.section
    cdef const Shdr* section = &elf.table[number]
    cdef uint64_t i, entry, first = stretch.start - section.sh_offset
    cdef uint64_t last = stretch.end - section.sh_offset
    if n.strings and number == n.strings:
        count_painted(cutting, n.painted[0], first, last)
    elif number == elf.strings:
        count_painted(cutting, n.painted[1], first, last)
    elif section == n.symbols and first == 0:
        entry = section.sh_size // sizeof(Sym)
        for i in range(min(entry, last // sizeof(Sym))):
            count_bytes(cutting, n.symbol_owner[i], PART_NAMES, sizeof(Sym))
        i = min(entry, last // sizeof(Sym))
        count_bytes(cutting, SHARED, PART_NAMES, last - i * sizeof(Sym))
    else:
        count_bytes(cutting, n.owner[number], part_of(section, name_at(elf, section)),
                    stretch.end - stretch.start)


cdef inline void find_unit(Cutting* cutting, const uint8_t* texts, uint64_t size) noexcept nogil:
    """Find the part that names the source file in the names of symbols that are local to it."""
    cdef const char** marks = [b"_INTERNAL_", b"_GLOBAL__N__", b"__nv_static_"]
    cdef const uint8_t* mark
    cdef int i
    for i in range(3):
        mark = <const uint8_t*>memmem(texts, size, marks[i], strlen(marks[i]))
        if mark != NULL:
            cutting.unit.data = mark
            cutting.unit.size = <uint32_t>min(<uint64_t>256, <uint64_t>(texts + size - mark))
            return


cdef inline bint cut_cubin(Cutting* cutting, const uint8_t* data, uint64_t size) noexcept nogil:
    """Count all of it; False without memory. What is not a cubin is `bad` and not counted."""
    cdef ElfFile elf
    cdef Scratch scratch
    cdef int fault
    cdef bint good
    if open_elf(&elf, data, size) != ELF_GOOD or elf.header.e_machine != EM_CUDA:
        cutting.bad = True
        return True
    cutting.type = elf.header.e_type
    fault = open_table(&elf)
    if fault == ELF_NO_TABLE:
        count_bytes(cutting, SHARED, PART_HEADERS, min(size, <uint64_t>64))
        count_bytes(cutting, SHARED, PART_OTHER, size - min(size, <uint64_t>64))
        return True
    if fault != ELF_GOOD or open_names(&elf) != ELF_GOOD:
        cutting.bad = True
        return True
    scratch_init(&scratch)
    good = count_sections(cutting, &elf, &scratch)
    scratch_free(&scratch)
    return good or cutting.bad


cdef inline bint count_sections(Cutting* cutting, const ElfFile* elf,
                                Scratch* scratch) noexcept nogil:
    """Count a cubin with sections; False without memory, or with `bad` set."""
    cdef Stretch* stretches = <Stretch*>scratch_room(scratch, elf.count + 3, sizeof(Stretch))
    cdef Stretch* stretch
    cdef Names n
    cdef uint64_t i, offset = 0
    n.owner = <uint32_t*>scratch_zeros(scratch, elf.count, sizeof(uint32_t))
    if scratch.failed or not find_owners(cutting, elf, n.owner):
        return False
    find_names(elf, &n, scratch)
    if scratch.failed or not paint_names(cutting, elf, &n):
        return False
    if n.strings:
        find_unit(cutting, elf.data + elf.table[n.strings].sh_offset, elf.table[n.strings].sh_size)
    for i in range(list_own_stretches(stretches, elf)):
        stretch = &stretches[i]
        count_bytes(cutting, SHARED, PART_PADDING, stretch.start - offset)
        offset = stretch.end
        if stretch.section == <uint32_t>NO_SECTION:
            count_bytes(cutting, SHARED, PART_HEADERS, offset - stretch.start)
        else:
            count_stretch(cutting, elf, &n, stretch)
    count_bytes(cutting, SHARED, PART_PADDING, elf.size - offset)
    return cutting.type != ET_EXEC or digest_cubin(cutting, elf, &n, scratch)


cdef inline void find_names(const ElfFile* elf, Names* n, Scratch* scratch) noexcept nogil:
    """The symbols and their names, if these hold, and room for what `paint_names` finds."""
    cdef const Shdr* texts
    cdef uint64_t i
    n.symbols, n.symbol_owner, n.strings = NULL, NULL, 0
    for i in range(elf.count):
        if elf.table[i].sh_type == SHT_SYMTAB and n.symbols == NULL:
            n.symbols = &elf.table[i]
            n.strings = n.symbols.sh_link if n.symbols.sh_link < elf.count else 0
    texts = &elf.table[n.strings]
    if (n.strings
            and (not is_in_file(elf, texts) or texts.sh_type != SHT_STRTAB or texts.sh_size == 0
                 or elf.data[texts.sh_offset + texts.sh_size - 1] != 0)):
        n.strings = 0
    n.painted[0] = n.painted[1] = <uint32_t*>scratch_zeros(scratch, elf.names_size + 1, 4)
    if n.strings and n.strings != elf.strings:
        n.painted[0] = <uint32_t*>scratch_zeros(scratch, texts.sh_size + 1, 4)
    if n.symbols != NULL:
        n.symbol_owner = <uint32_t*>scratch_zeros(
            scratch, n.symbols.sh_size // sizeof(Sym) + 1, sizeof(uint32_t))


ctypedef struct FunctionDigest:
    Fingerprint contents
    uint64_t code               # bytes


cdef inline bint push_digest(Cutting* cutting, uint32_t owner, uint32_t part, uint64_t size,
                             const Fingerprint* contents) noexcept nogil:
    cdef Digest* row = <Digest*>vec_push(&cutting.digests)
    if row == NULL:
        return False
    row.owner, row.part, row.size, row.contents = owner, part, size, contents[0]
    return True


cdef inline bint digest_cubin(Cutting* cutting, const ElfFile* elf, const Names* n,
                              Scratch* scratch) noexcept nogil:
    """Digests of functions, of data, and of the whole; False without memory."""
    cdef FunctionDigest* functions = <FunctionDigest*>scratch_zeros(
        scratch, cutting.functions.count + 1, sizeof(FunctionDigest))
    cdef uint64_t i
    if functions == NULL:
        return False
    # The chip's bits in e_flags are ignored; their position depends on the ABI version.
    absorb_words(&cutting.exact, elf.data[8], elf.header.e_flags & <uint32_t>(
        0xff00ff00 if elf.data[8] < 8 else 0xff0000ff))
    cutting.like = cutting.exact
    for i in range(1, elf.count):
        if not digest_section(cutting, elf, n, i, functions):
            return False
    for i in range(1, cutting.functions.count + 1):
        if not push_digest(cutting, <uint32_t>i, PART_CODE, functions[i].code,
                           &functions[i].contents):
            return False
    return True


cdef inline bint digest_section(Cutting* cutting, const ElfFile* elf, const Names* n,
                                uint64_t number, FunctionDigest* functions) noexcept nogil:
    """Add a section to the digests that it has a part in; False without memory."""
    cdef const Shdr* section = &elf.table[number]
    cdef const char* name = name_at(elf, section)
    cdef uint32_t part = part_of(section, name)
    cdef uint64_t size = section.sh_size if has_bytes(section.sh_type) else 0
    cdef const uint8_t* data = elf.data + section.sh_offset
    # Notes say with which options the tools made it, the chip among them.
    cdef bint noted = section.sh_type == SHT_NOTE
    cdef FunctionDigest* function = &functions[n.owner[number]]
    cdef Fingerprint contents, like
    contents.a = contents.b = 0
    absorb(&contents, data, 0 if noted else size)
    like = contents
    if has_records(name):
        like.a = like.b = 0
        absorb_records(&like, data, size)
    absorb_header(&cutting.exact, section, name, not noted)
    absorb_header(&cutting.like, section, name, not noted and not has_records(name))
    absorb_words(&cutting.exact, contents.a, contents.b)
    absorb_words(&cutting.like, like.a, like.b)
    if noted:
        return True
    if n.owner[number] != SHARED and part in (PART_CODE, PART_CONSTANTS, PART_ATTRIBUTES):
        absorb_text(&function.contents, name)
        absorb_words(&function.contents, like.a, like.b)
        if part == PART_CODE:
            function.code += size
    elif n.owner[number] != SHARED and part == PART_RELOCATIONS and n.symbols != NULL:
        absorb_text(&function.contents, name)
        absorb_relocations(&function.contents, elf, section, n.symbols, n.strings)
    elif part == PART_DATA and size >= LEAST_DATA:
        return push_digest(cutting, SHARED, PART_DATA, size, &contents)
    return True
