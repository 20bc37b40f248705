# The bytes of a cubin by part and function. Every byte counts once: headers and sections are taken
# in the order of their offsets, a byte of two of them counts for the first, and bytes in none are
# padding.
#
# A section belongs to the function whose name ends the section's name. If there is none, it belongs
# to the function whose code, `.text.F`, sh_info names; else, and if it is a symbol or string table,
# to no function. A symbol's entry and its name in the string table belong to the symbol's function.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, strlen

from base.elf64 cimport Ehdr, Shdr, Sym
from base.elffile cimport (
    ELF_GOOD, ELF_NO_TABLE, ElfFile, has_bytes, is_in_file, name_at, open_elf, open_names,
    open_table,
)
from base.posix cimport memmem
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room, scratch_zeros
from base.stretches cimport NO_SECTION, Stretch, list_own_stretches
from base.texts cimport has_start
from base.vector cimport vec_push
from elfnumbers cimport (
    EI_ABIVERSION, EM_CUDA, ET_EXEC, SHF_ALLOC, SHN_LORESERVE, SHT_NOTE, SHT_REL, SHT_RELA,
    SHT_STRTAB, SHT_SYMTAB, STT_FUNC,
)
from size.cutting cimport SHARED, Cutting, add_function, count_bytes, find_function
from size.digests cimport (
    Digest, Fingerprint, OwnerRef, absorb, absorb_header, absorb_records, absorb_relocations,
    absorb_text, absorb_words, has_records,
)
from sizenumbers cimport (
    MOST_DOTS, PART_ATTRIBUTES, PART_CODE, PART_CONSTANTS, PART_DATA, PART_DEBUG, PART_HEADERS,
    PART_MERCURY_CODE, PART_MERCURY_REST, PART_NAMES, PART_OTHER, PART_PADDING, PART_RELOCATIONS,
)

cdef enum:
    # Limit of the bytes of all names, as a multiple of the file's size: names may share bytes, and
    # damaged headers must not make counting slow. With more bytes of sections' names, the cubin
    # counts as damaged; with more of symbols' names, the further symbols belong to no function.
    NAME_LIMIT = 4
    # Bytes of the shortest initialized data that is compared: shorter data may be equal by chance.
    LEAST_DATA = 256
    CODE_PREFIX = 6             # bytes of ".text."
    UNIT_SIZE = 256             # bytes of a name that are enough to identify its source file

cdef inline uint32_t part_of_section(const Shdr* section, const char* name) noexcept nogil:
    """Return the Part of a section, by its name, type and flags."""
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


cdef inline int64_t find_owner_by_name(Cutting* cutting, const char* name) noexcept nogil:
    """Return the function whose name ends the section name `name`, after a dot; SHARED if none.

    The longest such name counts, after one of the first MOST_DOTS dots. -1 if memory is exhausted.
    """
    cdef uint64_t size = strlen(name)
    cdef const char* rest = name
    cdef const char* end = name + size
    cdef const char* dot
    cdef int64_t owner
    cdef int tries = 0
    while tries < MOST_DOTS:
        dot = <const char*>memchr(rest, b'.', end - rest)
        if dot == NULL:
            break
        rest = dot + 1
        owner = find_function(cutting, <const uint8_t*>rest, <uint32_t>(end - rest))
        if owner != SHARED:
            return owner
        tries += 1
    return SHARED


cdef inline bint is_function_code(const char* name) noexcept nogil:
    """Return whether a section of that name, `.text.F`, has the code of a function."""
    return has_start(name, b".text.") and name[CODE_PREFIX] != 0


cdef inline bint find_owners(Cutting* cutting, const ElfFile* elf, OwnerRef* owner) noexcept nogil:
    """Set the owner of each section: a function or SHARED (no function).

    False if memory is exhausted, or if the cubin is damaged: then `is_damaged` is set.
    """
    cdef uint64_t i, names = 0
    cdef const char* name
    cdef const Shdr* section
    cdef int64_t function
    for i in range(elf.count):
        name = name_at(elf, &elf.table[i])
        if name == NULL or (has_bytes(elf.table[i].sh_type) and not is_in_file(elf, &elf.table[i])):
            cutting.is_damaged = True
            return False
        names += strlen(name)
        if names > NAME_LIMIT * elf.size:
            cutting.is_damaged = True
            return False
        if is_function_code(name):
            function = add_function(cutting, <const uint8_t*>name + CODE_PREFIX,
                                    <uint32_t>strlen(name + CODE_PREFIX))
            if function < 0:
                return False
    for i in range(elf.count):
        function = find_owner_by_name(cutting, name_at(elf, &elf.table[i]))
        if function < 0:
            return False
        owner[i] = <OwnerRef>function
    for i in range(elf.count):
        section = &elf.table[i]
        if (owner[i] == SHARED and section.sh_type not in (SHT_SYMTAB, SHT_STRTAB)
                and 0 < section.sh_info < elf.count
                and is_function_code(name_at(elf, &elf.table[section.sh_info]))):
            owner[i] = owner[section.sh_info]
    return True


