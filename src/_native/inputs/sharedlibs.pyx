"""Shared libraries of the host: what their dynamic symbols say about the device code in them.

Symbols are read one by one if the library has relocatable code, or the image that a device link
made of such code. Otherwise the section headers are read and, if the library has device code, the
names of its symbols are searched once. docs/shared-libraries.md says what the symbols mean.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, strcmp, strlen

from base.elf64 cimport Rela, Shdr, Sym, load64
from base.elffile cimport ELF_GOOD, ElfFile, is_in_file, is_string_table, name_at, open_sections
from base.memory cimport check_memory
from base.posix cimport memmem
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.texts cimport has_start
from base.vector cimport Vec, vec_push, vec_to_bytes
from elfnumbers cimport (
    DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, ET_DYN, SHT_DYNAMIC, SHT_DYNSYM, SHT_NOBITS, SHT_RELA,
    STB_GLOBAL, STT_FUNC,
)
from picknumbers cimport (
    DYNAMIC_ANCHOR, DYNAMIC_CLOSED, DYNAMIC_MODULE, DYNAMIC_OPEN, DYNAMIC_WRAPPER, LIBRARY_BAD_NAME,
    LIBRARY_BAD_SYMBOLS, LIBRARY_HAS_CODE, LIBRARY_NO_CODE,
)

cdef enum:
    DYNAMIC_SIZE = 16       # bytes of Elf64_Dyn
    # Bytes of REGISTER and of "__fatbinwrap_". Both end in "_", which is also the first character
    # of the module's ID.
    REGISTER_SIZE = 27
    WRAPPER_SIZE = 13
    VISIBILITY = 3          # mask of the visibility in st_other

# Start of the name of a module's registration function, up to the first character of the ID.
cdef const char* REGISTER = b"__cudaRegisterLinkedBinary_"

# The parts of relocatable code that a library has.
cdef enum Part:
    P_NOTHING
    P_MODULES                   # fat binaries of modules
    P_LINK                      # no modules, but an image that a device link made of some

# A dynamic symbol about device code, the anchor (the first function that the library exports), or a
# module in the file, by `kind`. The ID of a module is the end of the names of its symbols, e.g. of
# its registration function.
cdef packed struct DynamicRow:
    uint32_t kind               # a DYNAMIC_ number
    # 1 only if a dynamic relocation names the symbol: another file may then replace a function of
    # DYNAMIC_CLOSED.
    uint32_t interposable
    uint64_t name               # offset in the file of the ID or, of DYNAMIC_ANCHOR, of the name
    uint64_t size               # bytes from there to the end of the name
    uint64_t index              # number of the dynamic symbol; UINT64_MAX for a MODULE

# A shared library, and what its symbols say.
ctypedef struct Library:
    ElfFile elf
    const char* names           # string table of the dynamic symbols
    uint64_t names_size         # bytes of it
    Vec rows                    # DynamicRow
    bint calls_runtime          # needs a function of the CUDA runtime from another file
    bint opens_libraries        # needs dlsym, by which a runtime finds the driver


# The file begins at `offset` of `data`. `state` is a LIBRARY_ number, `rows` are DynamicRows, and
# `has_runtime` says that the library contains a CUDA runtime.
def find_symbols(data, uint64_t offset, uint64_t size):
    """Find the symbols about device code in a file's `size` bytes: (state, rows, has_runtime)."""
    cdef Py_buffer view
    cdef Library library
    cdef int state = LIBRARY_NO_CODE
    cdef Part part
    cdef Scratch scratch
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    library.calls_runtime = False
    library.opens_libraries = False
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &library.rows, sizeof(DynamicRow))
        if offset > <uint64_t>view.len or size > <uint64_t>view.len - offset:
            raise IndexError("the file runs past the data")
        with nogil:
            part = find_relocatable_code(&library, <const uint8_t*>view.buf + offset, size)
            if part != P_NOTHING:
                state = find_rows(&library)
            if state == LIBRARY_HAS_CODE:
                state = find_modules(&library)
            if state == LIBRARY_HAS_CODE and part == P_LINK:
                state = find_state_without_modules(&library)
        check_memory(not scratch.failed and state >= 0)
        return state, vec_to_bytes(&library.rows), bool(library.opens_libraries
                                                        and not library.calls_runtime)
    finally:
        scratch_free(&scratch)
        PyBuffer_Release(&view)


