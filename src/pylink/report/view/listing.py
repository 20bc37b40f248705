"""--list-sections, --list-sets and --list-rules: files of the search path, and their errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pylink.diagnostics.stream import printable, write
from pylink.report.rules.rulefiles import load_rules
from pylink.report.sections.directories import search_path
from pylink.report.sections.sectionfiles import ALL, DEFAULT_SET, load
from pylink.terminal.running import print_note
from pylink.terminal.tables import align_columns


def list_files(options: Mapping[str, Any], program: str) -> int:
    """Print the lists that the options request; return 1 if a file has an error, else 0.

    `options` has the values of options of a link or of `pylink report`, by attribute such as
    `list_rules`. Notes on files begin with the name of the `program`. ReportError for a directory
    that does not exist.
    """
    path = search_path(
        options.get("section_folder") or (), options.get("section_folder_recursive") or ()
    )
    errors: list[tuple[Path, str]] = []
    warnings: list[str] = []
    if options.get("list_sections") or options.get("list_sets"):
        loaded = load(path)
        errors += [*loaded.errors, *loaded.malformed_metrics()]
        warnings += loaded.warnings
        if options.get("list_sections"):
            # `prepare` adds sections in no set, too, if options name their directory.
            has_directories = bool(
                options.get("section_folder") or options.get("section_folder_recursive")
            )
            enabled_sections = {
                section.identifier for section in loaded.select(without_sets=has_directories)
            }
            rows = [
                (
                    section.section.identifier,
                    section.section.display_name,
                    "yes" if section.section.identifier in enabled_sections else "no",
                    str(section.file),
                )
                for section in loaded.sections
            ]
            _print(("Identifier", "Display Name", "Enabled", "Filename"), rows)
        if options.get("list_sets"):
            names = sorted(loaded.set_names() | {DEFAULT_SET, ALL})
            set_rows = [
                (name, ", ".join(section.identifier for section in loaded.select(sets=[name])))
                for name in names
            ]
            _print(("Set", "Sections"), set_rows)
    if options.get("list_rules"):
        loaded_rules = load_rules(path)
        errors += loaded_rules.errors
        warnings += loaded_rules.warnings
        rule_rows = [
            (rule.identifier, rule.name, rule.section or "", rule.description, str(rule.file))
            for rule in loaded_rules.rules
        ]
        _print(("Identifier", "Display Name", "Section", "Description", "Filename"), rule_rows)
    for warning in warnings:
        print_note(program, warning)
    if errors:
        _print(("Filename", "Error"), [(str(file), reason) for file, reason in errors])
    return 1 if errors else 0


def _print(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with lines above and below the titles, and an empty line after it."""
    cells = [titles, *(tuple(map(printable, row)) for row in rows)]
    ruled_line = ["-" * max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = align_columns([ruled_line, cells[0], ruled_line, *cells[1:]], gap=" ")
    write(sys.stdout, "".join(f"{line}\n" for line in [*lines, ""]))
