"""The process of the command line: what signals do to it, and how it ends.

Loaded before anything else of the program, so that an interrupt finds little to interrupt.
"""

from __future__ import annotations

# `signal`, the module that wraps this one, loads more than half of what a link loads.
import _signal  # type: ignore[import-not-found] # not in typeshed
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


# Environment variables that the launcher sets: the name that it was started under, and whether it
# blocks interrupts.
STARTED_AS = "PYLINK_STARTED_AS"
INTERRUPTS_HELD = "PYLINK_INTERRUPTS_HELD"


def run(*, bundled: bool = False, has_same_times: bool = False) -> NoReturn:
    """Run the command line and end the process, which was started from a bundle if `bundled`.

    `has_same_times` says that the bundle has the times of the sources. A bundle with other times is
    as good, but slower to check, so a better one is made for the next link.

    Taking the interpreter apart at its end takes an eighth of a small link's instructions and
    changes nothing that lasts. Code that must run at the end has loaded `atexit`.
    """
    _end_on_interrupt()
    # The import follows the setting of signals: an interrupt during it ends the process, too.
    from pylink.command.cli import main

    name = os.environ.pop(STARTED_AS, None)
    if name is not None:
        sys.argv[0] = name
    status = main(owns_process=True)
    if name is not None and not has_same_times and "pylink.linker" in sys.modules:
        package = os.path.dirname(os.path.dirname(__file__))
        if not bundled or (
            os.access(package, os.W_OK) and not os.environ.get("PYTHONDONTWRITEBYTECODE")
        ):
            from pylink.startup.bundle import make_for_next

            make_for_next(shipped=bundled)
    if "atexit" not in sys.modules:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            sys.exit(status)  # as the interpreter ends if a stream cannot be written
        os._exit(status)
    sys.exit(status)


def _end_on_interrupt() -> None:
    """Let an interrupt end the process at any moment and without a message, as it ends nvlink.

    Unfinished files have no name, so nothing needs cleaning up. Interrupts that are ignored, as in
    the background of a shell, or handled by other code, stay as they are.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if os.environ.pop(INTERRUPTS_HELD, None) is not None:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGINT,))
