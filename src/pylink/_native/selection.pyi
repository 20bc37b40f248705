"""Selects the files that a link takes: members of archives, and the device runtime library."""

def select(
    arena: bytes, extents: bytes, demand: bytes, groups: bytes, *, relocatable: bool
) -> bytes:
    """Return a byte for each file: 1 if the link takes it, else 0.

    `extents` has a row (offset u64, size u64) for each file, `demand` a byte: the condition under
    which the link takes it (`Demand` of `pylink.facts.picknumbers`). `groups` has an int32, equal
    for the adjacent members of one archive: its members with `Demand.TOGETHER` are taken together,
    and if no file is taken, all files with TOGETHER are. Damaged files define nothing; those
    without TOGETHER are taken, so that the reader of cubins reports them. With `relocatable`, names
    may stay undefined, so a needed name only takes a file with `Demand.NEEDED`. `ValueError` for
    arguments of different lengths, `IndexError` for an extent outside the arena.
    """

def find_missing(arena: bytes, extents: bytes, *, with_driver: bool = False) -> list[bytes]:
    """Return the names that these files use and do not define, sorted.

    `extents` are like those of `select`. Functions of the driver are omitted, but not with
    `with_driver`. Names of local and of undefined weak symbols are omitted, too. Dead code counts,
    so an executable may lack fewer names. `IndexError` for an extent outside the arena.
    """
