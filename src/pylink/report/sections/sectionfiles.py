"""Loads all sections of a search path; a bad file does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pylink.diagnostics.errors import reason_of
from pylink.report.errors import ReportError
from pylink.report.model import Section
from pylink.report.sections.derived import DerivedError, parse
from pylink.report.sections.directories import Findings, files_in
from pylink.report.sections.text import SUFFIX, SectionError, read_section

# Names of the default set, and of the set of all sections.
DEFAULT_SET = "default"
ALL = "all"


@dataclass(slots=True)
class LoadedSection:
    """A section and its file."""

    section: Section
    file: Path


@dataclass(slots=True)
class LoadedSections(Findings):
    """The sections from the files of a search path, sorted by `order`, then by display name."""

    sections: list[LoadedSection] = field(default_factory=list)

    def select(
        self,
        identifiers: Iterable[str] = (),
        sets: Iterable[str] = (),
        *,
        without_sets: bool = False,
    ) -> list[Section]:
        """Select sections by identifiers and sets; if both are empty, those of the default set.

        With `without_sets`, sections that are in no set count as sections of the default set.
        ReportError for an identifier or a set that no section has.
        """
        names_of_sections = list(identifiers)
        chosen_sets = list(sets) if names_of_sections or sets else [DEFAULT_SET]
        all_identifiers = {loaded.section.identifier for loaded in self.sections}
        all_sets = self.set_names() | {DEFAULT_SET, ALL}
        for kind, names, existing in (
            ("section", names_of_sections, all_identifiers),
            ("set", chosen_sets, all_sets),
        ):
            for name in names:
                if name not in existing:
                    raise ReportError(
                        f"no {kind} '{name}' in the search path; there are: "
                        + (", ".join(sorted(existing)) or "none")
                    )
        return [
            loaded.section
            for loaded in self.sections
            if loaded.section.identifier in names_of_sections
            or ALL in chosen_sets
            or any(group.identifier in chosen_sets for group in loaded.section.sets)
            or (without_sets and DEFAULT_SET in chosen_sets and not loaded.section.sets)
        ]

    def malformed_metrics(self) -> list[tuple[Path, str]]:
        """Return pairs (file, error) for the definitions of derived metrics that are invalid."""
        messages = []
        for loaded in self.sections:
            for definition in loaded.section.definitions():
                try:
                    parse(definition.expression)
                except DerivedError as error:
                    messages.append((loaded.file, f"Error: metric {definition.name}: {error}"))
        return messages

    def set_names(self) -> set[str]:
        """Return the names of all sets of sections."""
        return {group.identifier for loaded in self.sections for group in loaded.section.sets}


def load(path: Iterable[Path]) -> LoadedSections:
    """Load the sections in the directories of `path`; a later file replaces an earlier one.

    Files replace each other if their sections have the same identifier. A file that fails to load
    is in `errors` of the result. Sections are sorted by `order`, then by display name.
    """
    loaded = LoadedSections()
    by_identifier: dict[str, LoadedSection] = {}
    for file in files_in(path, SUFFIX):
        try:
            section = read_section(file)
        except SectionError as error:
            loaded.errors.append((file, error.list_text))
            continue
        except OSError as error:
            loaded.errors.append((file, f"Error: {reason_of(error)}"))
            continue
        replaced = by_identifier.pop(section.identifier, None)
        if replaced is not None:
            loaded.note_replacement(f"section {section.identifier}", file, replaced.file)
        by_identifier[section.identifier] = LoadedSection(section, file)
    loaded.sections = sorted(by_identifier.values(), key=_sort_key)
    _warn_of_equal_names(loaded)
    return loaded


def _sort_key(loaded: LoadedSection) -> tuple[bool, int, str]:
    """Return a key that sorts by `order`, sections without one last, then by display name."""
    order = loaded.section.order
    return order is None, order or 0, loaded.section.display_name


def _warn_of_equal_names(loaded: LoadedSections) -> None:
    """Add a warning for each section that has the display name of another."""
    first_of_name: dict[str, LoadedSection] = {}
    for entry in loaded.sections:
        other = first_of_name.setdefault(entry.section.display_name, entry)
        if other is not entry:
            loaded.warnings.append(
                f"sections {other.section.identifier} and {entry.section.identifier} have the same "
                f"display name '{entry.section.display_name}', so tools confuse them"
            )
