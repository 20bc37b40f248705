"""Reports that many relocations are left to the loader."""

from link_rules import INFORMATION, MINOR, instances, number, rule

# Fewer relocations do not delay a program's start. More are reported if they are at least
# LEAST_PERCENT of all relocations.
FEW_RELOCATIONS = 1000
LEAST_PERCENT = 50.0


@rule(
    "LinkKeptRelocations",
    "Kept Relocations",
    "Reports the relocations that the output keeps, by section: debug data or the program.",
    "LinkRelocations",
)
def apply(phase, report):
    relocations = number(phase, "reloc__left_dynamic.sum") or 0.0
    applied = number(phase, "reloc__applied.sum") or 0.0
    if relocations < FEW_RELOCATIONS:
        return
    sections = instances(phase, "reloc__left_by_section.sum")
    debug = sum(value for name, value in sections if _is_debug(name))
    done = instances(phase, "reloc__applied_by_section.sum")
    applied -= sum(value for name, value in done if _is_debug(name))
    loaded = relocations - debug
    least = LEAST_PERCENT * (loaded + applied)
    if loaded >= FEW_RELOCATIONS and 100.0 * loaded >= least:
        program = [pair for pair in sections if not _is_debug(pair[0])]
        text = "{:.0f} relocations are left to the loader".format(loaded)
        text += ": {}.".format(_largest_text(program)) if program else "."
        if debug:
            text += " {:.0f} more change debug data.".format(debug)
        report(
            "{} By type, all that are kept: {}. They are applied when the program is "
            "loaded, which the link did not measure.".format(
                text, _largest_text(instances(phase, "reloc__left_dynamic.sum"))
            ),
            "reloc__left_dynamic.sum",
            relocations,
            ">= {:.0f}% of all".format(LEAST_PERCENT),
            level=MINOR,
        )
    elif debug >= FEW_RELOCATIONS:
        changed = [pair for pair in sections if _is_debug(pair[0])]
        report(
            "{:.0f} of the {:.0f} relocations that the output keeps change debug data, {}: they "
            "belong to -G or -lineinfo, not to calls or variables.".format(
                debug, relocations, _largest_text(changed)
            ),
            "reloc__left_dynamic.sum",
            relocations,
            ">= {}".format(FEW_RELOCATIONS),
            level=INFORMATION,
        )


def _is_debug(section):
    """Return whether a kind of section holds debug data, by its name."""
    return "debug_" in section


def _largest_text(pairs):
    """Return the first three pairs of a name and a number as text."""
    return ", ".join("{} ({:.0f})".format(name, value) for name, value in pairs[:3])