# The owners of sections, symbols, and bytes of string tables: functions, or SHARED.
ctypedef struct Owners:
    const Shdr* symbols         # header of the symbol table, or NULL
    uint64_t strings            # index of the section with symbols' names, 0: none
    # By byte of symbols' names, and by byte of sections' names: its owner + 1, or 0 for none.
    OwnerRef* byte_owners[2]
    OwnerRef* owner             # by section: its owner
    OwnerRef* symbol_owner      # by symbol: its owner; NULL without a symbol table


cdef inline void assign_string(const ElfFile* elf, uint64_t strings, OwnerRef* byte_owners,
                               uint64_t offset, OwnerRef owner) noexcept nogil:
    """Assign the bytes of a string to `owner`, up to the first one that has an owner already.

    The string is at `offset` of the section with index `strings`.
    """
    cdef const Shdr* section = &elf.table[strings]
    while offset < section.sh_size and byte_owners[offset] == 0:
        byte_owners[offset] = owner + 1
        if elf.data[section.sh_offset + offset] == 0:
            break
        offset += 1


cdef inline int64_t find_symbol_owner(Cutting* cutting, const ElfFile* elf,
                                      const Owners* names, const Sym* symbol) noexcept nogil:
    """Return the function that a symbol belongs to, or SHARED; -1 if memory is exhausted."""
    cdef const Shdr* texts = &elf.table[names.strings]
    cdef const char* name
    cdef int64_t function
    if symbol.st_name < texts.sh_size and symbol.st_name != 0:
        name = <const char*>elf.data + texts.sh_offset + symbol.st_name
        if symbol.st_info & 15 == STT_FUNC:
            function = find_function(cutting, <const uint8_t*>name, <uint32_t>strlen(name))
            if function != SHARED:
                return function
    if 0 < symbol.st_shndx < SHN_LORESERVE and symbol.st_shndx < elf.count:
        return <int64_t>names.owner[symbol.st_shndx]
    return SHARED


cdef inline bint assign_names(Cutting* cutting, const ElfFile* elf, Owners* names) noexcept nogil:
    """Set the owners of symbols, and of all bytes of their names and of sections' names.

    False if memory is exhausted.
    """
    cdef uint64_t i, count
    cdef Sym symbol
    cdef int64_t function
    cdef uint64_t measured_bytes = 0
    if names.symbols != NULL:
        count = names.symbols.sh_size // sizeof(Sym)
        for i in range(count):
            memcpy(&symbol, elf.data + names.symbols.sh_offset + i * sizeof(Sym), sizeof(Sym))
            function = SHARED
            if names.strings and measured_bytes <= NAME_LIMIT * elf.size:
                if symbol.st_name < elf.table[names.strings].sh_size:
                    measured_bytes += strlen(
                        <const char*>elf.data + elf.table[names.strings].sh_offset
                        + symbol.st_name)
                function = find_symbol_owner(cutting, elf, names, &symbol)
                if function < 0:
                    return False
            names.symbol_owner[i] = <OwnerRef>function
            if names.strings:
                assign_string(elf, names.strings, names.byte_owners[0], symbol.st_name,
                              <OwnerRef>function)
    for i in range(elf.count):
        assign_string(elf, elf.strings, names.byte_owners[1], elf.table[i].sh_name, names.owner[i])
    return True


cdef inline void count_assigned(Cutting* cutting, const OwnerRef* byte_owners, uint64_t start,
                                uint64_t end) noexcept nogil:
    """Count bytes `start` to `end` of a string table by owner; bytes without owner are SHARED."""
    cdef uint64_t offset = start, begin
    while offset < end:
        begin = offset
        while offset < end and byte_owners[offset] == byte_owners[begin]:
            offset += 1
        count_bytes(cutting, byte_owners[begin] - 1 if byte_owners[begin] else SHARED, PART_NAMES,
                    offset - begin)


