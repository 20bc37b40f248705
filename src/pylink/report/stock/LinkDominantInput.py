"""One input is larger than all others together."""

from link_rules import instances, rule, size

# With fewer inputs one of them is the largest anyway.
FEWEST = 4


@rule(
    "LinkDominantInput",
    "Dominant Input",
    "Names an input that is larger than all others together.",
    "LinkInputs",
)
def apply(phase, say):
    files = instances(phase, "file__bytes_read.sum")
    total = sum(value for _, value in files)
    if len(files) < FEWEST or files[0][1] * 2 <= total:
        return
    name, largest = files[0]
    say(
        "{} has {} of the {} that {} inputs have: what is saved there counts most. Look for "
        "code in it that no kernel of this program needs.".format(
            name, size(largest), size(total), len(files)
        ),
        "file__bytes_read.sum",
        largest,
        "more than half of all",
    )
