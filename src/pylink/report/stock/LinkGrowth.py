"""From run to run, the time of the link grows faster than its input."""

import NvRules
from link_rules import action_of, number

# Growth as size ** LINEAR is linear for what can be measured.
LINEAR = 1.3


def get_identifier():
    return "LinkGrowth"


def get_name():
    return "Growth from Run to Run"


def get_description():
    return "Compares the reports it is given, and says when time grows faster than the input."


def apply(handle):
    action = action_of(handle)
    frontend = NvRules.get_context(handle).frontend()
    exponent = number(action, "runs__growth_exponent.ratio")
    if exponent is None:
        return
    name = "runs__growth_exponent.ratio"
    if exponent < LINEAR:
        text = "Over these reports the time grows as size ** {:.2f}: in proportion.".format(
            exponent
        )
        message = frontend.message(NvRules.IFrontend.MsgType_MSG_OK, text, "Growth")
        low = NvRules.IFrontend.Severity_SEVERITY_LOW
        frontend.focus_metric(message, name, exponent, low, "< 1.3")
        return
    text = (
        "Over these reports the time grows as size ** {:.2f}: at twice the size expect {:.1f} "
        "times the time. --profile-aprof and pylink report --fit name the routine."
    ).format(exponent, 2.0**exponent)
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Growth")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, name, exponent, high, ">= 1.3")