cdef inline void count_stretch(Cutting* cutting, const ElfFile* elf, const Owners* names,
                               const Stretch* stretch) noexcept nogil:
    """Count the bytes of a stretch, i.e. of a range of the file in one section, by owner."""
    cdef uint32_t number = stretch.section
    cdef const Shdr* section = &elf.table[number]
    cdef uint64_t i, symbol_count
    cdef uint64_t first = stretch.start - section.sh_offset, last = stretch.end - section.sh_offset
    if names.strings and number == names.strings:
        count_assigned(cutting, names.byte_owners[0], first, last)
    elif number == elf.strings:
        count_assigned(cutting, names.byte_owners[1], first, last)
    elif section == names.symbols and first == 0:
        symbol_count = min(section.sh_size, last) // sizeof(Sym)
        for i in range(symbol_count):
            count_bytes(cutting, names.symbol_owner[i], PART_NAMES, sizeof(Sym))
        count_bytes(cutting, SHARED, PART_NAMES, last - symbol_count * sizeof(Sym))
    else:
        count_bytes(cutting, names.owner[number], part_of_section(section, name_at(elf, section)),
                    stretch.end - stretch.start)


cdef inline void find_unit(Cutting* cutting, const uint8_t* texts, uint64_t size) noexcept nogil:
    """Set `unit` to a part of a symbol's name that identifies the source file, if there is one.

    Compilers put such a part, after one of `marks`, into the names of symbols that are local to
    the file. `unit` has up to UNIT_SIZE bytes from the mark on, perhaps with the next names.
    """
    cdef const char** marks = [b"_INTERNAL_", b"_GLOBAL__N__", b"__nv_static_"]
    cdef const uint8_t* mark
    cdef int i
    for i in range(3):
        mark = <const uint8_t*>memmem(texts, size, marks[i], strlen(marks[i]))
        if mark != NULL:
            cutting.unit.data = mark
            cutting.unit.size = <uint32_t>min(<uint64_t>UNIT_SIZE, <uint64_t>(texts + size - mark))
            return


cdef inline bint cut_cubin(Cutting* cutting, const uint8_t* data, uint64_t size) noexcept nogil:
    """Count the bytes of a cubin; False if memory is exhausted.

    Data that is not a valid cubin is not counted: then `is_damaged` is set, and the result is True.
    """
    cdef ElfFile elf
    cdef Scratch scratch
    cdef int fault
    cdef bint good
    if open_elf(&elf, data, size) != ELF_GOOD or elf.header.e_machine != EM_CUDA:
        cutting.is_damaged = True
        return True
    cutting.type = elf.header.e_type
    fault = open_table(&elf)
    if fault == ELF_NO_TABLE:
        count_bytes(cutting, SHARED, PART_HEADERS, min(size, <uint64_t>sizeof(Ehdr)))
        count_bytes(cutting, SHARED, PART_OTHER, size - min(size, <uint64_t>sizeof(Ehdr)))
        return True
    if fault != ELF_GOOD or open_names(&elf) != ELF_GOOD:
        cutting.is_damaged = True
        return True
    scratch_init(&scratch)
    good = count_sections(cutting, &elf, &scratch)
    scratch_free(&scratch)
    return good or cutting.is_damaged


cdef inline bint count_sections(Cutting* cutting, const ElfFile* elf,
                                Scratch* scratch) noexcept nogil:
    """Count a cubin with sections; False if memory is exhausted, or if it sets `is_damaged`."""
    cdef Stretch* stretches = <Stretch*>scratch_room(scratch, elf.count + 3, sizeof(Stretch))
    cdef Stretch* stretch
    cdef Owners names
    cdef uint64_t i, offset = 0
    names.owner = <OwnerRef*>scratch_zeros(scratch, elf.count, sizeof(uint32_t))
    if scratch.failed or not find_owners(cutting, elf, names.owner):
        return False
    find_names(elf, &names, scratch)
    if scratch.failed or not assign_names(cutting, elf, &names):
        return False
    if names.strings:
        find_unit(cutting, elf.data + elf.table[names.strings].sh_offset,
                  elf.table[names.strings].sh_size)
    for i in range(list_own_stretches(stretches, elf)):
        stretch = &stretches[i]
        count_bytes(cutting, SHARED, PART_PADDING, stretch.start - offset)
        offset = stretch.end
        if stretch.section == <uint32_t>NO_SECTION:
            count_bytes(cutting, SHARED, PART_HEADERS, offset - stretch.start)
        else:
            count_stretch(cutting, elf, &names, stretch)
    count_bytes(cutting, SHARED, PART_PADDING, elf.size - offset)
    return cutting.type != ET_EXEC or digest_cubin(cutting, elf, &names, scratch)


