"""Sections and rules of the search path put into a report, as a link does before it writes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.rules.apply import apply_rules
from pylink.report.rules.load import load_rules
from pylink.report.sections.apply import apply_sections
from pylink.report.sections.folders import search_path
from pylink.report.sections.load import load


def prepare(
    report: Report,
    *,
    folders: Sequence[str] = (),
    recursive: Sequence[str] = (),
    sections: Iterable[str] = (),
    sets: Iterable[str] = (),
    rules: Sequence[str] = (),
    with_rules: bool = True,
) -> list[str]:
    """Add sections, what they derive, and with `with_rules` what rules say; the problems, in words.

    Without `folders` and `recursive` the stock files and the user's are taken, without `sections`
    and `sets` the sections of the default set, without `rules` all of them. ReportError for a
    folder, section, set or rule that does not exist, and for a required metric that is missing.
    """
    path = search_path(folders, recursive)
    loaded = load(path)
    problems = loaded.problems()
    gaps = apply_sections(report, loaded.select(sections, sets))
    required = [gap for gap in gaps if gap.is_error]
    if required:
        raise ReportError("; ".join(map(str, required)))
    problems += map(str, gaps)
    if with_rules:
        found = load_rules(path)
        problems += found.problems()
        known = {each.identifier for each in found.rules}
        for name in rules:
            if name not in known:
                raise ReportError(f"no rule '{name}' in the search path")
        apply_rules(report, [each for each in found.rules if not rules or each.identifier in rules])
    return problems
