# The order in which the symbols of a file are met.

from libc.stdint cimport uint32_t

from elf64 cimport *
from rows cimport *
from traits cimport *


cdef inline int symbol_turns(uint32_t traits) noexcept nogil:
    """How often a file's symbols are walked over.

    nvlink 13.5 sorts the table of a file for sm_100 and later when it reads it, local symbols
    first. Objects of 13.4 and later are sorted already.
    """
    return 2 if traits & TRAIT_LEAN_NAMES and traits & TRAIT_MERCURY else 1


cdef inline bint waits(const SymbolRow* symbol, int turn, int turns) noexcept nogil:
    """The symbol is met in another turn than this."""
    return turns == 2 and (symbol.info >> 4 == STB_LOCAL) != (turn == 0)
