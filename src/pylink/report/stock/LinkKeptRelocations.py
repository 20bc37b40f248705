"""Many relocations are left to the loader."""

import NvRules
from link_rules import instances, number, rule

# Relocations that no program notices at its start, and the percent from which on they are many.
FEW = 1000
SHARE = 50.0


@rule(
    "LinkKeptRelocations",
    "Kept Relocations",
    "Says which relocations are left to the loader, which applies them at every start.",
    "LinkRelocations",
)
def apply(phase, say):
    kept = number(phase, "reloc__left_dynamic.sum") or 0.0
    applied = number(phase, "reloc__applied.sum") or 0.0
    if kept < FEW or 100.0 * kept < SHARE * (kept + applied):
        return
    types = instances(phase, "reloc__left_dynamic.sum")[:3]
    say(
        "{:.0f} relocations are left to the loader, {}: every start of the program pays for them. "
        "Most come from calls and addresses of functions and from global variables; inlining small "
        "device functions removes theirs.".format(
            kept, ", ".join("{} ({:.0f})".format(name, value) for name, value in types)
        ),
        "reloc__left_dynamic.sum",
        kept,
        ">= {:.0f}% of all".format(SHARE),
        severity=NvRules.IFrontend.Severity_SEVERITY_LOW,
    )
