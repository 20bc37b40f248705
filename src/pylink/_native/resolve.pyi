"""Symbol resolution and dead-code removal.

Every distinct symbol of the link becomes one entity, numbered in order of birth: file by file,
functions before the rest. For each entity one definition wins; from the kernels the call graph
decides which functions live. Tables are those of ``elfread.parse`` and packed rows of
``rows.pxd``; ``MemoryError`` is the only error that inputs can raise.
"""

def resolve(
    arena: bytes, files: bytes, sections: bytes, symbols: bytes
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
    """Find the entities of the link and the definition that wins for each.

    Returns (entities, symbol_entity, symbol_role, calls, prototypes, clashes): EntityRow table;
    i32 entity and u8 Role per input symbol (-1 for section symbols and the null symbol); CallRow
    table in input order; u64 arena offsets of the distinct prototype strings; ClashRow table of
    the first file that clashes, empty when the link can go on.

    A strong definition replaces weak ones and common symbols. Of weak functions the one that needs
    fewest registers wins, of equals the first; of other weak definitions the first. Common
    symbols take the largest size.
    """

def find_live(
    entities: bytes, calls: bytes, prototypes: bytes, selected: bytes, keep_all: bool
) -> bytes:
    """Mark the entities that reach the output: a new EntityRow table.

    Roots are the kernels; with ``selected`` (a byte per entity, or empty for all) only those it
    marks. An indirect call reaches every function of its prototype whose address is taken, in any
    file. Such a function stays in any case, but keeps nothing else alive by itself. With
    ``keep_all`` nothing is removed. Data always stays. ``ValueError`` when ``selected`` has
    another length than the entities.
    """

def select_kernels(arena: bytes, symbols: bytes, entities: bytes, patterns: list[bytes]) -> bytes:
    """A byte per entity: 1 for kernels whose name contains one of the patterns."""

def select_referenced(
    arena: bytes, symbols: bytes, entities: bytes, external: list[bytes], internal: list[bytes]
) -> bytes:
    """A byte per entity: 1 for kernels that host code names.

    ``external`` are names of kernels visible to other files and ``internal`` those of the others.
    A star in a name stands for any characters, also none; the name matches as a whole.
    """

def find_undefined(arena: bytes, symbols: bytes, entities: bytes) -> list[int]:
    """Entities that an executable needs but no input defines, in order of birth."""