cdef Part find_relocatable_code(Library* library, const uint8_t* data,
                                uint64_t size) noexcept nogil:
    """Return the kind of relocatable code in a shared library; sets `elf` if it has any."""
    cdef ElfFile* elf = &library.elf
    cdef const char* name
    cdef const Shdr* symbols = NULL
    cdef const Shdr* strings
    cdef bint has_image = False
    cdef uint64_t i
    if open_sections(elf, data, size) != ELF_GOOD or elf.header.e_type != ET_DYN:
        return P_NOTHING
    for i in range(1, elf.count):
        name = name_at(elf, &elf.table[i])
        if elf.table[i].sh_type == SHT_DYNSYM and symbols == NULL:
            symbols = &elf.table[i]
        elif name == NULL or elf.table[i].sh_type == SHT_NOBITS:
            continue
        elif strcmp(name, b"__nv_relfatbin") == 0:
            return P_MODULES
        elif strcmp(name, b".nv_fatbin") == 0:
            has_image = True
    if not has_image or symbols == NULL or symbols.sh_link >= elf.count:
        return P_NOTHING
    # Any library with device code has an image in .nv_fatbin. It is from a device link if a dynamic
    # symbol has REGISTER in its name: one search in the string table is faster than reading each
    # symbol.
    strings = &elf.table[symbols.sh_link]
    if not is_in_file(elf, strings) or memmem(data + strings.sh_offset, strings.sh_size, REGISTER,
                                              REGISTER_SIZE) == NULL:
        return P_NOTHING
    return P_LINK


cdef int find_modules(Library* library) noexcept nogil:
    """Add a row for each module in the file. Returns LIBRARY_HAS_CODE, or -1 without memory."""
    cdef const Shdr* section
    cdef const char* name
    cdef const uint8_t* text
    cdef const uint8_t* end
    cdef const uint8_t* stop
    cdef uint64_t i
    for i in range(1, library.elf.count):
        section = &library.elf.table[i]
        name = name_at(&library.elf, section)
        if (name == NULL or strcmp(name, b"__nv_module_id") != 0 or section.sh_type == SHT_NOBITS
                or not is_in_file(&library.elf, section)):
            continue
        text = library.elf.data + section.sh_offset
        end = text + section.sh_size
        while text < end:
            stop = <const uint8_t*>memchr(text, 0, end - text)
            if stop == NULL:
                break
            # Texts of two other forms name no module: `def ID`, and __NV_MODULE_ID, which code
            # without -rdc has.
            if (text[0] == c"_" and strcmp(<const char*>text, b"__NV_MODULE_ID") != 0
                    and not add_row(library, DYNAMIC_MODULE, <const char*>text, UINT64_MAX)):
                return -1
            text = stop + 1
    return LIBRARY_HAS_CODE


cdef int find_state_without_modules(Library* library) noexcept nogil:
    """Return HAS_CODE if the library defines a __cudaRegisterLinkedBinary function, else NO_CODE.

    This is for a library without modules, whose code could be the image of a device link.
    """
    cdef const DynamicRow* row = <const DynamicRow*>library.rows.data
    cdef size_t i
    for i in range(library.rows.count):
        if row[i].kind == DYNAMIC_CLOSED:
            return LIBRARY_HAS_CODE
    return LIBRARY_NO_CODE


