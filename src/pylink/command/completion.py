"""`pylink completion`: completion scripts for shells, from the option table and all parsers."""

from __future__ import annotations

import argparse

from pylink.command.optionhelp import OptionHelp, command_options, link_options
from pylink.diagnostics.stream import show
from pylink.options.commands import COMMANDS
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# All commands except `link`, whose options are also those of `pylink` without a command.
OTHER_COMMANDS = [name for name in COMMANDS if name != "link"]

# Templates of the scripts for `str.format`: a brace of a script is doubled.
BASH = """\
# Completions of pylink for bash. In ~/.bashrc: source <(pylink completion bash)
_pylink() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options values
    local command=${{COMP_WORDS[1]}}
    # `pylink dedup index` is `pylink dedup-index`.
    if (( COMP_CWORD > 2 )) && [[ ' {names} ' == *" $command-${{COMP_WORDS[2]}} "* ]]; then
        command=$command-${{COMP_WORDS[2]}}
    fi
    # bash splits --option=value at the equals sign.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    COMPREPLY=()
    case $command in
{commands}
    *)
        options='{options}'
        case $before in
{values}
        esac
        ;;
    esac
    if [[ -n $values ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
        if (( COMP_CWORD == 1 )); then
            COMPREPLY+=($(compgen -W '{names}' -- "$word"))
        elif (( COMP_CWORD == 2 )); then
            for values in $(compgen -W '{names}' -- "$command-$word"); do
                COMPREPLY+=("${{values#"$command-"}}")
            done
        fi
    fi
}}
complete -o filenames -F _pylink pylink
"""

ZSH = """\
#compdef pylink
# Completions of pylink for zsh. In a directory of $fpath: pylink completion zsh > _pylink
_pylink() {{
    local -a commands
    commands=(
{names}
    )
    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _describe -t commands command commands
    fi
    local command=$words[2]
    # `pylink dedup index` is `pylink dedup-index`.
    if (( CURRENT > 3 )) && [[ ' {plain} ' == *" $words[2]-$words[3] "* ]]; then
        command=$words[2]-$words[3]
    fi
    case $command in
{commands}
    *)
        _arguments \\
{options}
            '*:object:_files'
        ;;
    esac
}}
_pylink "$@"
"""

FISH = """\
# Completions of pylink for fish. pylink completion fish > ~/.config/fish/completions/pylink.fish
{names}
{options}
"""


def bash_script() -> str:
    """Return the script for bash."""
    commands, values = [], []
    for name in OTHER_COMMANDS:
        options = " ".join(
            spelling for option in command_options(name) for spelling in option.spellings
        )
        commands.append(f"    {name}) options='{options}' ;;")
    for option in link_options():
        if option.choices:
            spellings = "|".join(option.spellings)
            values.append(f"        {spellings}) values='{' '.join(option.choices)}' ;;")
    return BASH.format(
        commands="\n".join(commands),
        options=" ".join(spelling for option in link_options() for spelling in option.spellings),
        values="\n".join(values),
        names=" ".join(COMMANDS),
    )


def _zsh_script() -> str:
    """Return the script for zsh."""
    names = [f"        {_quote(f'{name}:{command.about}')}" for name, command in COMMANDS.items()]
    commands = []
    for name in OTHER_COMMANDS:
        options = [f"            {spec} \\" for spec in _zsh_specs(command_options(name))]
        lines = [f"    {name})", "        _arguments \\", *options]
        commands.append("\n".join([*lines, "            '*:file:_files'", "        ;;"]))
    return ZSH.format(
        names="\n".join(names),
        plain=" ".join(COMMANDS),
        commands="\n".join(commands),
        options="\n".join(f"            {spec} \\" for spec in _zsh_specs(link_options())),
    )


def _fish_script() -> str:
    """Return the script for fish."""
    seen_command = f"__fish_seen_subcommand_from {' '.join(OTHER_COMMANDS)}"
    names = [
        f"complete -c pylink -n __fish_use_subcommand -a {name} -d {_quote(command.about)}"
        for name, command in COMMANDS.items()
    ]
    options = [_fish_line(f"not {seen_command}", option) for option in link_options()]
    for name in OTHER_COMMANDS:
        conditions = [f"__fish_seen_subcommand_from {name}"]
        first, _, second = name.partition("-")
        if first in COMMANDS and second:  # `pylink dedup index`
            seen_both = f"__fish_seen_subcommand_from {first}; and __fish_seen_subcommand_from"
            conditions.append(f"{seen_both} {second}")
        options += [
            _fish_line(condition, option)
            for condition in conditions
            for option in command_options(name)
        ]
    return FISH.format(names="\n".join(names), options="\n".join(options))


# The function that returns the script for a shell, by the name of the shell.
SHELLS: dict[str, Callable[[], str]] = {
    "bash": bash_script,
    "zsh": _zsh_script,
    "fish": _fish_script,
}


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink completion", description="Print the completions of a shell."
    )
    options.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    return options


def main(argv: Sequence[str]) -> int:
    """Print a script; the status is 1 if it cannot be printed, 2 for an unknown shell, else 0."""
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    show(SHELLS[options.shell]())
    return 0


def _zsh_specs(option_helps: list[OptionHelp]) -> list[str]:
    """Return the arguments of zsh's `_arguments`: one for each spelling of an option."""
    specs = []
    for option in option_helps:
        about = option.about.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        for spelling in option.spellings:
            if not option.argument:
                specs.append(_quote(f"{spelling}[{about}]"))
                continue
            action = f"({' '.join(option.choices)})" if option.choices else ""
            action = "_files" if option.is_file else action
            meaning = option.argument.strip("<>").replace(":", "\\:") or "value"
            specs.append(_quote(f"{spelling}=[{about}]:{meaning}:{action}"))
    return specs


def _fish_line(condition: str, option: OptionHelp) -> str:
    """Return the fish command that defines an option, for command lines that fulfill `condition`.

    `condition` is itself a fish command.
    """
    parts = [f"complete -c pylink -n {_quote(condition)}"]
    for spelling in option.spellings:
        if spelling.startswith("--"):
            parts.append(f"-l {spelling[2:]}")
        else:
            parts.append(f"-{'s' if len(spelling) == 2 else 'o'} {spelling[1:]}")
    if option.choices:
        parts.append(f"-x -a {_quote(' '.join(option.choices))}")
    elif option.argument:
        parts.append("-r -F" if option.is_file else "-x")
    return " ".join([*parts, f"-d {_quote(option.about)}"])


def _quote(text: str) -> str:
    """Return the text in single quotes, for all three shells."""
    return "'" + text.replace("'", "'\\''") + "'"
