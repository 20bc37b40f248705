"""Reports that many relocations are left to the loader."""

from link_rules import INFORMATION, MINOR, instances, number, rule

# Fewer than FEW_RELOCATIONS do not delay a program's start. From there on, relocations outside of
# debug data are reported if at least LEAST_PERCENT of them are kept.
FEW_RELOCATIONS = 1000
LEAST_PERCENT = 50.0


@rule(
    "LinkKeptRelocations",
    "Kept Relocations",
    "Reports the relocations that the output keeps, by section: debug data or the program.",
    "LinkRelocations",
)
def apply(phase, report):
    """Call `report` if many relocations are kept, by the metrics of the action `phase`."""
    kept_count = number(phase, "reloc__left_dynamic.sum") or 0.0
    applied = number(phase, "reloc__applied.sum") or 0.0
    if kept_count < FEW_RELOCATIONS:
        return
    sections = instances(phase, "reloc__left_by_section.sum")
    kept_in_debug = sum(value for name, value in sections if _is_debug(name))
    applied_sections = instances(phase, "reloc__applied_by_section.sum")
    applied -= sum(value for name, value in applied_sections if _is_debug(name))
    kept_in_program = kept_count - kept_in_debug
    least_share = LEAST_PERCENT * (kept_in_program + applied)
    if kept_in_program >= FEW_RELOCATIONS and 100.0 * kept_in_program >= least_share:
        program_sections = [pair for pair in sections if not _is_debug(pair[0])]
        text = "{:.0f} relocations are left to the loader".format(kept_in_program)
        text += ": {}.".format(_largest_text(program_sections)) if program_sections else "."
        if kept_in_debug:
            text += " {:.0f} more change debug data.".format(kept_in_debug)
        report(
            "{} By type, all that are kept: {}. They are applied when the program is "
            "loaded, which the link did not measure.".format(
                text, _largest_text(instances(phase, "reloc__left_dynamic.sum"))
            ),
            "reloc__left_dynamic.sum",
            kept_count,
            ">= {:.0f}% of all".format(LEAST_PERCENT),
            level=MINOR,
        )
    elif kept_in_debug >= FEW_RELOCATIONS:
        debug_sections = [pair for pair in sections if _is_debug(pair[0])]
        report(
            "{:.0f} of the {:.0f} relocations that the output keeps change debug data, {}: they "
            "belong to -G or -lineinfo, not to calls or variables.".format(
                kept_in_debug, kept_count, _largest_text(debug_sections)
            ),
            "reloc__left_dynamic.sum",
            kept_count,
            ">= {}".format(FEW_RELOCATIONS),
            level=INFORMATION,
        )


def _is_debug(section):
    """Return whether the name of a kind of section is that of debug data."""
    return "debug_" in section


def _largest_text(pairs):
    """Return the first three of `pairs`, each a name and a number, as text."""
    return ", ".join("{} ({:.0f})".format(name, value) for name, value in pairs[:3])
