"""Symbol resolution and dead-code removal.

Every distinct symbol of the link becomes one entity, numbered in creation order: file by file,
functions before other symbols. For each entity one definition wins; functions that kernels reach in
the call graph are live. `MemoryError` is the only error that inputs can raise.
"""

from pylink._native.results import MergedTables
from pylink._native.tables import Clashes, Marks

def resolve(merged: MergedTables) -> Clashes:
    """Find the entities of the link and the definition that wins for each.

    Fills `entities`, `symbol_entity`, `symbol_resolution`, `met`, `section_function`,
    `section_resolution`, `calls` and `prototypes`. Returns the clashes of the first file that has
    any, empty if the link can go on.

    A strong definition replaces weak ones and common symbols. The weak function that needs the
    fewest registers wins. Among equals it is the first, or a later one if its PTX is for a newer
    architecture than that of the first. Among other weak definitions the first wins. Common symbols
    take the largest size.
    """

def find_live(merged: MergedTables, selected: Marks, *, keep_all: bool) -> None:
    """Set EF_LIVE of the entities that the output keeps, in `entities`.

    Code is reached from the kernels. With `selected` (by entity, or empty for all) these are the
    kernels that it marks and, unless it marks exactly one, those that device code launches. An
    indirect call reaches every function of its prototype whose address is taken, in any file. Such
    a function always stays, but keeps nothing else alive by itself. A function that only a table
    names is kept with what it calls (docs/nvlink-differences.md). With `keep_all` nothing is
    removed. Data always stays. EF_UNCALLED, EF_UNSELECTED and EF_DESELECTED are set, too.
    `ValueError` if `selected` does not have the length of the entities.
    """

def select_kernels(merged: MergedTables, patterns: list[bytes]) -> Marks:
    """Return, by entity, whether it is a kernel whose name contains one of the patterns.

    A star matches any characters.
    """

def select_referenced(merged: MergedTables, external: list[bytes], internal: list[bytes]) -> Marks:
    """Return, by entity, whether it is a kernel that host code names.

    `external` are patterns for kernels with global names, `internal` for kernels with local names.
    A star matches any characters; the whole name must match.
    """

def select_unborrowed(merged: MergedTables, borrowed: bytes, selected: Marks) -> Marks:
    """Return, by entity, whether it is a `selected` kernel that no other image registers.

    `selected` is by entity, or empty for all. `borrowed` has a byte per file: 1 for a file of a
    module that another image registers. If the first file that mentions a kernel is borrowed, the
    result says only whether device code takes the kernel's address, to launch it, be it selected or
    not. `ValueError` for arguments of wrong lengths.
    """

def find_uncalled(merged: MergedTables) -> list[int]:
    """Return the functions (entities) whose address is taken and that `find_live` did not reach.

    They are in creation order, without kernels.
    """

def find_unselected(merged: MergedTables) -> list[int]:
    """Return the kernels (entities) that are removed since they are not selected.

    They are in creation order.
    """

def find_undefined(merged: MergedTables) -> list[int]:
    """Return the entities that an executable needs but no input defines, in creation order.

    A function whose address is taken is needed, even if only dead code takes it. Functions of the
    driver are omitted.
    """
