"""Reports that a large part of the input is debug data."""

from link_rules import instances, number, rule, size

# Least percent of the input at which debug data is reported.
LEAST_PERCENT = 30.0
# Least percent of the debug data at which some inputs, or one option, count as the cause.
CAUSE_PERCENT = 50.0

# Advice by the option that produces debug data.
CAUSES = {
    "-G": (
        "Inputs with .debug_info, which -G produces, have {} of it: if source lines are enough, "
        "compile with -lineinfo, which also optimizes."
    ),
    "-lineinfo": (
        "Inputs with only line data, as from -lineinfo, have {} of it: omit the option if source "
        "lines are not needed."
    ),
}
# The id in place of an option for inputs that have only frame data: every compilation produces it,
# and no option omits it.
ALWAYS = "always"


@rule(
    "LinkDebugBytes",
    "Debug Data",
    "Reports the share of debug data in the input, and the inputs and options that cause it.",
    "LinkInputs",
)
def apply(phase, report):
    """Call `report` if much of the input is debug data, by the metrics of the action `phase`."""
    debug = number(phase, "file__debug_bytes.sum")
    total = number(phase, "file__bytes_input.sum")
    if not debug or not total or 100.0 * debug < LEAST_PERCENT * total:
        return
    causes = instances(phase, "file__debug_bytes_by_option.sum")
    if causes and causes[0][0] == ALWAYS:
        return
    sections = "".join(
        " " + CAUSES[option].format("{:.0f}%".format(100.0 * value / debug))
        for option, value in causes[:1]
        if option in CAUSES and 100.0 * value >= CAUSE_PERCENT * debug
    )
    report(
        "{:.0f}% of the input is debug data{}.{} The estimate is the share, by size, of debug data "
        "in the processor time of reading, copying and writing.".format(
            100.0 * debug / total,
            _distribution(instances(phase, "file__debug_bytes.sum"), debug),
            sections,
        ),
        "file__debug_bytes.sum",
        debug,
        ">= {:.0f}% of the input".format(LEAST_PERCENT),
        speedup=number(phase, "link__debug_cpu_time_share.pct"),
    )


def _distribution(files, debug):
    """Return a text on inputs with debug data: the three largest if they have most, or a count.

    `files` are pairs of an input and its bytes of debug data, largest first.
    """
    if not files:
        return ""
    largest = ["{} ({})".format(name, size(value)) for name, value in files[:3]]
    if 100.0 * sum(value for _, value in files[:3]) > CAUSE_PERCENT * debug:
        return ", most of it in " + ", ".join(largest)
    return ", in {} inputs; {} has the largest share".format(len(files), largest[0])
