"""Selection of the files that a link takes: members of archives, and the device runtime library.

This is a small form of symbol resolution, which runs before any table exists. Files that are not
taken are not checked, counted or kept. Each name is followed once, so the time is linear in the
number of symbols of all files.

Most names are defined in one file and needed by no other, and say nothing about what is taken. So
all needed names are entered first. A definition counts only if its name is among them: for nearly
all other definitions, a bit of the name's hash tells that it is not, without a look at the index.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport Shdr, Sym
from base.elffile cimport ELF_GOOD, ElfFile, is_in_file, open_elf, open_table
from base.extents cimport count_files
from base.memory cimport check_memory
from base.nameindex cimport NameIndex, NameSlot, hash_name, index_find_hashed, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_push
from elfnumbers cimport EM_CUDA, SHN_UNDEF, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL, STB_LOCAL, STT_FUNC
from picknumbers cimport DEMAND_ALWAYS, DEMAND_NEEDED, DEMAND_SYSTEM, DEMAND_TOGETHER
from read.runtime cimport is_runtime_function

cdef enum:
    FILTER_BITS = 1 << 16   # bits of the filter of needed names: they fit into the L1 cache

# Bits for what one file says of a name, or all files that are taken so far together.
cdef enum Claim:
    DEFINES = 1
    NEEDS = 2
    CALLS = 4               # needs it as a function that no driver supplies

cdef enum:
    # `is_selected` has this value for a file without readable symbols, until files are selected.
    IS_DAMAGED = 2

# A name that a file needs.
cdef packed struct Need:
    int32_t name            # number of the Name
    uint8_t claim           # NEEDS, or NEEDS | CALLS

# A name that a file defines.
cdef struct Definition:
    const uint8_t* text     # the name, in the arena
    uint32_t size           # bytes of the text
    uint32_t tag            # low half of the text's hash
    int32_t name            # number of the Name if any file needs it, else -1

# A name that some file needs: which file can be taken for it, and what the taken files say of it.
cdef packed struct Name:
    int32_t definer         # number of the first file that can be taken for it, or -1
    uint8_t claims          # Claim bits of all files taken so far; in `find_missing`, of all files

# The numbers of the first rows of a file in `needs` and `definitions` of the Selector.
ctypedef struct FileRows:
    uint32_t need           # number of the first Need
    uint32_t definition     # number of the first Definition

# The files of a link, the names in them, and which files are taken so far.
ctypedef struct Selector:
    const uint8_t* arena
    const uint64_t* extents     # offset and size of each file in the arena, alternating
    const uint8_t* demand       # by file: a DEMAND_ number
    const int32_t* group        # by file: a number, equal for adjacent files of one archive
    uint8_t* is_selected        # by file: 1 if it is taken
    FileRows* first             # by file, and one more: the ends of both tables
    size_t file_count
    size_t n_missing            # names that files taken so far need with CALLS and do not define
    bint relocatable            # names may stay undefined
    NameIndex index             # by text: the number of its Name
    uint64_t* filter            # the bit `tag % FILTER_BITS` of each needed name
    Vec names                   # Name
    Vec needs                   # Need: those of a file after those of the file before
    Vec definitions             # Definition: in the same order
    Vec needed_names            # int32_t: numbers of names in the order in which they were needed


# `demand` has a DEMAND_ number for each file, which says when it is linked, `groups` an int32,
# equal for the files of one archive. With `relocatable`, names may stay undefined.
def select(bytes arena not None, bytes extents not None, bytes demand not None,
           bytes groups not None, *, bint relocatable):
    """Return a byte for each file: 1 if the link takes it, else 0."""
    cdef Selector selector
    cdef size_t file_count = count_files(arena, extents)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, file_count)
    cdef Scratch scratch
    selector.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    selector.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    selector.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    selector.group = <const int32_t*>PyBytes_AS_STRING(groups)
    selector.is_selected = <uint8_t*>PyBytes_AS_STRING(result)
    selector.file_count = file_count
    selector.n_missing = 0
    selector.relocatable = relocatable
    if (<size_t>PyBytes_GET_SIZE(demand) != file_count
            or <size_t>PyBytes_GET_SIZE(groups) != 4 * file_count):
        raise ValueError("columns differ in length")
    memset(selector.is_selected, 0, file_count)
    scratch_init(&scratch)
    try:
        begin_names(&selector, &scratch)
        if not scratch.failed:
            with nogil:
                scratch.failed = not select_all(&selector)
        check_memory(not scratch.failed)
    finally:
        scratch_free(&scratch)
    return result


cdef void begin_names(Selector* selector, Scratch* scratch) noexcept:
    """Start the empty index and tables of a selector, which `scratch` frees."""
    scratch_vector(scratch, &selector.names, sizeof(Name))
    scratch_vector(scratch, &selector.needs, sizeof(Need))
    scratch_vector(scratch, &selector.definitions, sizeof(Definition))
    scratch_vector(scratch, &selector.needed_names, sizeof(int32_t))
    scratch_index(scratch, &selector.index, 1024)
    selector.filter = <uint64_t*>scratch_zeros(scratch, FILTER_BITS // 64, sizeof(uint64_t))
    selector.first = <FileRows*>scratch_zeros(scratch, selector.file_count + 1, sizeof(FileRows))


def find_missing(bytes arena not None, bytes extents not None, *, bint with_driver=False):
    """Return the names that these files use and do not define, sorted."""
    cdef Selector selector
    cdef size_t file_count = count_files(arena, extents), i
    cdef bytes selected_files = PyBytes_FromStringAndSize(NULL, file_count)
    cdef bytes demand = bytes(file_count)
    cdef const NameSlot* slot
    cdef const Name* name
    cdef list missing = []
    cdef Scratch scratch
    selector.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    selector.extents = <const uint64_t*>PyBytes_AS_STRING(extents)
    selector.demand = <const uint8_t*>PyBytes_AS_STRING(demand)
    selector.is_selected = <uint8_t*>PyBytes_AS_STRING(selected_files)
    selector.file_count = file_count
    selector.relocatable = False
    scratch_init(&scratch)
    try:
        begin_names(&selector, &scratch)
        if not scratch.failed:
            with nogil:
                scratch.failed = not gather_claims(&selector)
        check_memory(not scratch.failed)
        for i in range(selector.index.mask + 1):
            slot = &selector.index.slots[i]
            if slot.value < 0:
                continue
            name = <const Name*>selector.names.data + slot.value
            if name.claims & DEFINES == 0 and (
                    with_driver or not is_runtime_function(slot.text, slot.size)):
                missing.append(PyBytes_FromStringAndSize(<const char*>slot.text, slot.size))
        return sorted(missing)
    finally:
        scratch_free(&scratch)


cdef bint gather_claims(Selector* selector) noexcept nogil:
    """Read all names, and collect all files' claims about each needed one; False without memory."""
    cdef size_t i
    cdef const Need* need
    cdef const Definition* definition
    if not read_all_names(selector):
        return False
    for i in range(selector.needs.count):
        need = <const Need*>selector.needs.data + i
        (<Name*>selector.names.data + need.name).claims |= need.claim
    for i in range(selector.definitions.count):
        definition = <const Definition*>selector.definitions.data + i
        if definition.name >= 0:
            (<Name*>selector.names.data + definition.name).claims |= DEFINES
    return True


