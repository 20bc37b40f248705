"""Sections and rules of the search path put into a report, as a link does before it writes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.rules.evaluation import apply_rules
from pylink.report.rules.rulefiles import LoadedRules, load_rules
from pylink.report.sections.folders import search_path
from pylink.report.sections.insertion import apply_sections
from pylink.report.sections.sectionfiles import load


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
    # A named folder stands for what is in it.
    given = bool(folders or recursive)
    chosen = loaded.select(sections, sets, without_sets=given)
    stock = {each.section.identifier for each in loaded.sections if each.file.parent == path[0]}
    if given:
        stock = set()
    # Nobody asked for a stock section of the default set: what it lacks, the link had not.
    asked = {*sections, *(each.identifier for each in chosen if each.identifier not in stock)}
    gaps = apply_sections(report, chosen, asked)
    required = [gap for gap in gaps if gap.is_error]
    if required:
        raise ReportError("; ".join(map(str, required)))
    problems += map(str, gaps)
    if with_rules:
        loaded_rules = load_rules(path)
        problems += loaded_rules.problems()
        _check_rules(loaded_rules, rules)
        apply_rules(
            report, [each for each in loaded_rules.rules if not rules or each.identifier in rules]
        )
    return problems


def check(
    *,
    folders: Sequence[str],
    recursive: Sequence[str],
    sections: Iterable[str],
    sets: Iterable[str],
    rules: Sequence[str],
) -> None:
    """ReportError for what `prepare` would refuse by name: folders, sections, sets and rules."""
    path = search_path(folders, recursive)
    load(path).select(sections, sets)
    if rules:
        _check_rules(load_rules(path), rules)


def _check_rules(loaded: LoadedRules, rules: Iterable[str]) -> None:
    known = {each.identifier for each in loaded.rules}
    for name in rules:
        if name not in known:
            raise ReportError(
                f"no rule '{name}' in the search path; there are: "
                + (", ".join(sorted(known)) or "none")
            )
