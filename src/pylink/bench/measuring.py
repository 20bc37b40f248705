"""One measurement: who takes part, the rounds, and the facts beside them."""

from __future__ import annotations

import os
import shlex
import tempfile
from typing import TYPE_CHECKING

from pylink.bench import compare
from pylink.bench.commandline import BadLink, Link
from pylink.bench.contenders import Contender, contenders
from pylink.bench.contest import Contest, Plan
from pylink.bench.machine import facts, load
from pylink.bench.processes import Launcher
from pylink.bench.results import Results, from_csv
from pylink.files.reading import is_text, read_incoming
from pylink.options.parse import VARIABLE
from pylink.packages.sites import add_sites
from pylink.report.view.numbers import text
from pylink.serve.server import VARIABLE as SERVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.terminal.progress import Progress

# What would make pylink on the command line do another link than the others, or elsewhere.
VARIABLES = (VARIABLE, SERVER)

PLAN = Plan()


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
    """Measure a link beside other linkers, as `pylink bench` does.

    `command` has the words of a command line of nvlink or pylink. The keywords are the options of
    `pylink bench`: `rounds`, seconds of `rest` and of `patience`, whether parts are linked for
    `growth`, paths of more `nvlinks` and `pylinks`, names of those that are measured `without`, the
    `folder` of outputs, a `label`. With `progress` a terminal or a notebook shows a bar.

    Raises BadLink for a command that cannot be measured, or that nothing could link.
    """
    if isinstance(command, str):
        raise TypeError("command is a list of words; shlex.split makes one of a text")
    if rounds < 1:
        raise ValueError(f"rounds is at least 1, not {rounds}")
    from pylink.terminal.progress import Progress

    add_sites()
    with Progress("measuring", wanted=progress) as shown:
        return carry_out(
            list(command),
            plan=Plan(rounds, rest, patience, growth),
            nvlinks=nvlinks,
            pylinks=pylinks,
            without=without,
            folder=None if folder is None else os.fspath(folder),
            label=label,
            progress=shown,
        )


def read(path: str | os.PathLike[str]) -> Results:
    """The results in a file that `pylink bench --csv` wrote.

    Raises OSError when it cannot be read, MalformedResults when something else is in it.
    """
    name = os.fspath(path)
    return from_csv(read_incoming(name, wanted=is_text).decode(errors="replace"), name)


def carry_out(
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
    """The results of a plan; BadLink for what cannot be measured."""
    place = folder or os.path.dirname(Link(argv, "").output) or "."
    with tempfile.TemporaryDirectory(prefix=".pylink-bench-", dir=place) as directory:
        link = Link(argv, directory)
        fact_rows = _facts_of(link, argv, plan, label)
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        launcher = Launcher(environment)
        taking: list[Contender] = []
        try:
            contenders_here = contenders(link, launcher, nvlinks, pylinks)
            taking = _taking(contenders_here, without)
            progress.reach(0, len(taking) * (plan.rounds * (4 if plan.with_parts else 1) + 1))
            contest = Contest(link, taking, plan, lambda text: progress.advance(text=text))
            results = contest.run()
        finally:
            for contender in taking:
                contender.close()
            launcher.close()
    results.facts = fact_rows | results.facts
    if not results.runs:
        reasons = "\n".join(f"{name}: {argv}" for name, argv in results.failures.items())
        raise BadLink(f"nothing could link this\n{reasons}")
    return results


def _taking(chosen: Sequence[Contender], without: Sequence[str]) -> list[Contender]:
    """Those that are not to be omitted; BadLink for a name that there is not."""
    names = [contender.name for contender in chosen]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise BadLink(f"there is no {unknown[0]!r} to omit; the contenders are {', '.join(names)}")
    return [contender for contender in chosen if contender.name not in without]


def _facts_of(link: Link, argv: Sequence[str], plan: Plan, label: str | None) -> dict[str, str]:
    """What the results are of."""
    count = len(link.inputs) + len(link.libraries)
    size = text(link.bytes_of(link.size), "byte")
    fact_rows = {"label": label} if label else {}
    fact_rows |= {
        "link": f"{count} input{'s' * (count != 1)} for {link.arch}, {size}",
        compare.DIGEST: link.digest(),
        "command": shlex.join(argv) if len(argv) < 40 else f"{shlex.join(argv[:40])} ...",
        "rounds": str(plan.rounds),
    }
    if plan.rest:
        fact_rows["rest"] = f"{plan.rest:g} s"
    return fact_rows | {"load": f"{load():.2f}"} | facts(link.folder)
