"""Reports an input that is larger than all others together."""

from link_rules import instances, rule, size

# With fewer inputs, a dominating one is normal.
LEAST_INPUTS = 4


@rule(
    "LinkDominantInput",
    "Dominant Input",
    "Names an input that is larger than all others together.",
    "LinkInputs",
)
def apply(phase, report):
    """Call `report` if one input is larger than all others together, by metrics of `phase`."""
    files = instances(phase, "file__bytes_read.sum")
    total = sum(value for _, value in files)
    if len(files) < LEAST_INPUTS or files[0][1] * 2 <= total:
        return
    name, largest = files[0]
    debug = dict(instances(phase, "file__debug_bytes.sum")).get(name, 0.0)
    size_kept = dict(instances(phase, "file__kept_bytes.sum")).get(name)
    contents = "{} of it is debug data".format(size(debug)) if debug else "none of it is debug data"
    if size_kept is not None:
        contents += ", and the output has {} of its sections".format(size(size_kept))
    report(
        "{} has {} of the {} of {} inputs: savings in it count most. {}.".format(
            name, size(largest), size(total), len(files), contents[0].upper() + contents[1:]
        ),
        "file__bytes_read.sum",
        largest,
        "more than half of all",
    )
