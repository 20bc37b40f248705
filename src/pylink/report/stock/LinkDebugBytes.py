"""Most of the input is debug data."""

import NvRules
from link_rules import instances, number, phase_of, size

# Percent of the input from which on debug data is worth a word.
SHARE = 30.0


def get_identifier():
    return "LinkDebugBytes"


def get_name():
    return "Debug Data"


def get_description():
    return "Says how much of the input is debug data, and which inputs bring it."


def get_section_identifier():
    return "LinkInputs"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    debug = number(action, "file__debug_bytes.sum")
    total = number(action, "file__bytes_read.sum")
    share = number(action, "link__time_share.pct") or 0.0
    if not debug or not total or 100.0 * debug < SHARE * total:
        return
    files = instances(action, "file__debug_bytes.sum")[:3]
    named = ", ".join("{} ({})".format(name, size(value)) for name, value in files)
    percent = 100.0 * debug / total
    text = (
        "{:.0f}% of the input is debug data, most of it in {}. Every input has its own copy of the "
        "headers it includes; where lines are enough, compile with -lineinfo instead of -G."
    ).format(percent, named)
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Debug Data")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, "file__debug_bytes.sum", debug, high, "> 30% of the input")
    if hasattr(frontend, "speedup"):
        kind = NvRules.IFrontend.SpeedupType_GLOBAL
        frontend.speedup(message, kind, share * debug / total)
