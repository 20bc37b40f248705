"""CUDA releases whose objects are linked and whose nvlink the output is that of, oldest first.

What each changed, with its experiment: docs/releases.md. `header.py` makes the traits constants of
the kernels, which get them of the release followed as one number.
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, HVAL

# What tells nvlink of one release from that before: bits of `Release.traits`.
TRAIT_ALIGNS_ARRAYS = 1 << 0  # an extern __shared__ array stands where its symbol's value asks for
TRAIT_KEEPS_SHARED = 1 << 1  # with -r references to sized shared variables stay for the next link
TRAIT_COMMON_YIELDS = 1 << 2  # a common symbol may stand behind a definition of its name
TRAIT_WEAK_GLOBAL = 1 << 3  # weak symbols stand among the global ones
TRAIT_MERC_CALLS = 1 << 4  # from sm_100 on the call graph has a mercury form
TRAIT_SHARED_LOCAL = 1 << 5  # symbols of shared variables that executables give a kernel are local
TRAIT_LEAN_NAMES = 1 << 6  # from sm_90 on string tables hold what sections and symbols use
TRAIT_NAMELESS_SHARED = 1 << 7  # shared sections without variables have their bytes in the kernel
TRAIT_EARLY_FILES = 1 << 8  # headers, notes, numbers of barriers are where objects of 12 have them
TRAIT_NULL_FUNCTIONS = 1 << 9  # a function that its first file lacks makes the null symbol one
TRAIT_SURE_FEATURES = 1 << 10  # links without code, too, say what of it takes the fast path
TRAIT_ENDS_LINES = 1 << 11  # from sm_100 on line programs without sequences have an end of one
TRAIT_PARTS_ACCELERATED = 1 << 12  # targets without the suffix `a` take no code for one with it


class Release:
    """One row.

    `version` is what nvlink of the release calls itself, empty for one that links cannot follow.
    `toolkit` is the number in notes of objects and output, `tool_strings` the bytes of strings that
    nvlink's own note has before the options; `traits` are TRAIT_ bits. `closing` are the records of
    attributes that from sm_100 on end those of each function, whatever inputs say. `late_compat` is
    how many bytes of .nv.compat the finalizer of sm_100 and later adds. Relocation
    types are numbered from 0 and, those of mercury code, from 0x10000 up to, but without,
    `relocations` and `mercury_relocations`.
    """

    __slots__ = (
        "closing",
        "late_compat",
        "mercury_relocations",
        "name",
        "relocations",
        "tool_strings",
        "toolkit",
        "traits",
        "version",
    )

    def __init__(
        self,
        name: str,
        version: str = "",
        *,
        toolkit: int,
        tool_strings: int = 97,
        traits: int = 0,
        closing: bytes = b"",
        late_compat: int = 0,
        relocations: int = 120,
        mercury_relocations: int = 0x10041,
    ) -> None:
        self.name = name
        self.version = version
        self.toolkit = toolkit
        self.tool_strings = tool_strings
        self.traits = traits
        self.closing = closing
        self.late_compat = late_compat
        self.relocations = relocations
        self.mercury_relocations = mercury_relocations

    def __repr__(self) -> str:
        return f"<Release {self.name}>"

    @property
    def linker(self) -> str:
        """The linker that is followed, as notes and sessions name it."""
        return f"nvlink {self.version}"

    @property
    def title(self) -> str:
        """The same in the words of nvlink --version, for people."""
        return f"nvlink of Cuda compilation tools, release {self.name}, V{self.version}"


_TO_12_9 = TRAIT_EARLY_FILES | TRAIT_NULL_FUNCTIONS
_FROM_13_1 = TRAIT_ALIGNS_ARRAYS | TRAIT_PARTS_ACCELERATED
_FROM_13_2 = _FROM_13_1 | TRAIT_KEEPS_SHARED
_FROM_13_3 = _FROM_13_2 | TRAIT_COMMON_YIELDS | TRAIT_SURE_FEATURES
_FROM_13_4 = (
    _FROM_13_3 | TRAIT_WEAK_GLOBAL | TRAIT_MERC_CALLS | TRAIT_SHARED_LOCAL | TRAIT_NAMELESS_SHARED
)
_FROM_13_5 = _FROM_13_4 | TRAIT_LEAN_NAMES | TRAIT_ENDS_LINES

# Attributes 0x6b and 0x6d of .nv.info.F; no tool names them.
_CLOSING_13_2 = bytes((HVAL, 0x6B, 1, 0))
_CLOSING_13_4 = _CLOSING_13_2 + bytes((BVAL, 0x6D, 0, 0))

RELEASES = (
    Release("12.9", "12.9.86", toolkit=129, traits=_TO_12_9),
    Release("13.0", "13.0.88", toolkit=130, late_compat=12),
    Release("13.1", "13.1.115", toolkit=131, tool_strings=98, traits=_FROM_13_1, late_compat=12),
    Release("13.2", "13.2.86", toolkit=132, traits=_FROM_13_2, closing=_CLOSING_13_2),
    Release("13.3", "13.3.73", toolkit=133, traits=_FROM_13_3, closing=_CLOSING_13_2),
    Release(
        "13.4", "13.4.92", toolkit=134, traits=_FROM_13_4, closing=_CLOSING_13_4, late_compat=4
    ),
    Release("13.5", "13.5.37", toolkit=135, traits=_FROM_13_5, closing=_CLOSING_13_4),
)
BY_NAME = {release.name: release for release in RELEASES}
# What links can follow.
FOLLOWED = tuple(release.name for release in RELEASES if release.version)
# The oldest release that is followed unless an option asks for another.
FIRST = BY_NAME["13.0"]
NEWEST = RELEASES[-1]


def followed(asked: str | None, toolkit: int) -> Release:
    """The release that an option asked for, else that of the newest toolkit that inputs name.

    At least 13.0 and at most the newest that is known.
    """
    if asked:
        return BY_NAME[asked]
    named = [row for row in RELEASES if row.toolkit <= max(toolkit, FIRST.toolkit)]
    return named[-1]