cdef bint read_all_names(Selector* selector) noexcept nogil:
    """Read what all files need and define, and find the Name of each definition that is needed."""
    cdef size_t i, row
    for i in range(selector.file_count):
        if not read_file_names(selector, i):
            return False
        if selector.needs.count > 0x7fffffff or selector.definitions.count > 0x7fffffff:
            return False
        selector.first[i + 1].need = <uint32_t>selector.needs.count
        selector.first[i + 1].definition = <uint32_t>selector.definitions.count
    for i in range(selector.file_count):
        for row in range(selector.first[i].definition, selector.first[i + 1].definition):
            if not number_definition(selector, <int32_t>i,
                                     <Definition*>selector.definitions.data + row):
                return False
    return True


cdef inline bint is_perhaps_needed(const Selector* selector, uint32_t tag) noexcept nogil:
    """Return whether a file may need a name with this hash; if it is False, none does."""
    return (selector.filter[(tag & (FILTER_BITS - 1)) >> 6] >> (tag & 63) & 1) != 0


cdef inline bint number_definition(Selector* selector, int32_t file,
                                   Definition* definition) noexcept nogil:
    """Set the Name of a definition if a file needs it; False without memory.

    `file`, which has the definition, becomes the definer of the name if it is the first that may be
    taken for it.
    """
    cdef NameSlot* slot
    cdef Name* name
    if not is_perhaps_needed(selector, definition.tag):
        return True
    slot = index_find_hashed(&selector.index, definition.text, definition.size, definition.tag)
    if slot == NULL:
        return False
    if slot.value < 0:
        return True
    definition.name = slot.value
    name = <Name*>selector.names.data + slot.value
    # Names may stay undefined in a relocatable output, so a name takes only a file with
    # DEMAND_NEEDED there.
    if (name.definer < 0 and selector.demand[file] != DEMAND_ALWAYS
            and (selector.demand[file] == DEMAND_NEEDED or not selector.relocatable)):
        name.definer = file
    return True


