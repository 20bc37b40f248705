"""Many relocations are left to the loader."""

import NvRules
from link_rules import instances, number, rule

# Relocations that no program notices at its start, and the percent from which on they are many.
FEW = 1000
SHARE = 50.0


@rule(
    "LinkKeptRelocations",
    "Kept Relocations",
    "Says which relocations the output keeps, and in which sections: debug data or the program.",
    "LinkRelocations",
)
def apply(phase, say):
    relocations = number(phase, "reloc__left_dynamic.sum") or 0.0
    applied = number(phase, "reloc__applied.sum") or 0.0
    if relocations < FEW:
        return
    sections = instances(phase, "reloc__left_by_section.sum")
    debug = sum(value for name, value in sections if _is_debug(name))
    done = instances(phase, "reloc__applied_by_section.sum")
    applied -= sum(value for name, value in done if _is_debug(name))
    loaded = relocations - debug
    if loaded >= FEW and 100.0 * loaded >= SHARE * (loaded + applied):
        program = [pair for pair in sections if not _is_debug(pair[0])]
        text = "{:.0f} relocations are left to the loader".format(loaded)
        text += ": {}.".format(_listed(program)) if program else "."
        if debug:
            text += " {:.0f} more change debug data.".format(debug)
        say(
            "{} By type, all that are kept: {}. Loading the program applies them, which the link "
            "did not measure.".format(text, _listed(instances(phase, "reloc__left_dynamic.sum"))),
            "reloc__left_dynamic.sum",
            relocations,
            ">= {:.0f}% of all".format(SHARE),
            severity=NvRules.IFrontend.Severity_SEVERITY_LOW,
        )
    elif debug >= FEW:
        changed = [pair for pair in sections if _is_debug(pair[0])]
        say(
            "{:.0f} of the {:.0f} relocations that the output keeps change debug data, {}: they "
            "belong to -G or -lineinfo, and not to calls or variables.".format(
                debug, relocations, _listed(changed)
            ),
            "reloc__left_dynamic.sum",
            relocations,
            ">= {}".format(FEW),
            severity=NvRules.IFrontend.Severity_SEVERITY_LOW,
            kind=NvRules.IFrontend.MsgType_MSG_OK,
        )


def _is_debug(section):
    return "debug_" in section


def _listed(pairs):
    return ", ".join("{} ({:.0f})".format(name, value) for name, value in pairs[:3])
