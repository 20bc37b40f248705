"""Reports that the time of a link grows faster than its input, from run to run."""

from link_rules import INFORMATION, number, rule

# Least exponent p of time = size ** p at which growth is reported as faster than linear, and at
# which it is linear.
LINEAR_MAX = 1.3
LINEAR_MIN = 0.7


@rule(
    "LinkGrowth",
    "Growth from Run to Run",
    "Compares the given reports, and warns if time grows faster than the input.",
)
def apply(phase, report):
    """Call `report` with the growth of the link's time, if the action `phase` has this metric."""
    exponent = number(phase, "runs__growth_exponent.ratio")
    if exponent is None:
        return
    if exponent < LINEAR_MAX:
        report(
            "Over these reports the time grows as size ** {:.2f}: {}.".format(
                exponent,
                "in proportion" if exponent >= LINEAR_MIN else "more slowly than the input",
            ),
            "runs__growth_exponent.ratio",
            exponent,
            "< {}".format(LINEAR_MAX),
            level=INFORMATION,
        )
        return
    report(
        "Over these reports the time grows as size ** {:.2f}: at twice the size expect {:.1f} "
        "times the time. --profile-aprof and pylink report --fit show how each routine "
        "grows.".format(exponent, 2.0**exponent),
        "runs__growth_exponent.ratio",
        exponent,
        ">= {}".format(LINEAR_MAX),
    )
