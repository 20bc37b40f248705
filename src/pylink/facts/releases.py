"""CUDA releases whose objects are linked and whose nvlink the output is that of, oldest first.

What each changed, with its experiment: docs/format-notes/releases.md. `header.py` makes the traits
constants of the kernels, which get them of the release followed as one number.
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, HVAL, NUMBER

# What tells nvlink of one release from that before: bits of `Release.traits`.
TRAIT_ALIGNS_ARRAYS = 1 << 0  # an extern __shared__ array stands where its symbol's value asks for
TRAIT_KEEPS_SHARED = 1 << 1  # with -r references to sized shared variables stay for the next link
TRAIT_COMMON_YIELDS = 1 << 2  # a common symbol may stand after a definition of its name
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
TRAIT_OPTIMIZED_FIRST = 1 << 13  # what LTO makes is linked before all cubins
TRAIT_TELLS_UNHOSTED = 1 << 27  # --register-link-binaries names inputs without host code
TRAIT_EXTERNS_LAST = 1 << 14  # a lone kernel's list of externals grows at its end
TRAIT_WHOLE_BANK = 1 << 15  # links that select kernels, too, write each constant variable once
TRAIT_BARE_VALUES = 1 << 28  # --disable-smem-reservation counts for symbols from sm_100 on, too
# What code from sm_100 on is like, which the finalizer writes anew (docs/older-objects.md).
TRAIT_SHORT_ADDS = 1 << 22  # sm_120: IADD where two operands are added; other waits after an MMA
TRAIT_GUARDED_BSYNC = 1 << 23  # a NOP stands in front of BSYNC, and NVSAL_SW_WAR says so
TRAIT_BARE_WORDS = 1 << 24  # instructions of -G and -O0 name neither stall nor scoreboards
TRAIT_FP64_SCOREBOARDS = 1 << 25  # sm_100: FP64 and IMMA, too, set scoreboards
TRAIT_FP64_UNPADDED = 1 << 26  # where FP64 is slow, no NOPs keep its instructions apart


NVSAL_SW_WAR = NUMBER["NVSAL_SW_WAR"]
PREEXIT_USED = NUMBER["PREEXIT_USED"]
# Beyond every tool.
MANY = (1 << 32) - 1


class Release:
    """One row.

    `name` is what options call it: the release or, for patch levels whose output is not that of the
    release's last, the first of them. `version` is what nvlink of the row's last patch level calls
    itself. `checked` are the versions whose nvlink was found to make what the row says, oldest
    first; others before the next row are taken to do so.
    `toolkit` is the number in notes of objects and output, `tool_strings` the bytes of strings that
    nvlink's own note has before the options; `traits` are TRAIT_ bits. `closing` are the records of
    attributes that from sm_100 on end those of each function, whatever inputs say. `late_compat` is
    how many bytes of .nv.compat the finalizer of sm_100 and later adds. Relocation
    types are numbered from 0 and, those of mercury code, from 0x10000 up to, but without,
    `relocations` and `mercury_relocations`.
    """

    __slots__ = (
        "checked",
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
        *checked: str,
        toolkit: int,
        tool_strings: int = 97,
        traits: int = 0,
        closing: bytes = b"",
        late_compat: int = 0,
        relocations: int = 120,
        mercury_relocations: int = 0x10041,
    ) -> None:
        self.name = name
        self.checked = checked
        self.version = checked[-1]
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
    def release(self) -> str:
        """The release of CUDA, without a patch level."""
        return self.version.rpartition(".")[0]

    @property
    def linker(self) -> str:
        """The linker that is followed, as notes and sessions name it."""
        return f"nvlink {self.version}"

    @property
    def title(self) -> str:
        """The same in the words of nvlink --version, for people."""
        return f"nvlink of Cuda compilation tools, release {self.release}, V{self.version}"


_TO_12_9 = TRAIT_EARLY_FILES | TRAIT_NULL_FUNCTIONS
_FROM_13_1 = TRAIT_ALIGNS_ARRAYS | TRAIT_PARTS_ACCELERATED | TRAIT_SHORT_ADDS
_FROM_13_2 = _FROM_13_1 | TRAIT_KEEPS_SHARED | TRAIT_EXTERNS_LAST
_FROM_13_2_86 = _FROM_13_2 | TRAIT_GUARDED_BSYNC
_FROM_13_3 = (
    _FROM_13_2_86
    | TRAIT_COMMON_YIELDS
    | TRAIT_SURE_FEATURES
    | TRAIT_TELLS_UNHOSTED
    | TRAIT_BARE_WORDS
    | TRAIT_FP64_SCOREBOARDS
)
_FROM_13_4 = (
    _FROM_13_3
    | TRAIT_WEAK_GLOBAL
    | TRAIT_MERC_CALLS
    | TRAIT_SHARED_LOCAL
    | TRAIT_NAMELESS_SHARED
    | TRAIT_FP64_UNPADDED
)
_FROM_13_5 = (
    _FROM_13_4
    | TRAIT_LEAN_NAMES
    | TRAIT_ENDS_LINES
    | TRAIT_OPTIMIZED_FIRST
    | TRAIT_WHOLE_BANK
    | TRAIT_BARE_VALUES
)

# Records of .nv.info.F. The first goes with the NOPs of TRAIT_GUARDED_BSYNC.
_CLOSING_13_2 = bytes((HVAL, NVSAL_SW_WAR, 1, 0))
_CLOSING_13_4 = _CLOSING_13_2 + bytes((BVAL, PREEXIT_USED, 0, 0))

RELEASES = (
    Release("12.9", "12.9.86", toolkit=129, traits=_TO_12_9),
    Release("13.0", "13.0.48", "13.0.88", toolkit=130, late_compat=12),
    Release(
        "13.1",
        "13.1.80",
        "13.1.115",
        toolkit=131,
        tool_strings=98,
        traits=_FROM_13_1,
        late_compat=12,
    ),
    Release("13.2.51", "13.2.51", "13.2.78", toolkit=132, traits=_FROM_13_2),
    Release("13.2", "13.2.86", toolkit=132, traits=_FROM_13_2_86, closing=_CLOSING_13_2),
    Release("13.3", "13.3.33", "13.3.73", toolkit=133, traits=_FROM_13_3, closing=_CLOSING_13_2),
    Release(
        "13.4",
        "13.4.59",
        "13.4.92",
        toolkit=134,
        traits=_FROM_13_4,
        closing=_CLOSING_13_4,
        late_compat=4,
    ),
    Release("13.5", "13.5.37", toolkit=135, traits=_FROM_13_5, closing=_CLOSING_13_4),
)
# Traits of the code of a function.
CODE_TRAITS = (
    TRAIT_SHORT_ADDS
    | TRAIT_GUARDED_BSYNC
    | TRAIT_BARE_WORDS
    | TRAIT_FP64_SCOREBOARDS
    | TRAIT_FP64_UNPADDED
)


def _names() -> dict[str, Release]:
    """Rows by what options call them: names and, of toolkits with several rows, versions."""
    toolkits = [row.toolkit for row in RELEASES]
    rows = {}
    for row in RELEASES:
        rows[row.name] = row
        if toolkits.count(row.toolkit) > 1:
            rows.update(dict.fromkeys(row.checked, row))
    return dict(sorted(rows.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


BY_NAME = _names()
# What links can follow, as options call it.
FOLLOWED = tuple(BY_NAME)
# The oldest release that is followed unless an option asks for another.
FIRST = BY_NAME["13.0"]
NEWEST = RELEASES[-1]


def tool_number(toolkit: int, patch: int) -> int:
    """Toolkit and patch level as one number that grows with both: 132086 is 13.2.86."""
    return toolkit * 1000 + patch


def release_of(toolkit: int, patch: int = 0) -> Release | None:
    """The row of a tool, None for an unknown toolkit; without a patch level the toolkit's last."""
    rows = [row for row in RELEASES if row.toolkit == toolkit]
    known = [row for row in rows if not patch or _patch(row.checked[0]) <= patch]
    return known[-1] if known else rows[0] if rows else None


