"""Effects of accepted folds of Mercury sections on the tables of a link (docs/dedup.md).

A fold pairs a candidate file with an earlier file, its reference, whose Mercury debug sections then
replace the candidate's.
"""

from pylink._native.results import MergedTables, ObjectTables
from pylink._native.tables import Numbers

def find_winning_symbol(merged: MergedTables, reference: int, candidate: int) -> int:
    """Return the SymbolRow of a function of `candidate` whose copy in `reference` lost, or -1.

    Both arguments are numbers of files. Symbols with the same index in the two symbol tables are
    compared: the first function counts whose copy in the reference lost and whose copy in the
    candidate did not. A copy that lost also loses the relocations of its debug data, so the
    reference's sections could not replace the candidate's. `IndexError` for an invalid file number.
    """

def pair_sections(objects: ObjectTables, pairs: bytes) -> Numbers:
    """Return, by input section, the SectionRow that replaces it, or -1.

    `pairs` are i32 numbers of a candidate file and its reference, alternately. Sections that share
    the bytes of a plain section are kept. `IndexError` for an invalid file number. `ValueError` if
    the Mercury debug sections of the two files, paired in order, differ in size or name, or if the
    reference has fewer.
    """
