"""Adds sections and rules of the search path to a report, as a link does before writing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.rules.evaluation import apply_rules
from pylink.report.rules.rulefiles import LoadedRules, load_rules
from pylink.report.sections.directories import search_path
from pylink.report.sections.insertion import apply_sections
from pylink.report.sections.sectionfiles import load


def prepare(
    report: Report,
    *,
    directories: Sequence[str] = (),
    recursive: Sequence[str] = (),
    sections: Iterable[str] = (),
    sets: Iterable[str] = (),
    rules: Sequence[str] = (),
    with_rules: bool = True,
) -> list[str]:
    """Add sections, derived metrics and, with `with_rules`, rule messages; return problems as text.

    The files are those in `directories`, and in or below `recursive` (default: the stock files and
    the user's own). `sections` and `sets` name the sections to add (default: the default set), and
    `rules` the rules to apply (default: all). ReportError for a directory, section or set that does
    not exist, for a required metric that is missing, and with `with_rules` for a rule that does not
    exist. Problems are warnings.
    """
    path = search_path(directories, recursive)
    loaded = load(path)
    problems = loaded.problems()
    # In directories that the caller names, sections in no set count as those of the default set.
    has_directories = bool(directories or recursive)
    selected = loaded.select(sections, sets, without_sets=has_directories)
    # Identifiers of pylink's own sections, from the stock directory, the first of the default path.
    stock = {
        section.section.identifier for section in loaded.sections if section.file.parent == path[0]
    }
    if has_directories:
        stock = set()
    # A missing metric of a requested section is reported. pylink's own sections are requested only
    # if they are named.
    requested = {
        *sections,
        *(section.identifier for section in selected if section.identifier not in stock),
    }
    gaps = apply_sections(report, selected, requested)
    errors = [gap for gap in gaps if gap.is_error]
    if errors:
        raise ReportError("; ".join(map(str, errors)))
    problems += map(str, gaps)
    if with_rules:
        loaded_rules = load_rules(path)
        problems += loaded_rules.problems()
        _check_rules(loaded_rules, rules)
        apply_rules(
            report, [rule for rule in loaded_rules.rules if not rules or rule.identifier in rules]
        )
    return problems


def check_names(
    *,
    directories: Sequence[str],
    recursive: Sequence[str],
    sections: Iterable[str],
    sets: Iterable[str],
    rules: Sequence[str],
) -> None:
    """Raise ReportError for unknown directories, sections, sets and rules, as `prepare` does."""
    path = search_path(directories, recursive)
    load(path).select(sections, sets)
    if rules:
        _check_rules(load_rules(path), rules)


def _check_rules(loaded: LoadedRules, rules: Iterable[str]) -> None:
    """Raise ReportError for the first of `rules` that is not loaded."""
    identifiers = {rule.identifier for rule in loaded.rules}
    for name in rules:
        if name not in identifiers:
            raise ReportError(
                f"no rule '{name}' in the search path; there are: "
                + (", ".join(sorted(identifiers)) or "none")
            )
