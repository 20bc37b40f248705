"""Translates nvJitLink's options into pylink's.

nvJitLink.h lists the options; `-r` is not listed but works. Links with other options are forwarded
to the real library.
"""

from __future__ import annotations

from pylink.options.table import BY_ATTRIBUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.options.table import Value

# By the start of an option with a value: pylink's attribute for the value; "" for options that only
# compilers read.
WITH_VALUE = {
    "-arch=": "arch",
    "-kernels-used=": "kernels_used",
    "-variables-used=": "variables_used",
    "-ftz=": "",
    "-prec-div=": "",
    "-prec-sqrt=": "",
    "-fma=": "",
    "-maxrregcount=": "",
    "-Xptxas=": "",
    "-split-compile=": "",
    "-split-compile-extended=": "",
    "-jump-table-density=": "",
}
# By option without a value: pylink's attribute; "" for options that only compilers read. "time" is
# not passed on: it sets `LinkSettings.reports_time`.
FLAGS = {
    "-g": "debug",
    "-r": "relocatable_link",
    "-verbose": "verbose",
    "-time": "time",
    "-lineinfo": "",
    "-optimize-unused-variables": "",
    "-no-cache": "",
    "-O0": "",
    "-O3": "",
}
# Attributes that collect several values.
LISTS = ("kernels_used", "variables_used")


class LinkSettings:
    """The settings of one handle.

    `values` are those of pylink's options, by attribute. With `reports_time` the info log has the
    time of the link.
    """

    __slots__ = ("reports_time", "values")

    def __init__(self, values: dict[str, Value], *, reports_time: bool) -> None:
        self.values = values
        self.reports_time = reports_time


def parse_options(options: Iterable[str]) -> LinkSettings | None:
    """Parse the options of a link of machine code; None if the real library must handle them."""
    values: dict[str, Value] = {}
    reports_time = False
    for option in options:
        attribute = FLAGS.get(option)
        if attribute == "time":
            reports_time = True
        elif attribute is not None:
            if attribute:
                values[attribute] = True
        elif (prefix := option[: option.find("=") + 1]) in WITH_VALUE and option != prefix:
            _store(values, WITH_VALUE[prefix], option[len(prefix) :])
        else:
            return None
    # Code for a virtual architecture is PTX, which only the real library can link.
    arch = str(values.get("arch", ""))
    if not arch.startswith("sm_") or arch not in BY_ATTRIBUTE["arch"].choices:
        return None
    return LinkSettings(values, reports_time=reports_time)


def _store(values: dict[str, Value], attribute: str, value: str) -> None:
    """Store a value, unless the attribute is "" (only compilers read it)."""
    if attribute in LISTS:
        earlier = values.get(attribute, ())
        assert isinstance(earlier, tuple)
        values[attribute] = (*earlier, value)
    elif attribute:
        values[attribute] = value
