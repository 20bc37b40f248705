"""All sections of a search path: one bad file does not stop the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pylink.report.errors import ReportError
from pylink.report.model import Section
from pylink.report.sections.derived import DerivedError, parse
from pylink.report.sections.folders import Findings, files_in
from pylink.report.sections.text import SUFFIX, SectionError, read_section

# The set that is used when none is asked for, and the one with everything.
DEFAULT_SET = "default"
ALL = "all"


@dataclass(slots=True)
class LoadedSection:
    """A section and the file it is from."""

    section: Section
    file: Path


@dataclass(slots=True)
class Loaded(Findings):
    """The sections of a search path, in their order."""

    sections: list[LoadedSection] = field(default_factory=list)

    def select(
        self,
        identifiers: Iterable[str] = (),
        sets: Iterable[str] = (),
        *,
        without_sets: bool = False,
    ) -> list[Section]:
        """The sections of these identifiers and sets; of the default set when both are empty.

        With `without_sets`, sections that are in no set belong to the default set.
        ReportError for an identifier or a set that no section has.
        """
        wanted = list(identifiers)
        named = list(sets) if wanted or sets else [DEFAULT_SET]
        known = {each.section.identifier for each in self.sections}
        known_sets = self.set_names() | {DEFAULT_SET, ALL}
        for what, given, there in (("section", wanted, known), ("set", named, known_sets)):
            for identifier in given:
                if identifier not in there:
                    raise ReportError(
                        f"no {what} '{identifier}' in the search path; there are: "
                        + (", ".join(sorted(there)) or "none")
                    )
        return [
            each.section
            for each in self.sections
            if each.section.identifier in wanted
            or ALL in named
            or any(group.identifier in named for group in each.section.sets)
            or (without_sets and DEFAULT_SET in named and not each.section.sets)
        ]

    def malformed(self) -> list[tuple[Path, str]]:
        """Derived metrics that no action can have, by file; their sections do without them."""
        messages = []
        for each in self.sections:
            for definition in each.section.definitions():
                try:
                    parse(definition.expression)
                except DerivedError as error:
                    messages.append((each.file, f"Error: metric {definition.name}: {error}"))
        return messages

    def set_names(self) -> set[str]:
        """The sets that sections say they belong to."""
        return {group.identifier for each in self.sections for group in each.section.sets}


def load(path: Iterable[Path]) -> Loaded:
    """The sections of the folders of `path`; of equal identifiers the last file counts."""
    loaded = Loaded()
    by_identifier: dict[str, LoadedSection] = {}
    for file in files_in(path, SUFFIX):
        try:
            section = read_section(file)
        except SectionError as error:
            loaded.errors.append((file, error.listed))
            continue
        except OSError as error:
            loaded.errors.append((file, f"Error: {error.strerror}"))
            continue
        earlier = by_identifier.pop(section.identifier, None)
        if earlier is not None:
            loaded.replaces(f"section {section.identifier}", file, earlier.file)
        by_identifier[section.identifier] = LoadedSection(section, file)
    loaded.sections = sorted(by_identifier.values(), key=_place)
    _warn_of_names(loaded)
    return loaded


def _place(loaded: LoadedSection) -> tuple[bool, int, str]:
    """By order, sections without one last, then by name."""
    order = loaded.section.order
    return order is None, order or 0, loaded.section.display_name


def _warn_of_names(loaded: Loaded) -> None:
    seen: dict[str, LoadedSection] = {}
    for each in loaded.sections:
        other = seen.setdefault(each.section.display_name, each)
        if other is not each:
            loaded.warnings.append(
                f"sections {other.section.identifier} and {each.section.identifier} have the same "
                f"display name '{each.section.display_name}', which tools confuse"
            )
