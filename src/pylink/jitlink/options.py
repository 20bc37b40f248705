"""nvJitLink's options, as values of ours.

nvJitLink.h lists the options; `-r` is not there and works. An option that is not in this table is
the real library's to judge.
"""

from __future__ import annotations

from pylink.options.table import BY_ATTRIBUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.options.table import Value

# By their beginning: the attribute of ours that takes the value; "" for what only compilers read.
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
LISTS = ("kernels_used", "variables_used")


class Wishes:
    """What the options of one handle ask for.

    `values` are options of ours. `timed` asks for the time of the link in the log.
    """

    __slots__ = ("timed", "values")

    def __init__(self, values: dict[str, Value], *, timed: bool) -> None:
        self.values = values
        self.timed = timed


def understand(options: Iterable[str]) -> Wishes | None:
    """The options of a link of machine code; None when the real library has to read them."""
    values: dict[str, Value] = {}
    timed = False
    for word in options:
        attribute = FLAGS.get(word)
        if attribute == "time":
            timed = True
        elif attribute is not None:
            if attribute:
                values[attribute] = True
        elif (beginning := word[: word.find("=") + 1]) in WITH_VALUE and word != beginning:
            _store(values, WITH_VALUE[beginning], word[len(beginning) :])
        else:
            return None
    # A virtual architecture has only PTX.
    arch = str(values.get("arch", ""))
    if not arch.startswith("sm_") or arch not in BY_ATTRIBUTE["arch"].choices:
        return None
    return Wishes(values, timed=timed)


def _store(values: dict[str, Value], attribute: str, value: str) -> None:
    if attribute in LISTS:
        before = values.get(attribute, ())
        assert isinstance(before, tuple)
        values[attribute] = (*before, value)
    elif attribute:
        values[attribute] = value
