"""Which of the files at hand a link takes: members of archives, and the device runtime library."""

def select(arena: bytes, extents: bytes, demand: bytes, groups: bytes, relocatable: bool) -> bytes:
    """A byte per file, 1 for those that the link takes.

    ``extents`` has a row (offset u64, size u64) per file, ``demand`` a byte (ALWAYS and so on of
    ``pylink.inputs.pieces``) and ``groups`` an int32: files of one group that are to be taken
    together have the same, and stand side by side. Files that are damaged define nothing; all but
    members of a group are taken, for the reader of cubins to report. ``relocatable`` says that
    names may stay undefined, so that only what is NEEDED is looked for. ``ValueError`` for
    arguments of different lengths, ``IndexError`` for an extent outside the arena.
    """

def find_missing(arena: bytes, extents: bytes) -> list[bytes]:
    """The names that these files need and none of them defines, sorted.

    ``extents`` are as in ``select``. Functions of the driver are none of them. Dead code counts, so
    what an executable lacks may be less. ``IndexError`` for an extent outside the arena.
    """