cdef int find_rows(Library* library) noexcept nogil:
    """Add a row for each dynamic symbol about device code, and for the anchor.

    Returns a LibraryState, or -1 without memory.
    """
    cdef const Shdr* section
    cdef const Shdr* strings
    cdef uint64_t i
    cdef int state
    for i in range(1, library.elf.count):
        section = &library.elf.table[i]
        if section.sh_type != SHT_DYNSYM:
            continue
        if (not is_in_file(&library.elf, section) or section.sh_link >= library.elf.count
                or section.sh_size % sizeof(Sym)):
            return LIBRARY_BAD_SYMBOLS
        strings = &library.elf.table[section.sh_link]
        if not is_string_table(&library.elf, strings):
            return LIBRARY_BAD_SYMBOLS
        library.names = <const char*>library.elf.data + strings.sh_offset
        library.names_size = strings.sh_size
        state = read_dynamic_symbols(library, <const Sym*>(library.elf.data + section.sh_offset),
                                     section.sh_size // sizeof(Sym))
        if state == LIBRARY_HAS_CODE and not is_symbolic(library):
            mark_interposable(library, <uint32_t>i)
        return state            # a file has one such table
    return LIBRARY_HAS_CODE


cdef int read_dynamic_symbols(Library* library, const Sym* symbol, uint64_t count) noexcept nogil:
    """Add rows for those of `count` symbols that are about device code, and for the anchor.

    Also sets `calls_runtime` and `opens_libraries` by what the library needs from other files.
    Returns a LibraryState, or -1 without memory.
    """
    cdef uint64_t i
    cdef const char* name
    cdef bint defined, has_anchor = False
    cdef bint ok = True
    for i in range(1, count):
        if symbol[i].st_name >= library.names_size:
            return LIBRARY_BAD_NAME
        name = library.names + symbol[i].st_name
        defined = symbol[i].st_shndx != 0
        if name[0] == c"_" and has_start(name, REGISTER):
            ok = add_row(library, DYNAMIC_CLOSED if defined else DYNAMIC_OPEN,
                         name + REGISTER_SIZE - 1, i)
        elif name[0] == c"_" and has_start(name, b"__fatbinwrap_"):
            if defined:
                ok = add_row(library, DYNAMIC_WRAPPER, name + WRAPPER_SIZE - 1, i)
        elif not defined and is_of_runtime(name):
            library.calls_runtime = True
        elif not defined and strcmp(name, b"dlsym") == 0:
            library.opens_libraries = True
        elif (not has_anchor and defined and symbol[i].st_info == (STB_GLOBAL << 4 | STT_FUNC)
                and (symbol[i].st_other & VISIBILITY) == 0 and strcmp(name, b"_init") != 0
                and strcmp(name, b"_fini") != 0):
            has_anchor = True
            ok = add_row(library, DYNAMIC_ANCHOR, name, i)
        if not ok:
            return -1
    return LIBRARY_HAS_CODE


cdef inline bint is_of_runtime(const char* name) noexcept nogil:
    """Return whether only a CUDA runtime has a function of that name: `__cudaFoo` or `cudaFoo`."""
    if name[0] == c"_" and name[1] == c"_":
        name += 2
    return has_start(name, b"cuda") and c"A" <= name[4] <= c"Z"


cdef bint add_row(Library* library, uint32_t kind, const char* name, uint64_t index) noexcept nogil:
    """Add the row of a symbol, or of a module with UINT64_MAX as index; False without memory."""
    cdef DynamicRow* row = <DynamicRow*>vec_push(&library.rows)
    if row == NULL:
        return False
    row.kind = kind
    row.interposable = False
    row.name = <const uint8_t*>name - library.elf.data
    row.size = strlen(name)
    row.index = index
    return True


cdef bint is_symbolic(const Library* library) noexcept nogil:
    """Return whether the library was linked with -Bsymbolic: it uses its own definitions first."""
    cdef uint64_t i, j, tag
    cdef const uint8_t* entry
    for i in range(1, library.elf.count):
        if (library.elf.table[i].sh_type != SHT_DYNAMIC
                or not is_in_file(&library.elf, &library.elf.table[i])):
            continue
        entry = library.elf.data + library.elf.table[i].sh_offset
        for j in range(library.elf.table[i].sh_size // DYNAMIC_SIZE):
            tag = load64(entry + DYNAMIC_SIZE * j)
            if tag == DT_SYMBOLIC or (tag == DT_FLAGS
                                      and load64(entry + DYNAMIC_SIZE * j + 8) & DF_SYMBOLIC):
                return True
        return False            # a file has one such table
    return False


cdef void mark_interposable(Library* library, uint32_t symbol_table) noexcept nogil:
    """Set `interposable` of the rows whose symbols a dynamic relocation names.

    Does nothing if no row is DYNAMIC_CLOSED, since it matters for that kind only. `symbol_table` is
    the section index of the dynamic symbols. Each relocation takes time O(log rows).
    """
    cdef uint64_t i, j, total = 0
    cdef const Rela* relocation
    cdef DynamicRow* row = <DynamicRow*>library.rows.data
    cdef size_t low, high, middle
    cdef bint any_closed = False
    for i in range(library.rows.count):
        any_closed |= row[i].kind == DYNAMIC_CLOSED
    if not any_closed:
        return
    for i in range(1, library.elf.count):
        if (library.elf.table[i].sh_type != SHT_RELA or library.elf.table[i].sh_link != symbol_table
                or not is_in_file(&library.elf, &library.elf.table[i])):
            continue
        # Sections of valid files share no bytes; without a limit the work could be quadratic.
        total += library.elf.table[i].sh_size
        if total > library.elf.size:
            return
        relocation = <const Rela*>(library.elf.data + library.elf.table[i].sh_offset)
        for j in range(library.elf.table[i].sh_size // sizeof(Rela)):
            low, high = 0, library.rows.count
            while low < high:   # rows are in order of their indices
                middle = (low + high) // 2
                if row[middle].index < relocation[j].r_sym:
                    low = middle + 1
                else:
                    high = middle
            if low < library.rows.count and row[low].index == relocation[j].r_sym:
                row[low].interposable = True