def release_named(version: str) -> Release | None:
    """The row of a release or version, such as 13.2 or 13.2.78, whatever its patch level."""
    numbers = [int(part) if part.isdecimal() else -1 for part in version.split(".")]
    if not 2 <= len(numbers) <= 3 or min(numbers) < 0:
        return None
    return release_of(10 * numbers[0] + numbers[1], numbers[2] if len(numbers) == 3 else 0)


def followed(asked: str | None, toolkit: int, patch: int = 0) -> Release:
    """The release that an option asked for, else that of the newest tool that inputs name.

    At least 13.0 and at most the newest that is known; `patch` is 0 where inputs do not tell.
    """
    if asked:
        return BY_NAME[asked]
    if toolkit < FIRST.toolkit:
        return FIRST
    known = max(row.toolkit for row in RELEASES if row.toolkit <= toolkit)
    return release_of(known, patch if known == toolkit else 0) or FIRST


def code_bounds(release: Release) -> tuple[int, int]:
    """Which tools made code as this release does: from the first number to below the second."""
    at = RELEASES.index(release)
    first = last = at
    while first and not (RELEASES[first - 1].traits ^ release.traits) & CODE_TRAITS:
        first -= 1
    while (
        last + 1 < len(RELEASES) and not (RELEASES[last + 1].traits ^ release.traits) & CODE_TRAITS
    ):
        last += 1
    low = _number(RELEASES[first]) if first else 0
    return low, _number(RELEASES[last + 1]) if last + 1 < len(RELEASES) else MANY


def code_of(toolkit: int, patch: int) -> int:
    """The CODE_TRAITS of what a tool made; without a patch level those of the toolkit's first."""
    rows = [row for row in RELEASES if row.toolkit == toolkit]
    row = release_of(toolkit, patch) if patch else rows[0] if rows else None
    return row.traits & CODE_TRAITS if row else 0


def _number(row: Release) -> int:
    return tool_number(row.toolkit, _patch(row.checked[0]))


def _patch(version: str) -> int:
    return int(version.rpartition(".")[2])
