"""Modes of `pylink._native.exits.rewrite_exits`: how it changes the functions of a file.

`header.py` writes these constants for native code. The experiments are in
docs/format-notes/family-c-exits.md.
"""

from __future__ import annotations

# Modes of changing functions: the first three rewrite ends of kernels (exits), for an executable or
# for a link with -g or -r; the others change code of a certain age or chip.
MODE_NO_BARRIERS = 0  # an executable without error barriers
MODE_BARRIERS = 1  # an executable with error barriers: an input has GEN_ERRBAR_AT_EXIT
MODE_LASTING_BARRIERS = 2  # error barriers that stay valid whatever is linked in later
MODE_EARLY_CODE = 3  # convert code from before 13.0 to that of 13.0; change no exit
MODE_EARLY_CAPSULES = 4  # convert capsules (mercury code) as nvlink 12.9 does; change no code
MODE_GUARDED = 5  # make code that was compiled for fixed latencies wait for its results

# Bits that convert all functions of a file to the code of another release. Their sum is passed in
# place of a MODE_ number.
UPDATE_GUARD_BSYNC = 0x100  # insert a NOP in front of BSYNC
UPDATE_UNGUARD_BSYNC = 0x200  # remove the NOP in front of BSYNC
UPDATE_SHORT_ADDS = 0x400  # IADD in place of IADD3, in functions that were not scheduled
UPDATE_AWAITED_FENCES = 0x800  # fences wait for their guards; more instructions acquire tensor maps
UPDATE_BARE_WORDS = 0x1000  # functions that were not scheduled name no stalls or scoreboards
