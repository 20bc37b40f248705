"""What `pylink._native.exits.rewrite_exits` does to the kernels of a file, by number.

`header.py` makes constants of these for native code. The experiments are in
docs/format-notes/family-c-exits.md.
"""

from __future__ import annotations

# A mode is for an executable, for a link with -g or -r, or for code of a certain age or chip.
MODE_NO_BARRIERS = 0  # an executable without error barriers
MODE_BARRIERS = 1  # an executable with them: some input has the attribute GEN_ERRBAR_AT_EXIT
MODE_LASTING_BARRIERS = 2  # barriers that stay valid whatever is linked in later
MODE_EARLY_CODE = 3  # code from before 13.0 becomes what 13.0 has, and no exit changes
MODE_EARLY_CAPSULES = 4  # only capsules of such files become what 12.9 has
MODE_GUARDED = 5  # code for a chip with known latencies waits for its results

# Bits that make all functions what another release has; they are combined, without a mode.
UPDATE_GUARD_BSYNC = 0x100  # a NOP in front of BSYNC
UPDATE_UNGUARD_BSYNC = 0x200  # none
UPDATE_SHORT_ADDS = 0x400  # IADD for IADD3, in functions that were not scheduled
UPDATE_AWAITED_FENCES = 0x800  # fences wait for their guards, tensor maps are acquired by more
UPDATE_BARE_WORDS = 0x1000  # functions that were not scheduled name no stalls or scoreboards