cdef bint select_all(Selector* selector) noexcept nogil:
    """Read all names, then select the files; False without memory."""
    cdef size_t i, needed, selected_count = 0
    cdef bint damaged
    cdef Name* name
    if not read_all_names(selector):
        return False
    # Files are visited in the order of the link: the device runtime is taken if functions are
    # undefined where it stands.
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
    """Select a file that defines a needed name; False without memory.

    With DEMAND_TOGETHER, all such files of its group, i.e. its archive, are selected.
    """
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
    """Select a file, and record what it needs and defines; False without memory."""
    cdef const FileRows* rows = &selector.first[file]
    cdef const Need* need
    cdef Name* name
    cdef int32_t name_number
    cdef int32_t* needed
    cdef uint8_t claims_before
    cdef uint32_t i
    if selector.is_selected[file]:
        return True
    selector.is_selected[file] = 1
    for i in range(rows[0].need, rows[1].need):
        need = <const Need*>selector.needs.data + i
        name = <Name*>selector.names.data + need.name
        claims_before = name.claims
        name.claims |= need.claim
        if need.claim & CALLS and not claims_before & (CALLS | DEFINES):
            selector.n_missing += 1
        if not claims_before & (NEEDS | DEFINES):
            needed = <int32_t*>vec_push(&selector.needed_names)
            if needed == NULL:
                return False
            needed[0] = need.name
    for i in range(rows[0].definition, rows[1].definition):
        name_number = (<const Definition*>selector.definitions.data + i).name
        if name_number < 0:
            continue
        name = <Name*>selector.names.data + name_number
        if name.claims & CALLS and not name.claims & DEFINES:
            selector.n_missing -= 1
        name.claims |= DEFINES
    return True


cdef bint read_file_names(Selector* selector, size_t file) noexcept nogil:
    """Add the names that a file needs, and those that it defines.

    Local and undefined weak symbols do not count. A file without readable symbols is marked as
    IS_DAMAGED. False without memory.
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
        if not add_name(selector, symbol, elf.data + strtab.sh_offset + symbol.st_name,
                        strtab.sh_size - symbol.st_name):
            return False
    return True


cdef inline bint add_name(Selector* selector, const Sym* symbol, const uint8_t* text,
                          uint64_t room) noexcept nogil:
    """Add the name at `text` that a symbol defines or needs; False without memory.

    `room` is the number of bytes up to the end of the string table.
    """
    cdef const uint8_t* end = <const uint8_t*>memchr(text, 0, room)
    cdef uint32_t size, tag
    cdef Definition* definition
    if end == NULL or end == text or end - text > 0x7fffffff:
        return True
    size = <uint32_t>(end - text)
    tag = <uint32_t>hash_name(text, size)
    if symbol.st_shndx == SHN_UNDEF:
        return add_need(selector, symbol, text, size, tag)
    definition = <Definition*>vec_push(&selector.definitions)
    if definition == NULL:
        return False
    definition.text = text
    definition.size = size
    definition.tag = tag
    definition.name = -1
    return True


cdef bint add_need(Selector* selector, const Sym* symbol, const uint8_t* text, uint32_t size,
                   uint32_t tag) noexcept nogil:
    """Add a name that a file needs, also to the index if it is new; False without memory."""
    cdef NameSlot* slot = index_find_hashed(&selector.index, text, size, tag)
    cdef Name* name
    cdef Need* need
    if slot == NULL:
        return False
    if slot.value < 0:
        slot.value = <int32_t>selector.names.count
        selector.index.count += 1
        selector.filter[(tag & (FILTER_BITS - 1)) >> 6] |= <uint64_t>1 << (tag & 63)
        name = <Name*>vec_push(&selector.names)
        if name == NULL:
            return False
        name.definer = -1
        name.claims = 0
    need = <Need*>vec_push(&selector.needs)
    if need == NULL:
        return False
    need.name = slot.value
    need.claim = NEEDS
    if (symbol.st_info & 15) == STT_FUNC and not is_runtime_function(text, size):
        need.claim |= CALLS
    return True
