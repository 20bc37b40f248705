"""From run to run, the time of the link grows faster than its input."""

import NvRules
from link_rules import number, rule

# Growth as size ** LINEAR is linear for what can be measured; below FLAT it is less than that.
LINEAR = 1.3
FLAT = 0.7


@rule(
    "LinkGrowth",
    "Growth from Run to Run",
    "Compares the reports it is given, and says when time grows faster than the input.",
)
def apply(phase, say):
    exponent = number(phase, "runs__growth_exponent.ratio")
    if exponent is None:
        return
    if exponent < LINEAR:
        say(
            "Over these reports the time grows as size ** {:.2f}: {}.".format(
                exponent, "in proportion" if exponent >= FLAT else "more slowly than the input"
            ),
            "runs__growth_exponent.ratio",
            exponent,
            "< {}".format(LINEAR),
            severity=NvRules.IFrontend.Severity_SEVERITY_LOW,
            kind=NvRules.IFrontend.MsgType_MSG_OK,
        )
        return
    say(
        "Over these reports the time grows as size ** {:.2f}: at twice the size expect {:.1f} "
        "times the time. --profile-aprof and pylink report --fit show how each routine "
        "grows.".format(exponent, 2.0**exponent),
        "runs__growth_exponent.ratio",
        exponent,
        ">= {}".format(LINEAR),
    )
