"""CUDA releases whose objects pylink links and whose nvlink it reproduces, oldest first.

docs/format-notes/releases.md has the changes of each, with their experiments. `header.py` writes
the traits as constants for native code, which gets those of the followed release as one number.
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, EIATTR_NUMBER, HVAL

# Properties in which the nvlinks of the releases differ: bits of `Release.traits`.
TRAIT_ALIGNS_ARRAYS = 1 << 0  # an extern __shared__ array is aligned as its symbol's value says
TRAIT_KEEPS_SHARED = 1 << 1  # -r keeps references to shared variables for the next link
TRAIT_COMMON_YIELDS = 1 << 2  # a common symbol may follow a definition of the same name
TRAIT_WEAK_GLOBAL = 1 << 3  # symbol tables mix weak symbols with the global ones
TRAIT_MERC_CALLS = 1 << 4  # from sm_100 on the call graph has a mercury form
TRAIT_SHARED_LOCAL = 1 << 5  # executables make symbols of a kernel's shared variables local
# String tables lack names of relocation sections without entries. From sm_100 on they hold only
# used names, and mercury sections have another order (LEAN_RANKS).
TRAIT_LEAN_NAMES = 1 << 6
TRAIT_NAMELESS_SHARED = 1 << 7  # a shared section with bytes but no variable counts as a variable
TRAIT_EARLY_FILES = 1 << 8  # headers, notes and barrier counts are where objects of 12.x have them
TRAIT_NULL_FUNCTIONS = 1 << 9  # mention of an undefined function makes the null symbol a function
TRAIT_SURE_FEATURES = 1 << 10  # links without code also state which code takes the fast path
TRAIT_ENDS_LINES = 1 << 11  # from sm_100 on empty line programs end with an end of sequence
TRAIT_PARTS_ACCELERATED = 1 << 12  # targets without the suffix `a` refuse code for one with it
TRAIT_OPTIMIZED_FIRST = 1 << 13  # the code that LTO produces is linked before all cubins
TRAIT_TELLS_UNHOSTED = 1 << 27  # --register-link-binaries names inputs without host code
TRAIT_EXTERNS_LAST = 1 << 14  # a link's only kernel inherits externals in order, not reversed
TRAIT_WHOLE_BANK = 1 << 15  # also links that select kernels keep identical constants
TRAIT_BARE_VALUES = 1 << 28  # from sm_100 on --disable-smem-reservation also changes symbol values
TRAIT_ONE_HYPHEN = 1 << 29  # the refusal of code that is not a patch spells `-astoolspatch`
# The next bits concern code from sm_100 on, which nvlink's finalizer rewrites
# (docs/older-objects.md).
TRAIT_SHORT_ADDS = 1 << 22  # sm_120: IADD to add two operands; other waits after an MMA
TRAIT_GUARDED_BSYNC = 1 << 23  # a NOP is in front of BSYNC, and NVSAL_SW_WAR records that
TRAIT_BARE_WORDS = 1 << 24  # instructions of -G and -O0 state neither stalls nor scoreboards
TRAIT_FP64_SCOREBOARDS = 1 << 25  # sm_100: FP64 and IMMA also set scoreboards
TRAIT_FP64_UNPADDED = 1 << 26  # no NOPs separate FP64 instructions on chips with slow FP64


NVSAL_SW_WAR = EIATTR_NUMBER["NVSAL_SW_WAR"]
PREEXIT_USED = EIATTR_NUMBER["PREEXIT_USED"]
# The end of a range of tool numbers if the range has all later tools, too; a tool number is, for
# example, 132086 for 13.2.86.
AFTER_ALL_TOOLS = (1 << 32) - 1


class Release:
    """A release of CUDA, or patch levels of it with an output of their own.

    * `name`: its name in options. If the output of some patch levels differs from the release's
      last, their row is named after the first of them.
    * `checked`: the versions of nvlink that were compared with pylink, oldest first. Others, up to
      the next row, are expected to do the same.
    * `version`: the last version in `checked`.
    * `toolkit`: the number in notes of objects and of the output, such as 131 for 13.1.
    * `tool_strings`: bytes of the strings in front of the options in the note of nvlink.
    * `traits`: TRAIT_ bits.
    * `closing`: attribute records that from sm_100 on end those of each function, whatever the
      inputs say.
    * `late_compat`: number of bytes that the finalizer of sm_100 and later adds to .nv.compat.
    * `relocations`, `mercury_relocations`: ends (exclusive) of the relocation types, which begin
      at 0 and, for mercury code, at 0x10000.
    """

    __slots__ = (
        "checked", "closing", "late_compat", "mercury_relocations", "name", "relocations",
        "tool_strings", "toolkit", "traits", "version",
    )  # fmt: skip

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
        """The name of the followed linker in notes and sessions."""
        return f"nvlink {self.version}"

    @property
    def title(self) -> str:
        """The name of the followed linker for people, in the words of nvlink --version."""
        return f"nvlink of Cuda compilation tools, release {self.release}, V{self.version}"


# Traits of the releases up to 12.9 (_TO_12_9), of 13.1 and later ones (_FROM_13_1), and so on.
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
    | TRAIT_ONE_HYPHEN
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

# Records for `Release.closing`, at the end of .nv.info.F of each function F from sm_100 on.
# NVSAL_SW_WAR comes with the NOPs of TRAIT_GUARDED_BSYNC.
_CLOSING_13_2 = bytes((HVAL, NVSAL_SW_WAR, 1, 0))
_CLOSING_13_4 = _CLOSING_13_2 + bytes((BVAL, PREEXIT_USED, 0, 0))

# fmt: off
RELEASES = (
    Release("12.9", "12.9.86", toolkit=129, traits=_TO_12_9),
    Release("13.0", "13.0.48", "13.0.88", toolkit=130, late_compat=12),
    Release("13.1", "13.1.80", "13.1.115", toolkit=131, tool_strings=98, traits=_FROM_13_1,
        late_compat=12),
    Release("13.2.51", "13.2.51", "13.2.78", toolkit=132, traits=_FROM_13_2),
    Release("13.2", "13.2.86", toolkit=132, traits=_FROM_13_2_86, closing=_CLOSING_13_2),
    Release("13.3", "13.3.33", "13.3.73", toolkit=133, traits=_FROM_13_3, closing=_CLOSING_13_2),
    Release("13.4", "13.4.59", "13.4.92", toolkit=134, traits=_FROM_13_4, closing=_CLOSING_13_4,
        late_compat=4),
    Release("13.5", "13.5.37", toolkit=135, traits=_FROM_13_5, closing=_CLOSING_13_4),
)
# fmt: on
# Traits that concern the machine code of functions.
CODE_TRAITS = (
    TRAIT_SHORT_ADDS
    | TRAIT_GUARDED_BSYNC
    | TRAIT_BARE_WORDS
    | TRAIT_FP64_SCOREBOARDS
    | TRAIT_FP64_UNPADDED
)


def _rows_by_name() -> dict[str, Release]:
    """Return the rows of RELEASES by their names in options, in the order of version numbers.

    So 13.2 comes before 13.2.51. Rows that share a toolkit are also found by the versions in
    `checked`.
    """
    toolkits = [row.toolkit for row in RELEASES]
    rows = {}
    for row in RELEASES:
        rows[row.name] = row
        if toolkits.count(row.toolkit) > 1:
            rows.update(dict.fromkeys(row.checked, row))
    return dict(sorted(rows.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


BY_NAME = _rows_by_name()
# Names, in options, of the releases that a link can follow.
FOLLOWED_NAMES = tuple(BY_NAME)
# The oldest release that a link follows without an option.
OLDEST_DEFAULT = BY_NAME["13.0"]
NEWEST = RELEASES[-1]


def toolkit_name(toolkit: int) -> str:
    """Return the usual name of a toolkit: 12.9 for 129."""
    return f"{toolkit // 10}.{toolkit % 10}"


def tool_number(toolkit: int, patch: int) -> int:
    """Return toolkit and patch level as one number that grows with both: 132086 is 13.2.86."""
    return toolkit * 1000 + patch


def _release_of(toolkit: int, patch: int = 0) -> Release | None:
    """Return the row of the release that a tool belongs to; None for an unknown toolkit.

    With patch level 0, it is the last row of the toolkit.
    """
    rows = [row for row in RELEASES if row.toolkit == toolkit]
    reached = [row for row in rows if not patch or _patch(row.checked[0]) <= patch]
    return reached[-1] if reached else rows[0] if rows else None


def release_named(version: str) -> Release | None:
    """Return the row of a release or version, such as 13.2 or 13.2.78; None for an unknown one."""
    numbers = [int(part) if part.isdecimal() else -1 for part in version.split(".")]
    if not 2 <= len(numbers) <= 3 or min(numbers) < 0:
        return None
    return _release_of(10 * numbers[0] + numbers[1], numbers[2] if len(numbers) == 3 else 0)


def release_to_follow(asked: str | None, toolkit: int, patch: int = 0) -> Release:
    """Return the release that the option asks for, or else that of the newest tool of the inputs.

    `asked` is the option's value. Without it, the result is at least 13.0 and at most the newest
    row. `toolkit` and `patch` are those of the newest tool, `patch` 0 if unknown.
    """
    if asked:
        return BY_NAME[asked]
    if toolkit < OLDEST_DEFAULT.toolkit:
        return OLDEST_DEFAULT
    nearest = max(row.toolkit for row in RELEASES if row.toolkit <= toolkit)
    return _release_of(nearest, patch if nearest == toolkit else 0) or OLDEST_DEFAULT


def code_bounds(release: Release) -> tuple[int, int]:
    """Return the range of `tool_number`s of tools that make code like a release's.

    Their CODE_TRAITS are equal. The range is a pair: the first number, and the end (exclusive).
    """
    first = last = RELEASES.index(release)
    while first and not (RELEASES[first - 1].traits ^ release.traits) & CODE_TRAITS:
        first -= 1
    while (
        last + 1 < len(RELEASES) and not (RELEASES[last + 1].traits ^ release.traits) & CODE_TRAITS
    ):
        last += 1
    low = _first_tool_number(RELEASES[first]) if first else 0
    if last + 1 == len(RELEASES):
        return low, AFTER_ALL_TOOLS
    return low, _first_tool_number(RELEASES[last + 1])


def code_traits_of(toolkit: int, patch: int) -> int:
    """Return the CODE_TRAITS (traits of machine code) of a tool; 0 for an unknown toolkit.

    With patch level 0, the first row of the toolkit counts.
    """
    rows = [row for row in RELEASES if row.toolkit == toolkit]
    row = _release_of(toolkit, patch) if patch else rows[0] if rows else None
    return row.traits & CODE_TRAITS if row else 0


def _first_tool_number(row: Release) -> int:
    """Return the number of the oldest tool in `checked`."""
    return tool_number(row.toolkit, _patch(row.checked[0]))


def _patch(version: str) -> int:
    """Return the patch level of a version: 86 of 13.2.86."""
    return int(version.rpartition(".")[2])
