# One relocatable file while its kernels are rewritten: views of its sections, and its symbols.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.scratch cimport Scratch, scratch_nones, scratch_vector, scratch_zeros
from base.texts cimport is_named
from base.vector cimport Vec
from exits.rows cimport Code, CodeNumber, InstructionMap, View
from sectionkinds cimport KIND
from tables.rows cimport (
    FileSectionCounter, FileSectionNumber, FileSectionRef, FileSymbolRef, SectionNumber,
    SectionRow, SymbolNumber, SymbolRow,
)


# One file while its kernels are rewritten.
ctypedef struct RewrittenFile:
    Scratch scratch                 # memory of the views and tables of this file
    View* views                     # by section of the file
    size_t count                    # number of sections
    SectionRow* sections            # by section of the file; `offset` and `size` change
    SymbolRow* symbols              # by symbol of the file; `size` changes with the code
    uint32_t symbol_count
    SymbolNumber first_symbol       # SymbolRow of the file's symbol 0
    SectionNumber first_section     # SectionRow of the file's section 0
    CodeNumber* codes               # by symbol of the file: row of `kernels`, or -1
    CodeNumber* code_of             # by section of the file, a .text: row of `kernels`, or -1
    Vec kernels                     # Code: functions whose code changed
    Vec places                      # InstructionMap: of all functions whose code changed
    bint early                      # the step converts code from before 13.0 (exits/early.pxd)
    bint drops_trap_waits           # kernels that only trap lose their waits: links as by 13.0 on
    bint update                     # the step converts code to another release (exits/update.pxd)


# Contents that were rewritten, which stand after those of all files in the new arena.
ctypedef struct NewContents:
    uint64_t base           # offset of `data` in that arena
    Vec data                # uint8_t: the contents, one after the other


cdef inline bint open_views(RewrittenFile* file, const uint8_t* arena,
                            const NewContents* fresh) noexcept nogil:
    """Fill the views of a file; False when memory is exhausted.

    It also makes the tables of changed kernels, which are empty. Contents that an earlier step
    rewrote are in `fresh`, all others in the arena.
    """
    cdef const SectionRow* section
    cdef View* view
    cdef size_t i
    scratch_vector(&file.scratch, &file.kernels, sizeof(Code))
    scratch_vector(&file.scratch, &file.places, sizeof(InstructionMap))
    file.views = <View*>scratch_zeros(&file.scratch, file.count, sizeof(View))
    file.code_of = scratch_nones(&file.scratch, file.count)
    file.codes = scratch_nones(&file.scratch, file.symbol_count)
    if file.scratch.failed:
        return False
    for i in range(file.count):
        section = &file.sections[i]
        view = &file.views[i]
        view.scratch = &file.scratch
        view.kind = section.type
        view.link = section.link
        view.info = <FileSectionRef>section.info
        view.name = arena + section.name
        view.name_size = section.name_size
        view.data = arena
        if KIND[section.kind].given:
            view.size = section.size
            view.data = (arena + section.offset if section.offset < fresh.base
                         else fresh.data.data + (section.offset - fresh.base))
    return True


cdef inline FileSectionNumber section_index_of(const RewrittenFile* file,
                                               const SymbolRow* symbol) noexcept nogil:
    """Return the index in the file of the section of a symbol; -1 without a section."""
    return (<FileSectionNumber>(symbol.section - file.first_section) if symbol.section >= 0
            else -1)


cdef inline FileSectionNumber code_index_of(const RewrittenFile* file,
                                            FileSectionCounter capsule) noexcept nogil:
    """Return the index in the file of the code that a capsule describes."""
    return section_index_of(file, &file.symbols[<FileSymbolRef>file.views[capsule].info])


cdef inline bint has_section_name(const View* view, const char* name) noexcept nogil:
    """Return whether a section has that name."""
    return is_named(view.name, view.name_size, name)
