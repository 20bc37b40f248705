"""Many relocations are left to the loader."""

import NvRules
from link_rules import instances, number, phase_of

# Relocations that no program notices at its start, and the percent from which on they are many.
FEW = 1000
SHARE = 50.0


def get_identifier():
    return "LinkKeptRelocations"


def get_name():
    return "Kept Relocations"


def get_description():
    return "Says which relocations are left to the loader, which applies them at every start."


def get_section_identifier():
    return "LinkRelocations"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    kept = number(action, "reloc__left_dynamic.sum") or 0.0
    applied = number(action, "reloc__applied.sum") or 0.0
    if kept < FEW or 100.0 * kept < SHARE * (kept + applied):
        return
    types = instances(action, "reloc__left_dynamic.sum")[:3]
    named = ", ".join("{} ({:.0f})".format(name, value) for name, value in types)
    text = (
        "{:.0f} relocations are left to the loader, {}: every start of the program pays for them. "
        "Most come from calls and addresses of functions and from global variables; inlining small "
        "device functions removes theirs."
    ).format(kept, named)
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Kept Relocations")
    low = NvRules.IFrontend.Severity_SEVERITY_LOW
    frontend.focus_metric(message, "reloc__left_dynamic.sum", kept, low, "> applied ones")
