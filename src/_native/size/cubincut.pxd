# The bytes of a cubin by part and function. Every byte counts once: sections in the order of their
# offsets, the first has what two share, and what is in none is padding.
#
# A section is that of the function whose name ends its own, else that of the section that sh_info
# names, else nobody's. A symbol's entry and its name in the string table are those of the function.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcpy, strlen, strncmp

from base.elf64 cimport EM_CUDA, SHN_LORESERVE, STT_FUNC, Shdr, Sym
from base.stretches cimport NO_SECTION, Stretch, own_stretches
from base.vector cimport vec_push
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ElfFile, has_bytes, lies_in, name_at, open_elf, open_names, open_table,
)
from elfnumbers cimport SHT_NOTE, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB
from size.digests cimport (
    Digest, Fingerprint, absorb, absorb_header, absorb_records, absorb_relocations, absorb_text,
    absorb_words, has_records,
)
from size.cutting cimport (
    PART_ATTRIBUTES, PART_CODE, PART_CONSTANTS, PART_DATA, PART_DEBUG, PART_HEADERS,
    PART_MERCURY_CODE, PART_MERCURY_REST, PART_NAMES, PART_OTHER, PART_PADDING, PART_RELOCATIONS,
    SHARED, Cutting, add_function, count_bytes, find_function,
)

cdef extern from "size/search.h":
    void* memmem(const void* hay, size_t hay_size, const void* needle, size_t size) nogil

cdef enum:
    SHF_ALLOC = 2
    # Names may share bytes; all together no more than this many times the file.
    NAME_LIMIT = 4
    ET_EXEC = 2
    # Shorter data is equal by chance.
    LEAST_DATA = 256

cdef inline bint starts(const char* name, const char* with_) noexcept nogil:
    return strncmp(name, with_, strlen(with_)) == 0


cdef inline uint32_t part_of(const Shdr* section, const char* name) noexcept nogil:
    if starts(name, b".text"):
        return PART_CODE
    if starts(name, b".nv.constant"):
        return PART_CONSTANTS
    if starts(name, b".nv.capmerc"):
        return PART_MERCURY_CODE
    if starts(name, b".nv.merc."):
        if starts(name, b".nv.merc.debug") or starts(name, b".nv.merc.nv_debug"):
            return PART_DEBUG
        return PART_MERCURY_REST
    if starts(name, b".debug") or starts(name, b".nv_debug"):
        return PART_DEBUG
    if (section.sh_type in (SHT_REL, SHT_RELA) or starts(name, b".rel")
            or starts(name, b".nv.rel.action")):
        return PART_RELOCATIONS
    if section.sh_type in (SHT_SYMTAB, SHT_STRTAB) or starts(name, b".symtab"):
        return PART_NAMES
    if (starts(name, b".nv.info") or starts(name, b".note") or starts(name, b".nv.compat")
            or starts(name, b".nv.callgraph") or starts(name, b".nv.prototype")):
        return PART_ATTRIBUTES
    return PART_DATA if section.sh_flags & SHF_ALLOC else PART_OTHER


cdef inline int64_t owner_by_name(Cutting* c, const char* name) noexcept nogil:
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
        owner = find_function(c, <const uint8_t*>at, <uint32_t>(end - at))
        if owner != SHARED:
            return owner
        tries += 1
    return SHARED


cdef inline bint is_text(const char* name) noexcept nogil:
    return strncmp(name, b".text.", 6) == 0 and name[6] != 0


