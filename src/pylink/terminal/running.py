"""How commands other than a link run: words in, a status out, and a reason where it is not 0."""

from __future__ import annotations

import os

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable, write
from pylink.packages.extras import reason_of_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


def run(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
    expected: tuple[type[Exception], ...] = (),
    *,
    error_status: int = 1,
    intermixed: bool = False,
) -> int:
    """The status of a command: that of `work`, 2 for words that it does not know.

    It is `error_status` after an error of a file, a package that is missing, and the errors that
    are `expected`, whose text is the reason; the reason is written to standard error. With
    `intermixed` options may stand between the words of one list.
    """
    try:
        return work((parser.parse_intermixed_args if intermixed else parser.parse_args)(argv))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except BrokenPipeError:
        raise
    except expected as error:
        reason = str(error)
    except ImportError as error:
        reason = reason_of_import(error)
    except OSError as error:
        name = error.filename
        where = os.fsdecode(name) if isinstance(name, bytes) else name
        reason = reason_of(error) if name is None else f"{where}: {reason_of(error)}"
    refuse(parser.prog, reason)
    return error_status


def refuse(program: str, reason: str) -> None:
    """Say on standard error, in one line, why a command cannot do its work."""
    write(None, f"{program}: {printable(reason)}\n")
