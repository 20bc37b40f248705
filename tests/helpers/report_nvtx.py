"""Actions under various NVTX ranges, and the actions that each filter selects."""

from __future__ import annotations

from pylink.report.model import Action, NvtxState, Process, Report

# By action: the push ranges around it, the outermost first.
STACKS = (
    ("Bottom", "Mid", "Top"),
    ("Bottom", "Mid", "Top"),
    ("Bottom", "Top"),
    ("Top",),
    (),
    (),
    ("A", "A", "B"),
    ("A", "X", "B", "Y", "C"),
)
# By action: the ranges that were started and not ended.
STARTED: dict[int, tuple[str, ...]] = {4: ("SE_A",), 5: ("SE_A", "SE_B")}
THREAD = 7

# By filter: the numbers of the actions that it selects.
RESULTS: dict[str, tuple[int, ...]] = {
    "Top": (),
    "Top]": (0, 1, 2, 3),
    "Top]/": (0, 1, 2, 3),
    "Top]//": (0, 1, 2, 3),
    "Top]/*": (0, 1, 2, 3),
    "Mid]/": (),
    "Mid]/*": (),
    "Mid]/+": (),
    "Mid]/Top": (),
    "[Bottom/Top]/": (2,),
    "Bottom/*/Top]/": (0, 1, 2),
    "A/B]/": (6,),
    "Bottom/*]/": (),
    "Bottom/]/": (),
    "Top/": (0, 1, 2, 3),
    "Top/*": (0, 1, 2, 3),
    "Bottom/": (0, 1, 2),
    "[Bottom": (0, 1, 2),
    "Bottom/*": (0, 1, 2),
    "Mid/": (0, 1),
    "[Mid": (),
    "Mid]": (),
    "SE_A": (4, 5),
    "SE_A,SE_B": (5,),
    "SE_B,SE_A": (5,),
    "SE_A,": (),
    "*/Top": (),
    "+/Top": (),
    "*": (),
    "": (),
    "Bottom/*/Top": (0, 1, 2),
    "Bottom/Top": (2,),
    "[Bottom/Top]": (2,),
    "Bottom/Mid/Top": (0, 1),
    "Bottom/+/Top": (0, 1),
    "Bottom/*/Mid/*/Top": (0, 1),
    "Bottom/+": (2,),
    "Bottom/*]": (),
    "Bottom/]": (),
    "[/Bottom": (),
    "/Bottom": (0, 1, 2),
    "Bottom//Top": (2,),
    "bottom/": (),
    " Bottom/": (),
    "A/B": (6,),
    "A/A": (),
    "[A/B": (6,),
    "A/+/B": (7,),
    "A/+/+/B": (7,),
    "A/+/*": (6, 7),
    "[A/+/B/+/C]": (7,),
    "regex:SE.*": (4, 5),
    "regex:_B": (5,),
    "regex:[A-B]/": (),
    "regex:/[AM]/": (0, 1, 6, 7),
    "regex:Top]": (0, 1, 2, 3),
    "regex:Top]/": (),
    "regex:To[p]]": (0, 1, 2, 3),
    "regex:Mi[d]/": (0, 1),
    "regex:T.*]": (0, 1, 2, 3),
    "regex:[T.*": (3,),
    "dom@Mid/": (0, 1),
    "dom@SE_A": (),
    "regex:^dom$@M.*/": (0, 1),
    "nothing@Mid/": (),
    "@Mid/": (),
}
# Filters that include, filters that exclude, and the numbers of the actions that they select.
TWO: list[tuple[list[str], list[str], tuple[int, ...]]] = [
    (["Bottom/"], ["Mid/"], (2,)),
    (["SE_A", "Mid/"], [], (0, 1, 4, 5)),
    ([], ["Mid/"], ()),
    ([], [], ()),
]


def nvtx_report() -> Report:
    """Return a report with an action for each stack, of the default domain and of `dom`."""
    report = Report(Process(1, "host", "pylink"))
    for number, stack in enumerate(STACKS):
        action = Action(f"k{number}", f"k{number}", f"k{number}", thread_id=THREAD)
        action.set("m", 1)
        action.nvtx = NvtxState()
        if stack:
            action.nvtx.push(THREAD, stack)
            action.nvtx.push(THREAD, stack, "dom")
        for name in STARTED.get(number, ()):
            action.nvtx.start(name)
        report.actions.append(action)
    return report