cdef inline bint find_owners(Cutting* c, const ElfFile* elf, uint32_t* owner) noexcept nogil:
    """The function of each section; False without memory, or with `bad` set."""
    cdef uint64_t i, names = 0
    cdef const char* name
    cdef const Shdr* section
    cdef int64_t found
    for i in range(elf.count):
        name = name_at(elf, &elf.table[i])
        if name == NULL or (has_bytes(elf.table[i].sh_type) and not lies_in(elf, &elf.table[i])):
            c.bad = True
            return False
        names += strlen(name)
        if names > NAME_LIMIT * elf.size:
            c.bad = True
            return False
        if is_text(name):
            found = add_function(c, <const uint8_t*>name + 6, <uint32_t>strlen(name + 6))
            if found < 0:
                return False
    for i in range(elf.count):
        found = owner_by_name(c, name_at(elf, &elf.table[i]))
        if found < 0:
            return False
        owner[i] = <uint32_t>found
    for i in range(elf.count):
        section = &elf.table[i]
        if (owner[i] == SHARED and section.sh_type not in (SHT_SYMTAB, SHT_STRTAB)
                and 0 < section.sh_info < elf.count
                and is_text(name_at(elf, &elf.table[section.sh_info]))):
            owner[i] = owner[section.sh_info]
    return True


ctypedef struct Names:
    const Shdr* symbols         # or NULL
    uint64_t strings            # section with their names, 0: none
    uint32_t* painted[2]        # owner + 1 of each byte: names of symbols, of sections


cdef inline void paint(const ElfFile* elf, uint64_t strings, uint32_t* painted, uint64_t at,
                       uint32_t owner) noexcept nogil:
    """Give a string to its owner; what is taken already is so up to its end."""
    cdef const Shdr* section = &elf.table[strings]
    while at < section.sh_size and painted[at] == 0:
        painted[at] = owner + 1
        if elf.data[section.sh_offset + at] == 0:
            break
        at += 1


cdef inline int64_t symbol_owner(Cutting* c, const ElfFile* elf, const uint32_t* owner,
                                 uint64_t strings, const Sym* symbol) noexcept nogil:
    cdef const Shdr* texts = &elf.table[strings]
    cdef const char* name
    cdef int64_t found
    if symbol.st_name < texts.sh_size and symbol.st_name != 0:
        name = <const char*>elf.data + texts.sh_offset + symbol.st_name
        if symbol.st_info & 15 == STT_FUNC:
            found = find_function(c, <const uint8_t*>name, <uint32_t>strlen(name))
            if found != SHARED:
                return found
    if 0 < symbol.st_shndx < SHN_LORESERVE and symbol.st_shndx < elf.count:
        return owner[symbol.st_shndx]
    return SHARED


cdef inline bint own_names(Cutting* c, const ElfFile* elf, const uint32_t* owner, Names* n,
                           uint32_t* symbol_owners) noexcept nogil:
    """Paint both string tables; False without memory."""
    cdef uint64_t i, count
    cdef Sym symbol
    cdef int64_t found
    cdef uint64_t spent = 0
    if n.symbols != NULL:
        count = n.symbols.sh_size // sizeof(Sym)
        for i in range(count):
            memcpy(&symbol, elf.data + n.symbols.sh_offset + i * sizeof(Sym), sizeof(Sym))
            found = SHARED
            if n.strings and spent <= NAME_LIMIT * elf.size:
                if symbol.st_name < elf.table[n.strings].sh_size:
                    spent += strlen(<const char*>elf.data + elf.table[n.strings].sh_offset
                                    + symbol.st_name)
                found = symbol_owner(c, elf, owner, n.strings, &symbol)
                if found < 0:
                    return False
            symbol_owners[i] = <uint32_t>found
            if n.strings:
                paint(elf, n.strings, n.painted[0], symbol.st_name, <uint32_t>found)
    for i in range(elf.count):
        paint(elf, elf.strings, n.painted[1], elf.table[i].sh_name, owner[i])
    return True


cdef inline void count_painted(Cutting* c, const uint32_t* painted, uint64_t start,
                               uint64_t end) noexcept nogil:
    """Bytes of a string table; those of no name are shared."""
    cdef uint64_t at = start, begin
    while at < end:
        begin = at
        while at < end and painted[at] == painted[begin]:
            at += 1
        count_bytes(c, painted[begin] - 1 if painted[begin] else SHARED, PART_NAMES, at - begin)