cdef inline void find_names(const ElfFile* elf, Owners* names,
                            Scratch* scratch) noexcept nogil:
    """Find the symbol table, and its names unless damaged; allocate what `assign_names` fills."""
    cdef const Shdr* texts
    cdef uint64_t i
    names.symbols, names.symbol_owner, names.strings = NULL, NULL, 0
    for i in range(elf.count):
        if elf.table[i].sh_type == SHT_SYMTAB and names.symbols == NULL:
            names.symbols = &elf.table[i]
            names.strings = names.symbols.sh_link if names.symbols.sh_link < elf.count else 0
    texts = &elf.table[names.strings]
    if (names.strings
            and (not is_in_file(elf, texts) or texts.sh_type != SHT_STRTAB or texts.sh_size == 0
                 or elf.data[texts.sh_offset + texts.sh_size - 1] != 0)):
        names.strings = 0
    names.byte_owners[1] = <OwnerRef*>scratch_zeros(scratch, elf.names_size + 1, 4)
    names.byte_owners[0] = names.byte_owners[1]     # the same table may have both
    if names.strings and names.strings != elf.strings:
        names.byte_owners[0] = <OwnerRef*>scratch_zeros(scratch, texts.sh_size + 1, 4)
    if names.symbols != NULL:
        names.symbol_owner = <OwnerRef*>scratch_zeros(
            scratch, names.symbols.sh_size // sizeof(Sym) + 1, sizeof(uint32_t))


# The digest of a function's code, constants, relocations and attributes.
ctypedef struct FunctionDigest:
    Fingerprint contents
    uint64_t code               # bytes of its code


cdef inline bint add_digest(Cutting* cutting, OwnerRef owner, uint32_t part, uint64_t size,
                            const Fingerprint* contents) noexcept nogil:
    """Add the digest of a function, or of data; False if memory is exhausted."""
    cdef Digest* row = <Digest*>vec_push(&cutting.digests)
    if row == NULL:
        return False
    row.owner, row.part, row.size, row.contents = owner, part, size, contents[0]
    return True


cdef inline bint digest_cubin(Cutting* cutting, const ElfFile* elf, const Owners* names,
                              Scratch* scratch) noexcept nogil:
    """Add digests of functions and data, and set the fingerprints of the whole cubin (Cutting).

    False if memory is exhausted.
    """
    cdef FunctionDigest* functions = <FunctionDigest*>scratch_zeros(
        scratch, cutting.functions.count + 1, sizeof(FunctionDigest))
    cdef uint64_t i
    if functions == NULL:
        return False
    # The SM number in e_flags is ignored; its bits depend on the ABI version.
    absorb_words(&cutting.exact, elf.data[EI_ABIVERSION], elf.header.e_flags & <uint32_t>(
        0xff00ff00 if elf.data[EI_ABIVERSION] < 8 else 0xff0000ff))
    cutting.like = cutting.exact
    for i in range(1, elf.count):
        if not digest_section(cutting, elf, names, i, functions):
            return False
    for i in range(1, cutting.functions.count + 1):
        if not add_digest(cutting, <OwnerRef>i, PART_CODE, functions[i].code,
                          &functions[i].contents):
            return False
    return True


cdef inline bint digest_section(Cutting* cutting, const ElfFile* elf, const Owners* names,
                                uint64_t number, FunctionDigest* functions) noexcept nogil:
    """Add a section to the digests of its function and of the cubin; False if memory is exhausted.

    `functions` has the digests of functions by owner. Long data gets a digest of its own.
    """
    cdef const Shdr* section = &elf.table[number]
    cdef const char* name = name_at(elf, section)
    cdef uint32_t part = part_of_section(section, name)
    cdef uint64_t size = section.sh_size if has_bytes(section.sh_type) else 0
    cdef const uint8_t* data = elf.data + section.sh_offset
    # Notes have the options of the tools, among them the chip, so their contents are ignored.
    cdef bint is_note = section.sh_type == SHT_NOTE
    cdef FunctionDigest* function = &functions[names.owner[number]]
    cdef Fingerprint contents, like
    contents.a = contents.b = 0
    absorb(&contents, data, 0 if is_note else size)
    like = contents
    if has_records(name):
        like.a = like.b = 0
        absorb_records(&like, data, size)
    absorb_header(&cutting.exact, section, name, not is_note)
    absorb_header(&cutting.like, section, name, not is_note and not has_records(name))
    absorb_words(&cutting.exact, contents.a, contents.b)
    absorb_words(&cutting.like, like.a, like.b)
    if is_note:
        return True
    if names.owner[number] != SHARED and part in (PART_CODE, PART_CONSTANTS, PART_ATTRIBUTES):
        absorb_text(&function.contents, name)
        absorb_words(&function.contents, like.a, like.b)
        if part == PART_CODE:
            function.code += size
    elif names.owner[number] != SHARED and part == PART_RELOCATIONS and names.symbols != NULL:
        absorb_text(&function.contents, name)
        absorb_relocations(&function.contents, elf, section, names.symbols, names.strings)
    elif part == PART_DATA and size >= LEAST_DATA:
        return add_digest(cutting, SHARED, PART_DATA, size, &contents)
    return True
