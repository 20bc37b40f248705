"""Suggestions for an unknown option, command or value.

They are computed only if the notes of the diagnostic are shown.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.diagnostics import Sink
    from pylink.diagnostics.record import Diagnostic
    from pylink.options.table import Value

# By tool that is often called together with the linker: prefixes of its options.
OTHER_TOOLS = {
    "nvcc": ("-O", "-dc", "-dlink", "-rdc", "-gencode", "--generate-code", "-std", "-Xcompiler"),
    "the host linker": ("-Wl,", "-rpath", "-soname"),
}

# Greatest number of similar names that a note lists.
MOST_MATCHES = 5


def suggest_option(diagnostic: Diagnostic) -> None:
    """Add notes with the options that are most similar to an unknown one.

    If another tool, such as nvcc, has options like it, add only a note on that tool.
    """
    from pylink.options.table import OPTIONS

    typed = f"-{diagnostic.args['option']}"
    typed_name = typed.lstrip("-")
    for tool, starts in OTHER_TOOLS.items():
        if typed.startswith(starts):
            from pylink.diagnostics.record import note

            diagnostic.notes.append(note("option-of-another", given=typed, tool=tool))
            return
    names = {option.long: f"--{option.long}" for option in OPTIONS if option.built}
    names |= {option.short: f"-{option.short}" for option in OPTIONS if option.short}
    matches = _closest_names(typed_name, names)
    _suggest(diagnostic, typed, names[matches[0]] if matches else None)
    if len(matches) > 1:
        _add_choices(diagnostic, "options like it", (names[name] for name in matches))
    _add_choices(diagnostic, "all options", ["pylink help link"])


def suggest_value(diagnostic: Diagnostic) -> None:
    """Add notes on an invalid value: the allowed values, and the most similar of them.

    An architecture that CUDA dropped or renamed gets a note on that instead of the similar value.
    """
    from pylink.options.help import linkable_choices
    from pylink.options.table import BY_ATTRIBUTE

    option = BY_ATTRIBUTE[str(diagnostic.args["option"]).replace("-", "_")]
    choices = linkable_choices(option)
    value = str(diagnostic.args["value"])
    if not _note_dropped(diagnostic, value):
        matches = _closest_names(value, choices)
        _suggest(diagnostic, value, matches[0] if matches else None)
    _add_choices(diagnostic, "values of this option", choices)


def _note_dropped(diagnostic: Diagnostic, arch: str) -> bool:
    """Add a note on an architecture that CUDA dropped or renamed; False for another value."""
    hint = _dropped_note(arch)
    if hint is not None:
        diagnostic.notes.append(hint)
    return hint is not None


def _dropped_note(text: str) -> Diagnostic | None:
    """Return the note for an architecture that CUDA dropped or renamed; None for another text."""
    from pylink.diagnostics.record import note
    from pylink.facts.target import LAST_SUPPORT, RENAMED

    prefix, _, number = text.rpartition("_")
    digits = number.rstrip("af")
    if prefix not in ("sm", "compute", "lto", "") or not digits.isdecimal():
        return None
    sm = int(digits)
    if release := LAST_SUPPORT.get(sm):
        return note("arch-dropped", arch=text, release=release)
    if name := RENAMED.get(sm):
        renamed = f"{prefix}_{name}{number[len(digits) :]}"
        return note("arch-renamed", arch=text, name=renamed)
    return None


def dropped_note(arch: str) -> str | None:
    """Return the text on an architecture that CUDA dropped or renamed; None for all others."""
    hint = _dropped_note(arch)
    return None if hint is None else hint.message


def suggest_command(diagnostic: Diagnostic) -> None:
    """Add notes on an unknown command: all commands, and the most similar of them."""
    from pylink.options.commands import COMMANDS

    name = str(diagnostic.args["command"])
    matches = _closest_names(name, COMMANDS)
    _suggest(diagnostic, name, matches[0] if matches else None)
    _add_choices(diagnostic, "commands", COMMANDS)


def suggest_kind(diagnostic: Diagnostic) -> None:
    """Add notes with the names of diagnostics most similar to an unknown one."""
    from pylink.diagnostics.kinds import KINDS

    value = str(diagnostic.args["value"])
    matches = _closest_names(value, KINDS)
    _suggest(diagnostic, value, matches[0] if matches else None)
    _add_choices(diagnostic, "diagnostics like it", matches)


def _closest_names(typed: str, names: Iterable[str]) -> list[str]:
    """Return up to MOST_MATCHES names that are most similar to a given one, the best first."""
    from difflib import get_close_matches

    # The typed name is truncated: no name is as long, and the time grows with both lengths.
    by_lowercase = {name.lower(): name for name in names}
    matches = get_close_matches(typed.lower()[:100], by_lowercase, MOST_MATCHES)
    return [by_lowercase[name] for name in matches]


def refuse_unknown_command(word: str, values: Mapping[str, Value], sink: Sink) -> None:
    """Refuse a first argument that was probably meant as a command, not as an input.

    That is a `word` that names no file, if it is similar to a command or -arch is missing.
    """
    if os.path.lexists(word):
        return
    from pylink.options.commands import COMMANDS

    if "arch" not in values or _closest_names(word, COMMANDS):
        sink.fatal("unknown-command", command=word, explain=suggest_command)


def _suggest(diagnostic: Diagnostic, typed: str, suggestion: str | None) -> None:
    """Add the note "did you mean", if there is a suggestion."""
    from pylink.diagnostics.record import note

    if suggestion is not None:
        diagnostic.notes.append(note("did-you-mean", given=typed, suggestion=suggestion))


def _add_choices(diagnostic: Diagnostic, label: str, choices: Iterable[str]) -> None:
    """Add a note that lists the choices, if there are any."""
    from pylink.diagnostics.record import note

    text = ", ".join(choices)
    if text:
        diagnostic.notes.append(note("choices-are", label=label, choices=text))