cdef inline void count_stretch(Cutting* c, const ElfFile* elf, const uint32_t* owner,
                               const Names* n, const uint32_t* symbol_owners,
                               const Stretch* at) noexcept nogil:
    """Bytes of the file that are all of one section."""
    cdef uint32_t number = at.section
    cdef const Shdr* section = &elf.table[number]
    cdef uint64_t i, entry, first = at.start - section.sh_offset, last = at.end - section.sh_offset
    if n.strings and number == n.strings:
        count_painted(c, n.painted[0], first, last)
    elif number == elf.strings:
        count_painted(c, n.painted[1], first, last)
    elif section == n.symbols and first == 0:
        entry = section.sh_size // sizeof(Sym)
        for i in range(min(entry, last // sizeof(Sym))):
            count_bytes(c, symbol_owners[i], PART_NAMES, sizeof(Sym))
        i = min(entry, last // sizeof(Sym))
        count_bytes(c, SHARED, PART_NAMES, last - i * sizeof(Sym))
    else:
        count_bytes(c, owner[number], part_of(section, name_at(elf, section)),
                    at.end - at.start)


cdef inline void find_unit(Cutting* c, const uint8_t* texts, uint64_t size) noexcept nogil:
    """What names the source file in the names of symbols that are local to it."""
    cdef const char** marks = [b"_INTERNAL_", b"_GLOBAL__N__", b"__nv_static_"]
    cdef const uint8_t* found
    cdef int i
    for i in range(3):
        found = <const uint8_t*>memmem(texts, size, marks[i], strlen(marks[i]))
        if found != NULL:
            c.unit.data = found
            c.unit.size = <uint32_t>min(<uint64_t>256, <uint64_t>(texts + size - found))
            return


cdef inline bint cut_cubin(Cutting* c, const uint8_t* data, uint64_t size) noexcept nogil:
    """Count all of it; False without memory. What is not a cubin is `bad` and not counted."""
    cdef ElfFile elf
    cdef Names n
    cdef uint32_t* owner = NULL
    cdef uint32_t* symbol_owners = NULL
    cdef Stretch* stretches = NULL
    cdef uint64_t i, count = 0, at = 0
    cdef int fault
    cdef bint good = False
    n.symbols, n.strings = NULL, 0
    n.painted[0] = n.painted[1] = NULL
    if open_elf(&elf, data, size) != ELF_GOOD or elf.header.e_machine != EM_CUDA:
        c.bad = True
        return True
    c.type = elf.header.e_type
    fault = open_table(&elf)
    if fault == ELF_NO_TABLE:
        count_bytes(c, SHARED, PART_HEADERS, min(size, <uint64_t>64))
        count_bytes(c, SHARED, PART_OTHER, size - min(size, <uint64_t>64))
        return True
    if fault != ELF_GOOD or open_names(&elf) != ELF_GOOD:
        c.bad = True
        return True
    owner = <uint32_t*>calloc(elf.count, sizeof(uint32_t))
    stretches = <Stretch*>malloc((elf.count + 3) * sizeof(Stretch))
    if owner != NULL and stretches != NULL and find_owners(c, &elf, owner):
        good = True
        for i in range(elf.count):
            if elf.table[i].sh_type == SHT_SYMTAB and n.symbols == NULL:
                n.symbols = &elf.table[i]
                n.strings = n.symbols.sh_link if n.symbols.sh_link < elf.count else 0
        if n.strings and (not lies_in(&elf, &elf.table[n.strings])
                          or elf.table[n.strings].sh_type != SHT_STRTAB
                          or elf.table[n.strings].sh_size == 0
                          or data[elf.table[n.strings].sh_offset
                                  + elf.table[n.strings].sh_size - 1] != 0):
            n.strings = 0
        n.painted[1] = <uint32_t*>calloc(elf.names_size + 1, sizeof(uint32_t))
        if n.strings == elf.strings:
            n.painted[0] = n.painted[1]
        elif n.strings:
            n.painted[0] = <uint32_t*>calloc(elf.table[n.strings].sh_size + 1, sizeof(uint32_t))
        if n.symbols != NULL:
            symbol_owners = <uint32_t*>calloc(n.symbols.sh_size // sizeof(Sym) + 1,
                                              sizeof(uint32_t))
            good = symbol_owners != NULL
        good = (good and n.painted[1] != NULL and (n.strings == 0 or n.painted[0] != NULL)
                and own_names(c, &elf, owner, &n, symbol_owners))
    if good:
        if n.strings:
            find_unit(c, data + elf.table[n.strings].sh_offset, elf.table[n.strings].sh_size)
        count = own_stretches(stretches, &elf)
        for i in range(count):
            count_bytes(c, SHARED, PART_PADDING, stretches[i].start - at)
            at = stretches[i].end
            if stretches[i].section == <uint32_t>NO_SECTION:
                count_bytes(c, SHARED, PART_HEADERS, at - stretches[i].start)
            else:
                count_stretch(c, &elf, owner, &n, symbol_owners, &stretches[i])
        count_bytes(c, SHARED, PART_PADDING, size - at)
        if c.type == ET_EXEC:
            good = digest_cubin(c, &elf, owner, &n)
    if n.painted[0] != n.painted[1]:
        free(n.painted[0])
    free(n.painted[1])
    free(symbol_owners)
    free(owner)
    free(stretches)
    return good or c.bad


cdef inline bint digest_cubin(Cutting* c, const ElfFile* elf, const uint32_t* owner,
                              const Names* n) noexcept nogil:
    """Digests of functions, of data, and of the whole; False without memory."""
    cdef Fingerprint* functions
    cdef uint64_t* code
    cdef Fingerprint contents, like
    cdef const Shdr* section
    cdef const char* name
    cdef const uint8_t* data
    cdef uint32_t part
    cdef uint64_t i, size
    cdef Digest* row
    cdef bint good, noted
    functions = <Fingerprint*>calloc(c.functions.count + 1, sizeof(Fingerprint))
    code = <uint64_t*>calloc(c.functions.count + 1, sizeof(uint64_t))
    good = functions != NULL and code != NULL
    # The chip's bits in e_flags are ignored; the ABI version decides where they are.
    absorb_words(&c.exact, elf.data[8], elf.header.e_flags & <uint32_t>(
        0xff00ff00 if elf.data[8] < 8 else 0xff0000ff))
    c.like = c.exact
    for i in range(1, elf.count if good else 1):
        section = &elf.table[i]
        name = name_at(elf, section)
        part = part_of(section, name)
        size = section.sh_size if has_bytes(section.sh_type) else 0
        data = elf.data + section.sh_offset
        # Notes say with which options the tools made it, the chip among them.
        noted = section.sh_type == SHT_NOTE
        contents.a = contents.b = 0
        absorb(&contents, data, 0 if noted else size)
        like = contents
        if has_records(name):
            like.a = like.b = 0
            absorb_records(&like, data, size)
        absorb_header(&c.exact, section, name, not noted)
        absorb_header(&c.like, section, name, not noted and not has_records(name))
        absorb_words(&c.exact, contents.a, contents.b)
        absorb_words(&c.like, like.a, like.b)
        if noted:
            continue
        if owner[i] != SHARED and part in (PART_CODE, PART_CONSTANTS, PART_ATTRIBUTES):
            absorb_text(&functions[owner[i]], name)
            absorb_words(&functions[owner[i]], like.a, like.b)
            if part == PART_CODE:
                code[owner[i]] += size
        elif owner[i] != SHARED and part == PART_RELOCATIONS and n.symbols != NULL:
            absorb_text(&functions[owner[i]], name)
            absorb_relocations(&functions[owner[i]], elf, section, n.symbols, n.strings)
        elif part == PART_DATA and size >= LEAST_DATA:
            row = <Digest*>vec_push(&c.digests)
            if row == NULL:
                good = False
                break
            row.owner, row.part, row.size, row.contents = SHARED, PART_DATA, size, contents
    for i in range(1, c.functions.count + 1 if good else 1):
        row = <Digest*>vec_push(&c.digests)
        if row == NULL:
            good = False
            break
        row.owner, row.part, row.size, row.contents = <uint32_t>i, PART_CODE, code[i], functions[i]
    free(functions)
    free(code)
    return good
