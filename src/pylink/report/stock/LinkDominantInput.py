"""One input is larger than all others together."""

import NvRules
from link_rules import instances, phase_of, size

# With fewer inputs one of them is the largest anyway.
FEWEST = 4


def get_identifier():
    return "LinkDominantInput"


def get_name():
    return "Dominant Input"


def get_description():
    return "Names an input that is larger than all others together."


def get_section_identifier():
    return "LinkInputs"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    files = instances(action, "file__bytes_read.sum")
    total = sum(value for _, value in files)
    if len(files) < FEWEST or files[0][1] * 2 < total:
        return
    name, largest = files[0]
    text = (
        "{} has {} of the {} that {} inputs have: what is saved there counts most. Look for code "
        "that no kernel of this program needs, and for debug data (-lineinfo instead of -G)."
    ).format(name, size(largest), size(total), len(files))
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Dominant Input")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, "file__bytes_read.sum", largest, high, "more than half of all")
