"""Selection of the files that a link takes: members of archives, and the device runtime library.

A small form of symbol resolution that runs before any table exists. Files that are not taken are
not checked, counted or kept. It follows every name once: linear in the symbols of all files.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport EM_CUDA, SHN_UNDEF, STB_GLOBAL, STB_LOCAL, STT_FUNC, Shdr, Sym
from base.elffile cimport ELF_GOOD, ElfFile, is_in_file, open_elf, open_table
from base.extents cimport count_files
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_push
from elfnumbers cimport SHT_STRTAB, SHT_SYMTAB
from picknumbers cimport DEMAND_ALWAYS, DEMAND_NEEDED, DEMAND_SYSTEM, DEMAND_TOGETHER
from read.runtime cimport is_runtime_function

# Claims that a file makes about a name, and that the files taken so far make together.
cdef enum Claim:
    DEFINES = 1
    NEEDS = 2
    CALLS = 4               # needs it as a function that no driver supplies

cdef enum:
    IS_DAMAGED = 2          # `is_selected` of a file without readable symbols, while names are read

# A name in the symbol table of a file.
cdef packed struct Mention:
    int32_t name            # number of the Name
    uint8_t claim           # a Claim, or NEEDS | CALLS

# A name, and what files say of it.
cdef packed struct Name:
    int32_t definer         # number of the first file that can be taken for it, or -1
    uint8_t claims          # bits of all files that are taken so far

# The files of a link, the names in them, and which files are taken so far.
ctypedef struct Selector:
    const uint8_t* arena
    const uint64_t* extents     # offset and size of each file in the arena, alternating
    const uint8_t* demand       # by file: a DEMAND_ number
    const int32_t* group        # by file: equal for adjacent files of one archive
    uint8_t* is_selected        # by file: 1 if it is taken
    uint32_t* first             # by file: number of its first mention; one more for the end
    size_t file_count
    size_t n_missing            # functions that files taken so far need and do not define
    bint relocatable            # names may stay undefined
    NameIndex index             # numbers of names
    Vec names                   # Name
    Vec mentions                # Mention: those of a file after those of the file before
    Vec needed_names            # int32_t: numbers of names in the order in which they were needed


def select(bytes arena, bytes extents, bytes demand, bytes groups, *, bint relocatable):
    cdef Selector selector
    cdef size_t n = count_files(arena, extents)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, n)
    cdef Scratch scratch
    selector.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    selector.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    selector.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    selector.group = <const int32_t*>PyBytes_AS_STRING(groups)
    selector.is_selected = <uint8_t*>PyBytes_AS_STRING(result)
    selector.file_count = n
    selector.n_missing = 0
    selector.relocatable = relocatable
    if <size_t>PyBytes_GET_SIZE(demand) != n or <size_t>PyBytes_GET_SIZE(groups) != 4 * n:
        raise ValueError("columns differ in length")
    memset(selector.is_selected, 0, n)
    scratch_init(&scratch)
    try:
        begin_names(&selector, &scratch)
        scratch_vector(&scratch, &selector.needed_names, sizeof(int32_t))
        selector.first = <uint32_t*>scratch_zeros(&scratch, n + 1, sizeof(uint32_t))
        if not scratch.failed:
            with nogil:
                scratch.failed = not select_all(&selector)
        if scratch.failed:
            raise MemoryError
    finally:
        scratch_free(&scratch)
    return result


cdef void begin_names(Selector* selector, Scratch* scratch) noexcept:
    """Make the empty index, names and mentions."""
    scratch_vector(scratch, &selector.names, sizeof(Name))
    scratch_vector(scratch, &selector.mentions, sizeof(Mention))
    scratch_index(scratch, &selector.index, 1024)


def find_missing(bytes arena, bytes extents):
    cdef Selector selector
    cdef size_t n = count_files(arena, extents), i
    cdef bytes selected_files = PyBytes_FromStringAndSize(NULL, n)
    cdef bytes demand = bytes(n)
    cdef const NameSlot* slot
    cdef const Name* name
    cdef list missing = []
    cdef Scratch scratch
    selector.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    selector.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    selector.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    selector.is_selected = <uint8_t*>PyBytes_AS_STRING(selected_files)
    selector.relocatable = False
    scratch_init(&scratch)
    try:
        begin_names(&selector, &scratch)
        if not scratch.failed:
            with nogil:
                scratch.failed = not claim_all(&selector, n)
        if scratch.failed:
            raise MemoryError
        for i in range(selector.index.mask + 1):
            slot = &selector.index.slots[i]
            if slot.value < 0:
                continue
            name = <const Name*>selector.names.data + slot.value
            if name.claims & DEFINES == 0 and not is_runtime_function(slot.text, slot.size):
                missing.append(PyBytes_FromStringAndSize(<const char*>slot.text, slot.size))
        return sorted(missing)
    finally:
        scratch_free(&scratch)


cdef bint claim_all(Selector* selector, size_t count) noexcept nogil:
    """Read the names of `count` files; each name has the claims of all files then."""
    cdef size_t i
    cdef const Mention* mention
    for i in range(count):
        if not read_file_names(selector, i):
            return False
    for i in range(selector.mentions.count):
        mention = <const Mention*>selector.mentions.data + i
        (<Name*>selector.names.data + mention.name).claims |= mention.claim
    return True


cdef bint select_all(Selector* selector) noexcept nogil:
    """Read all names, then select the files; False without memory."""
    cdef size_t i, needed, selected_count = 0
    cdef bint damaged
    cdef Name* name
    for i in range(selector.file_count):
        selector.first[i] = <uint32_t>selector.mentions.count
        if not read_file_names(selector, i):
            return False
        if selector.mentions.count > 0x7fffffff:
            return False
    selector.first[selector.file_count] = <uint32_t>selector.mentions.count
    # In the order of the link: the device runtime depends on what is missing at its place.
    for i in range(selector.file_count):
        damaged = selector.is_selected[i] == IS_DAMAGED
        selector.is_selected[i] = False
        if (selector.demand[i] == DEMAND_ALWAYS
                or (selector.demand[i] == DEMAND_SYSTEM and selector.n_missing)
                or (selector.demand[i] != DEMAND_TOGETHER and damaged)):
            if not select_file(selector, i):
                return False
    needed = 0
    while needed < selector.needed_names.count:
        name = <Name*>selector.names.data + (<int32_t*>selector.needed_names.data)[needed]
        needed += 1
        if (not name.claims & DEFINES and name.definer >= 0
                and not select_with_group(selector, name.definer)):
            return False
    for i in range(selector.file_count):
        selected_count += selector.is_selected[i]
    if selected_count == 0:
        for i in range(selector.file_count):
            selector.is_selected[i] = selector.demand[i] == DEMAND_TOGETHER
    return True


cdef bint select_with_group(Selector* selector, int32_t file) noexcept nogil:
    """Select a file that defines a needed name; with DEMAND_TOGETHER also the rest of its group."""
    cdef size_t first = file, end = file + 1
    if selector.demand[file] != DEMAND_TOGETHER:
        return select_file(selector, file)
    # Members of an archive stand side by side.
    while first > 0 and selector.group[first - 1] == selector.group[file]:
        first -= 1
    while end < selector.file_count and selector.group[end] == selector.group[file]:
        end += 1
    while first < end:
        if selector.demand[first] == DEMAND_TOGETHER and not select_file(selector, first):
            return False
        first += 1
    return True


cdef bint select_file(Selector* selector, size_t file) noexcept nogil:
    """Select a file, and record the names that it needs; False without memory."""
    cdef const Mention* mention
    cdef Name* name
    cdef uint8_t claims_before
    cdef uint32_t i
    cdef int32_t* name_number
    if selector.is_selected[file]:
        return True
    selector.is_selected[file] = 1
    for i in range(selector.first[file], selector.first[file + 1]):
        mention = <const Mention*>selector.mentions.data + i
        name = <Name*>selector.names.data + mention.name
        claims_before = name.claims
        name.claims |= mention.claim
        if mention.claim == DEFINES:
            if claims_before & CALLS and not claims_before & DEFINES:
                selector.n_missing -= 1
            continue
        if mention.claim & CALLS and not claims_before & (CALLS | DEFINES):
            selector.n_missing += 1
        if not claims_before & (NEEDS | DEFINES):
            name_number = <int32_t*>vec_push(&selector.needed_names)
            if name_number == NULL:
                return False
            name_number[0] = mention.name
    return True


cdef bint read_file_names(Selector* selector, size_t file) noexcept nogil:
    """Add a mention for each name that a file defines or needs.

    A file without readable symbols is marked as IS_DAMAGED. False without memory.
    """
    cdef ElfFile elf
    cdef const Shdr* symtab = NULL
    cdef const Shdr* strtab
    cdef const Sym* symbol
    cdef uint64_t n
    selector.is_selected[file] = IS_DAMAGED     # until its symbols and their names are found
    if (open_elf(&elf, selector.arena + selector.extents[2 * file], selector.extents[2 * file + 1])
            != ELF_GOOD or elf.header.e_machine != EM_CUDA or open_table(&elf) != ELF_GOOD):
        return True
    for n in range(elf.count):
        if elf.table[n].sh_type == SHT_SYMTAB:
            symtab = &elf.table[n]
            break
    if symtab == NULL or symtab.sh_link >= elf.count or not is_in_file(&elf, symtab):
        return True
    strtab = &elf.table[symtab.sh_link]
    if strtab.sh_type != SHT_STRTAB or not is_in_file(&elf, strtab):
        return True
    selector.is_selected[file] = False
    for n in range(symtab.sh_size // sizeof(Sym)):
        symbol = <const Sym*>(elf.data + symtab.sh_offset) + n
        if (symbol.st_info >> 4 == STB_LOCAL or symbol.st_name >= strtab.sh_size
                or (symbol.st_shndx == SHN_UNDEF and symbol.st_info >> 4 != STB_GLOBAL)):
            continue
        if not mention_name(selector, <int32_t>file, symbol,
                            elf.data + strtab.sh_offset + symbol.st_name,
                            strtab.sh_size - symbol.st_name):
            return False
    return True


cdef bint mention_name(Selector* selector, int32_t file, const Sym* symbol, const uint8_t* text,
                       uint64_t room) noexcept nogil:
    """Record that a file defines or needs the name at `text`; False without memory.

    `room` is the number of bytes up to the end of the string table.
    """
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    cdef uint32_t size
    cdef NameSlot* slot
    cdef Name* name
    cdef Mention* mention
    if end == NULL or end == text or end - text > 0x7fffffff:
        return True
    size = <uint32_t>(end - text)
    slot = index_find(&selector.index, text, size)
    if slot == NULL:
        return False
    if slot.value < 0:
        slot.value = <int32_t>selector.names.count
        selector.index.count += 1
        name = <Name*>vec_push(&selector.names)
        if name == NULL:
            return False
        name.definer = -1
        name.claims = 0
    mention = <Mention*>vec_push(&selector.mentions)
    if mention == NULL:
        return False
    mention.name = slot.value
    if symbol.st_shndx != SHN_UNDEF:
        mention.claim = DEFINES
        name = <Name*>selector.names.data + slot.value
        # In a relocatable output, names may stay undefined.
        if (name.definer < 0 and selector.demand[file] != DEMAND_ALWAYS
                and (selector.demand[file] == DEMAND_NEEDED or not selector.relocatable)):
            name.definer = file
    else:
        mention.claim = NEEDS
        if (symbol.st_info & 15) == STT_FUNC and not is_runtime_function(text, size):
            mention.claim |= CALLS
    return True
