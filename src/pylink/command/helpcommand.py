"""`pylink help`: help on the program, a command, an option or a diagnostic."""

from __future__ import annotations

import sys

from pylink.command.optionhelp import command_parser
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.help import explanation
from pylink.diagnostics.stream import write
from pylink.options.commands import COMMANDS
from pylink.options.help import full_help_text, help_text, option_text, short_help_text
from pylink.options.suggestions import suggest_command
from pylink.options.table import BY_ATTRIBUTE, SPELLINGS
from pylink.renderers.configuration import configure_sink, find_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Show help on a topic, or an overview; the status is 1 for an unknown topic, else 0.

    A topic is a command, an option or a diagnostic, looked for in this order; `all` is the help on
    all commands and all options of a link.
    """
    if list(argv) in ([], ["help"], ["all"]):
        if sys.stdout is not None:  # None if the process was started with it closed
            write(sys.stdout, full_help_text() if argv[:1] == ["all"] else short_help_text())
        return 0
    topic = "-".join(argv[:2])  # `help dedup index` is `help dedup-index`
    if topic not in COMMANDS:
        topic = argv[0]
    parser = command_parser(topic) if topic in COMMANDS else None
    option = SPELLINGS.get(topic) or BY_ATTRIBUTE.get(topic.replace("-", "_"))
    kind = find_kind(topic)
    if parser is not None:
        text = parser.format_help()
    elif topic in COMMANDS:
        text = help_text("pylink")
    elif option is not None and option.built:
        text = option_text(option)
    elif kind is not None:
        text = explanation(kind)
    else:
        return _refuse(topic)
    if sys.stdout is not None:  # None if the process was started with it closed
        write(sys.stdout, text)
    return 0


def _refuse(topic: str) -> int:
    """Report an unknown topic with a suggestion; return the exit status."""
    sink = Sink()
    try:
        configure_sink(sink, {}, terminal_form="text")
        sink.report("unknown-command", command=topic, explain=suggest_command)
    except LinkError:
        return sink.exit_code()
    finally:
        sink.close()
    return 1
