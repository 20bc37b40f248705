"""One measurement: its contenders, its rounds, and its facts."""

from __future__ import annotations

import os
import shlex
import tempfile

from pylink.bench import compare
from pylink.bench.commandline import BadLink, Link
from pylink.bench.contenders import Contender, contenders
from pylink.bench.contest import Contest, Plan
from pylink.bench.machine import facts, load
from pylink.bench.processes import Launcher
from pylink.bench.results import Results, from_csv
from pylink.files.reading import is_text, read_incoming
from pylink.options.parse import OPTIONS_VARIABLE
from pylink.packages.sites import add_sites
from pylink.report.view.numbers import format_value
from pylink.serve.server import VARIABLE as SERVER_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.terminal.progress import Progress

# Environment variables that would change the link of `pylink`, or let a server do it.
REMOVED_VARIABLES = (OPTIONS_VARIABLE, SERVER_VARIABLE)

PLAN = Plan()  # the defaults

# The facts show at most this number of arguments of a command, and `...` in place of the rest.
MOST_ARGUMENTS = 40


def measure(
    command: Sequence[str],
    *,
    rounds: int = PLAN.rounds,
    rest: float = PLAN.rest,
    patience: float = PLAN.patience,
    growth: bool = PLAN.with_parts,
    nvlinks: Sequence[str] = (),
    pylinks: Sequence[str] = (),
    without: Sequence[str] = (),
    folder: str | os.PathLike[str] | None = None,
    label: str | None = None,
    progress: bool = False,
) -> Results:
    """Measure a link beside other linkers, like `pylink bench`.

    `command` is a command line of nvlink or pylink as a list of arguments. The keywords are the
    options of `pylink bench`: `rounds`, seconds of `rest` and of `patience`, whether to link parts
    for `growth`, paths of the `nvlinks` and `pylinks`, names of linkers to omit (`without`), the
    directory of outputs (`folder`), a `label`. With `progress` a terminal or notebook shows a bar.

    Raises BadLink for a command that cannot be measured, or that no contender could link.
    """
    if isinstance(command, str):
        raise TypeError("command is a list of arguments; shlex.split splits a text")
    if rounds < 1:
        raise ValueError(f"rounds is at least 1, not {rounds}")
    from pylink.terminal.progress import Progress

    add_sites()
    with Progress("measuring", enabled=progress) as bar:
        return measure_by_plan(
            list(command),
            plan=Plan(rounds, rest, patience, growth),
            nvlinks=nvlinks,
            pylinks=pylinks,
            without=without,
            folder=None if folder is None else os.fspath(folder),
            label=label,
            progress=bar,
        )


def read(path: str | os.PathLike[str]) -> Results:
    """Read the results in a file of `pylink bench --csv`.

    Raises OSError if it cannot be read, MalformedResults if it is not such a file.
    """
    name = os.fspath(path)
    return from_csv(read_incoming(name, is_wanted=is_text).decode(errors="replace"), name)


def measure_by_plan(
    argv: Sequence[str],
    *,
    plan: Plan,
    nvlinks: Sequence[str],
    pylinks: Sequence[str],
    without: Sequence[str],
    folder: str | None,
    label: str | None,
    progress: Progress,
) -> Results:
    """Measure by a plan and return the results; BadLink as for `measure`.

    `argv` is the command line of the link, and `progress` the bar to advance. The parameters from
    `nvlinks` to `label` are those of `measure`.
    """
    parent = folder or os.path.dirname(Link(argv, "").output) or "."
    with tempfile.TemporaryDirectory(prefix=".pylink-bench-", dir=parent) as directory:
        link = Link(argv, directory)
        fact_rows = _facts_of(link, argv, plan, label)
        environment = {
            name: value for name, value in os.environ.items() if name not in REMOVED_VARIABLES
        }
        launcher = Launcher(environment)
        selected: list[Contender] = []
        try:
            available = contenders(link, launcher, nvlinks, pylinks)
            selected = _select(available, without)
            progress.set_amount(0, plan.count_steps(link.size, len(selected)))
            contest = Contest(link, selected, plan, lambda text: progress.advance(text=text))
            results = contest.run()
        finally:
            for contender in selected:
                contender.close()
            launcher.close()
    results.facts = fact_rows | results.facts
    if not results.runs:
        reasons = "\n".join(f"{name}: {reason}" for name, reason in results.failures.items())
        raise BadLink(f"no contender could link this\n{reasons}")
    return results


def _select(candidates: Sequence[Contender], without: Sequence[str]) -> list[Contender]:
    """Return the contenders that `without` does not name; BadLink for an unknown name."""
    names = [contender.name for contender in candidates]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise BadLink(f"there is no {unknown[0]!r} to omit; the contenders are {', '.join(names)}")
    return [contender for contender in candidates if contender.name not in without]


def _facts_of(link: Link, argv: Sequence[str], plan: Plan, label: str | None) -> dict[str, str]:
    """Return the facts about the link, the plan and the machine."""
    count = len(link.inputs) + len(link.libraries)
    size = format_value(link.bytes_of(link.size), "byte")
    fact_rows = {"label": label} if label else {}
    fact_rows |= {
        "link": f"{count} input{'s' * (count != 1)} for {link.arch}, {size}",
        compare.DIGEST: link.digest(),
        "command": shlex.join(argv)
        if len(argv) <= MOST_ARGUMENTS
        else f"{shlex.join(argv[:MOST_ARGUMENTS])} ...",
        "rounds": str(plan.rounds),
    }
    if plan.rest:
        fact_rows["rest"] = f"{plan.rest:g} s"
    return fact_rows | {"load": f"{load():.2f}"} | facts(link.directory)
