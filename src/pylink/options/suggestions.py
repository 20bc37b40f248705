"""What was probably meant by an option, a command or a value that does not exist.

Found only when somebody looks at the notes of such a diagnostic.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.diagnostics import Sink
    from pylink.diagnostics.record import Diagnostic
    from pylink.options.table import Value

# Options of tools that people call in one breath with the linker, by how they begin.
OTHER_TOOLS = {
    "nvcc": ("-O", "-dc", "-dlink", "-rdc", "-gencode", "--generate-code", "-std", "-Xcompiler"),
    "the host linker": ("-Wl,", "-rpath", "-soname"),
}

# How many names a note lists, of those that are most like what was given.
MOST = 5


def suggest_option(diagnostic: Diagnostic) -> None:
    """Add the options that are most like an unknown one."""
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
    close = closest(typed_name, names)
    _add(diagnostic, typed, names[close[0]] if close else None)
    if len(close) > 1:
        _add_choices(diagnostic, "options like it", (names[name] for name in close))
    _add_choices(diagnostic, "all options", ["pylink --help"])


def suggest_value(diagnostic: Diagnostic) -> None:
    """Add the values that an option takes, and the one most like what it was given."""
    from pylink.options.help import shown_choices
    from pylink.options.table import BY_ATTRIBUTE

    option = BY_ATTRIBUTE[str(diagnostic.args["option"]).replace("-", "_")]
    choices = shown_choices(option)
    value = str(diagnostic.args["value"])
    if not _tell_of_dropped(diagnostic, value):
        close = closest(value, choices)
        _add(diagnostic, value, close[0] if close else None)
    _add_choices(diagnostic, "values of this option", choices)


def _tell_of_dropped(diagnostic: Diagnostic, given: str) -> bool:
    """Say of an architecture that CUDA no longer knows, or calls otherwise, what became of it."""
    dropped = _dropped(given)
    if dropped is not None:
        diagnostic.notes.append(dropped)
    return dropped is not None


def _dropped(text: str) -> Diagnostic | None:
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
    """Which release dropped an architecture, or how it is called now; None for all others."""
    dropped = _dropped(arch)
    return None if dropped is None else dropped.message


def suggest_command(diagnostic: Diagnostic) -> None:
    """Add the commands, and the one most like what was given."""
    from pylink.options.commands import COMMANDS

    name = str(diagnostic.args["command"])
    close = closest(name, COMMANDS)
    _add(diagnostic, name, close[0] if close else None)
    _add_choices(diagnostic, "commands", COMMANDS)


def suggest_kind(diagnostic: Diagnostic) -> None:
    """Add the name of a diagnostic most like an unknown one."""
    from pylink.diagnostics.kinds import KINDS

    value = str(diagnostic.args["value"])
    close = closest(value, KINDS)
    _add(diagnostic, value, close[0] if close else None)
    _add_choices(diagnostic, "diagnostics like it", close)


def closest(given: str, names: Iterable[str]) -> list[str]:
    """The names that are most like what was given, the best first."""
    from difflib import get_close_matches

    # Cut where no name is as long: comparing takes time in proportion to both.
    folded = {name.lower(): name for name in names}
    matches = get_close_matches(given.lower()[:100], folded, MOST)
    return [folded[name] for name in matches]


def refuse_unknown_command(word: str, values: Mapping[str, Value], sink: Sink) -> None:
    """Refuse a first word, of letters, that was meant as a command and not as an input.

    It is one that names no file, and either it is like a command or there is no target to link for.
    """
    if os.path.lexists(word):
        return
    from pylink.options.commands import COMMANDS

    if "arch" not in values or closest(word, COMMANDS):
        sink.fatal("unknown-command", command=word, explain=suggest_command)


def _add(diagnostic: Diagnostic, given: str, suggestion: str | None) -> None:
    from pylink.diagnostics.record import note

    if suggestion is not None:
        diagnostic.notes.append(note("did-you-mean", given=given, suggestion=suggestion))


def _add_choices(diagnostic: Diagnostic, label: str, choices: Iterable[str]) -> None:
    from pylink.diagnostics.record import note

    text = ", ".join(choices)
    if text:
        diagnostic.notes.append(note("choices-are", label=label, choices=text))
