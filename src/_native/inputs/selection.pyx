"""Which of the files at hand a link takes: members of archives, and the device runtime library.

A small copy of symbol resolution that runs before any table exists, so that what is not taken is
not checked, counted or kept. It follows every name once: linear in the symbols of all files.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from elfnumbers cimport SHT_STRTAB, SHT_SYMTAB
from base.elf64 cimport EM_CUDA, SHN_UNDEF, STB_GLOBAL, STB_LOCAL, STT_FUNC, Shdr, Sym
from base.elffile cimport ELF_GOOD, ElfFile, lies_in, open_elf, open_table
from base.extents cimport count_files
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from merge.runtime cimport is_runtime_function
from base.vector cimport Vec, vec_push

# When a file is taken, as in pylink/inputs/pieces.py.
cdef enum Demand:
    ALWAYS = 0
    SYSTEM = 1
    NEEDED = 2
    TOGETHER = 3

# What a file says of a name, and what the files taken so far say.
cdef enum Claim:
    DEFINES = 1
    NEEDS = 2
    CALLS = 4               # needs it as a function that no driver supplies

cdef enum:
    DAMAGED = 2             # in place of a byte of the result

cdef packed struct Mention:
    int32_t name
    uint8_t claim

cdef packed struct Name:
    int32_t definer         # the first file that can be taken for it, or -1
    uint8_t claims

ctypedef struct Selector:
    const uint8_t* arena
    const uint64_t* extents
    const uint8_t* demand
    const int32_t* group
    uint8_t* taken
    uint32_t* first         # by file: its first mention; one more at the end
    size_t file_count
    size_t missing          # functions that files taken so far need and do not define
    bint relocatable
    NameIndex index
    Vec names
    Vec mentions
    Vec wanted              # int32: names in the order in which they were needed


def select(bytes arena, bytes extents, bytes demand, bytes groups, bint relocatable):
    """A byte per file, 1 for those that the link takes.

    `extents` has a row (offset u64, size u64) per file, `demand` a byte and `groups` an int32.
    Files that are damaged define nothing; all but members of a group are taken, for the reader of
    cubins to report. ValueError for arguments of different lengths, IndexError for an extent
    outside the arena.
    """
    cdef Selector s
    cdef size_t n = count_files(arena, extents)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, n)
    cdef Scratch scratch
    s.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    s.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    s.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    s.group = <const int32_t*>PyBytes_AS_STRING(groups)
    s.taken = <uint8_t*>PyBytes_AS_STRING(result)
    s.file_count = n
    s.missing = 0
    s.relocatable = relocatable
    if <size_t>PyBytes_GET_SIZE(demand) != n or <size_t>PyBytes_GET_SIZE(groups) != 4 * n:
        raise ValueError("columns differ in length")
    memset(s.taken, 0, n)
    scratch_init(&scratch)
    try:
        begin_names(&s, &scratch)
        scratch_vector(&scratch, &s.wanted, sizeof(int32_t))
        s.first = <uint32_t*>scratch_zeros(&scratch, n + 1, sizeof(uint32_t))
        if not scratch.failed:
            with nogil:
                scratch.failed = not select_all(&s)
        if scratch.failed:
            raise MemoryError
    finally:
        scratch_free(&scratch)
    return result


cdef void begin_names(Selector* s, Scratch* scratch) noexcept:
    scratch_vector(scratch, &s.names, sizeof(Name))
    scratch_vector(scratch, &s.mentions, sizeof(Mention))
    scratch_index(scratch, &s.index, 1024)


def find_missing(bytes arena, bytes extents):
    """The names that these files need and none of them defines, except for functions of the driver.

    `extents` are as in `select`. Dead code counts: what an executable lacks may be less.
    """
    cdef Selector s
    cdef size_t n = count_files(arena, extents), i
    cdef bytes taken = PyBytes_FromStringAndSize(NULL, n)
    cdef bytes demand = bytes(n)
    cdef const NameSlot* slot
    cdef const Name* name
    cdef list found = []
    cdef Scratch scratch
    s.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    s.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    s.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    s.taken = <uint8_t*>PyBytes_AS_STRING(taken)
    s.relocatable = False
    scratch_init(&scratch)
    try:
        begin_names(&s, &scratch)
        if not scratch.failed:
            with nogil:
                scratch.failed = not claim_all(&s, n)
        if scratch.failed:
            raise MemoryError
        for i in range(s.index.mask + 1):
            slot = &s.index.slots[i]
            if slot.value < 0:
                continue
            name = <const Name*>s.names.data + slot.value
            if name.claims & DEFINES == 0 and not is_runtime_function(slot.text, slot.size):
                found.append(PyBytes_FromStringAndSize(<const char*>slot.text, slot.size))
        return sorted(found)
    finally:
        scratch_free(&scratch)


cdef bint claim_all(Selector* s, size_t count) noexcept nogil:
    """Read the names of all files; each has the claims of all."""
    cdef size_t i
    cdef const Mention* mention
    for i in range(count):
        if not read_names(s, i):
            return False
    for i in range(s.mentions.count):
        mention = <const Mention*>s.mentions.data + i
        (<Name*>s.names.data + mention.name).claims |= mention.claim
    return True


cdef bint select_all(Selector* s) noexcept nogil:
    cdef size_t i, at, taken = 0
    cdef bint damaged
    cdef Name* name
    for i in range(s.file_count):
        s.first[i] = <uint32_t>s.mentions.count
        if not read_names(s, i):
            return False
        if s.mentions.count > 0x7fffffff:
            return False
    s.first[s.file_count] = <uint32_t>s.mentions.count
    # In the order of the link: the device runtime counts what is missing where it stands.
    for i in range(s.file_count):
        damaged = s.taken[i] == DAMAGED
        s.taken[i] = False
        if (s.demand[i] == ALWAYS or (s.demand[i] == SYSTEM and s.missing)
                or (s.demand[i] != TOGETHER and damaged)):
            if not take(s, i):
                return False
    at = 0
    while at < s.wanted.count:
        name = <Name*>s.names.data + (<int32_t*>s.wanted.data)[at]
        at += 1
        if not name.claims & DEFINES and name.definer >= 0 and not fetch(s, name.definer):
            return False
    for i in range(s.file_count):
        taken += s.taken[i]
    if taken == 0:
        for i in range(s.file_count):
            s.taken[i] = s.demand[i] == TOGETHER
    return True


cdef bint fetch(Selector* s, int32_t file) noexcept nogil:
    """Take a file for what it defines, and with it its group."""
    cdef size_t first = file, end = file + 1
    if s.demand[file] != TOGETHER:
        return take(s, file)
    # Members of an archive stand side by side.
    while first > 0 and s.group[first - 1] == s.group[file]:
        first -= 1
    while end < s.file_count and s.group[end] == s.group[file]:
        end += 1
    while first < end:
        if s.demand[first] == TOGETHER and not take(s, first):
            return False
        first += 1
    return True


cdef bint take(Selector* s, size_t file) noexcept nogil:
    cdef const Mention* mention
    cdef Name* name
    cdef uint8_t before
    cdef uint32_t i
    cdef int32_t* wanted
    if s.taken[file]:
        return True
    s.taken[file] = 1
    for i in range(s.first[file], s.first[file + 1]):
        mention = <const Mention*>s.mentions.data + i
        name = <Name*>s.names.data + mention.name
        before = name.claims
        name.claims |= mention.claim
        if mention.claim == DEFINES:
            if before & CALLS and not before & DEFINES:
                s.missing -= 1
            continue
        if mention.claim & CALLS and not before & (CALLS | DEFINES):
            s.missing += 1
        if not before & (NEEDS | DEFINES):
            wanted = <int32_t*>vec_push(&s.wanted)
            if wanted == NULL:
                return False
            wanted[0] = mention.name
    return True


cdef bint read_names(Selector* s, size_t file) noexcept nogil:
    """The names that a file defines or needs, as mentions; none of a file that it marks damaged."""
    cdef ElfFile elf
    cdef const Shdr* symtab = NULL
    cdef const Shdr* strtab
    cdef const Sym* symbol
    cdef uint64_t n
    s.taken[file] = DAMAGED     # until all is there
    if (open_elf(&elf, s.arena + s.extents[2 * file], s.extents[2 * file + 1]) != ELF_GOOD
            or elf.header.e_machine != EM_CUDA or open_table(&elf) != ELF_GOOD):
        return True
    for n in range(elf.count):
        if elf.table[n].sh_type == SHT_SYMTAB:
            symtab = &elf.table[n]
            break
    if symtab == NULL or symtab.sh_link >= elf.count or not lies_in(&elf, symtab):
        return True
    strtab = &elf.table[symtab.sh_link]
    if strtab.sh_type != SHT_STRTAB or not lies_in(&elf, strtab):
        return True
    s.taken[file] = False
    for n in range(symtab.sh_size // sizeof(Sym)):
        symbol = <const Sym*>(elf.data + symtab.sh_offset) + n
        if (symbol.st_info >> 4 == STB_LOCAL or symbol.st_name >= strtab.sh_size
                or (symbol.st_shndx == SHN_UNDEF and symbol.st_info >> 4 != STB_GLOBAL)):
            continue
        if not mention_name(s, <int32_t>file, symbol,
                            elf.data + strtab.sh_offset + symbol.st_name,
                            strtab.sh_size - symbol.st_name):
            return False
    return True


cdef bint mention_name(Selector* s, int32_t file, const Sym* symbol, const uint8_t* text,
                       uint64_t room) noexcept nogil:
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    cdef uint32_t size
    cdef NameSlot* slot
    cdef Name* name
    cdef Mention* mention
    if end == NULL or end == text or end - text > 0x7fffffff:
        return True
    size = <uint32_t>(end - text)
    slot = index_find(&s.index, text, size)
    if slot == NULL:
        return False
    if slot.value < 0:
        slot.value = <int32_t>s.names.count
        s.index.count += 1
        name = <Name*>vec_push(&s.names)
        if name == NULL:
            return False
        name.definer = -1
        name.claims = 0
    mention = <Mention*>vec_push(&s.mentions)
    if mention == NULL:
        return False
    mention.name = slot.value
    if symbol.st_shndx != SHN_UNDEF:
        mention.claim = DEFINES
        name = <Name*>s.names.data + slot.value
        # In a relocatable output, names may stay undefined.
        if (name.definer < 0 and s.demand[file] != ALWAYS
                and (s.demand[file] == NEEDED or not s.relocatable)):
            name.definer = file
    else:
        mention.claim = NEEDS
        if (symbol.st_info & 15) == STT_FUNC and not is_runtime_function(text, size):
            mention.claim |= CALLS
    return True
