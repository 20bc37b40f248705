# One relocatable file while its kernels are rewritten: checked views of sections and symbols.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memset

from elf64 cimport (EM_CUDA, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_RESERVED_SHARED,
                    SHT_CUDA_SHARED, SHT_NOBITS, SHT_NULL, SHT_SYMTAB, Ehdr, Shdr, Sym)
from exitrows cimport *
from vec cimport *


# One file while its kernels are rewritten.
ctypedef struct File:
    const uint8_t* data
    uint64_t size
    View* views             # by section index
    size_t count
    size_t symtab
    const Sym* symbols
    uint64_t symbol_count
    int32_t* codes          # by symbol index: row of the kernel table, or -1
    int32_t* code_of        # by section index: likewise for .text sections
    Vec kernels             # Code
    Vec places              # Place
    bint early              # code from before 13.0, see exitearly.pxd


cdef inline void file_init(File* file, bytes image) noexcept:
    memset(file, 0, sizeof(File))
    file.data = <const uint8_t*>PyBytes_AS_STRING(image)
    file.size = PyBytes_GET_SIZE(image)
    vec_init(&file.kernels, sizeof(Code))
    vec_init(&file.places, sizeof(Place))


cdef inline void file_free(File* file) noexcept:
    cdef size_t i
    if file.views != NULL:
        for i in range(file.count):
            free(file.views[i].fresh)
    free(file.views)
    free(file.codes)
    free(file.code_of)
    vec_free(&file.kernels)
    vec_free(&file.places)


cdef inline bint has_no_bytes(uint32_t kind) noexcept nogil:
    return kind in (SHT_NULL, SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED,
                    SHT_CUDA_RESERVED_SHARED)


cdef inline bint read_sections(File* file, Fault* fault) noexcept nogil:
    """Check the file as far as it is used here, and fill views and symbols."""
    cdef const Ehdr* header = <const Ehdr*>file.data
    cdef const Shdr* section
    cdef View* view
    cdef View* names
    cdef const uint8_t* nul
    cdef size_t i
    fail(fault, 0, 0, R_SECTION)
    if (file.size < sizeof(Ehdr) or memcmp(header.e_ident, b"\x7fELF\x02\x01", 6) != 0
            or header.e_machine != EM_CUDA or header.e_shentsize != sizeof(Shdr)
            or header.e_shoff > file.size
            or header.e_shnum > (file.size - header.e_shoff) // sizeof(Shdr)
            or header.e_shstrndx >= header.e_shnum):
        return False
    file.count = header.e_shnum
    file.views = <View*>calloc(file.count, sizeof(View))
    file.code_of = <int32_t*>malloc(file.count * sizeof(int32_t))
    if file.views == NULL or file.code_of == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    memset(file.code_of, -1, file.count * sizeof(int32_t))
    section = <const Shdr*>(file.data + header.e_shoff)
    for i in range(file.count):
        view = &file.views[i]
        view.kind = section[i].sh_type
        view.link = section[i].sh_link
        view.info = section[i].sh_info
        view.data = file.data
        if not has_no_bytes(view.kind):
            if (section[i].sh_offset > file.size
                    or section[i].sh_size > file.size - section[i].sh_offset):
                return fail(fault, i, 0, R_SECTION)
            view.data += section[i].sh_offset
            view.size = section[i].sh_size
    names = &file.views[header.e_shstrndx]
    for i in range(file.count):
        view = &file.views[i]
        if section[i].sh_name >= names.size:
            return fail(fault, i, 0, R_SECTION)
        view.name = names.data + section[i].sh_name
        nul = <const uint8_t*>memchr(view.name, 0, names.size - section[i].sh_name)
        if nul == NULL:
            return fail(fault, i, 0, R_SECTION)
        view.name_size = <uint32_t>(nul - view.name)
        if view.kind == SHT_SYMTAB:
            file.symtab = i
            file.symbols = <const Sym*>view.data
            file.symbol_count = view.size // sizeof(Sym)
            if view.link >= file.count:
                return fail(fault, i, 0, R_SECTION)
    file.codes = <int32_t*>malloc((file.symbol_count + 1) * sizeof(int32_t))
    if file.codes == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    memset(file.codes, -1, file.symbol_count * sizeof(int32_t))
    return True


cdef inline bint is_named(const View* view, const char* name, uint32_t size) noexcept nogil:
    return view.name_size == size and memcmp(view.name, name, size) == 0
