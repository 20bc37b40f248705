"""Sizes of input files, before they are read, and the contents of pipes."""

from __future__ import annotations

import os
import stat
import sys

from pylink._native import inputfiles
from pylink.diagnostics.errors import reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.diagnostics import Sink
    from pylink.options.model import Input
    from pylink.options.plan import OutputPlan

UNKNOWN = 7  # as in pylink.facts.inputkinds, which a link of plain cubins does not load

# Files up to this size (bytes) are read without a look at their head.
HEADLESS_SIZE = 1 << 26


def encode_paths(inputs: Sequence[Input]) -> list[bytes | None]:
    """Return the path of each input; None for contents in memory and for an impossible path."""
    # `os.fsencode` would ask for both once per path.
    encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    paths: list[bytes | None] = []
    for source in inputs:
        try:
            paths.append(None if source.data is not None else source.name.encode(encoding, errors))
        except ValueError:
            paths.append(None)
    return paths


def measure_inputs(
    inputs: Sequence[Input],
    plan: OutputPlan,
    look: Callable[[Input], tuple[bytes | None, int]],
) -> tuple[list[bytes | None], list[int], list[bytes | None]]:
    """Return the paths, sizes and contents of inputs, as `inputfiles.read_files` takes them.

    `look` returns contents and size of an input that `inputfiles.measure` leaves to Python. An
    input with contents has no path.
    """
    paths = encode_paths(inputs)
    data: list[bytes | None] = [None] * len(paths)
    # Look again: outputs such as the table of -time may have been created after the plan was made.
    written = plan.existing_outputs(again=True)
    sizes = inputfiles.measure(paths, HEADLESS_SIZE, list(written))
    for number in [number for number, size in enumerate(sizes) if size < 0]:
        data[number], sizes[number] = look(inputs[number])
        if data[number] is not None:
            paths[number] = None
    return paths, sizes, data


def measure_input(source: Input, plan: OutputPlan, sink: Sink) -> tuple[bytes | None, int]:
    """Return the contents of an input, and its size in bytes.

    The contents are None for a file that will be read later. If a pipe or a large file is of no
    known kind, they are its head.
    """
    if source.data is not None:
        if source.path is not None:
            plan.check_input(source.path, sink)
        return source.data, len(source.data)
    try:
        status = os.stat(source.name)
        plan.check_input(source.name, sink, status)
        if stat.S_ISREG(status.st_mode) and status.st_size <= HEADLESS_SIZE:
            return None, status.st_size
        return _measure_doubtful(source.name, sink)
    except (OSError, ValueError) as error:
        from pylink.diagnostics.record import note

        hint = note("file-reason", reason=reason_of(error))
        sink.fatal("cannot-open-input", file=source.name, hints=[hint])


def _measure_doubtful(name: str, sink: Sink) -> tuple[bytes | None, int]:
    """Return contents and size of a pipe or large file, of which the head tells the kind.

    If the kind is unknown, the head is returned: a pipe may never end, and a sparse file may be
    larger than memory. Otherwise a pipe is read, and the contents of a file are None.
    """
    from pylink.files.reading import HEAD_SIZE, MAX_SIZE, Incoming, RefusedError, too_large

    try:
        with Incoming(name) as stream:
            head = stream.read(HEAD_SIZE)
            if _is_unknown(head):
                return head, len(head)
            if stream.size > MAX_SIZE:
                raise too_large(MAX_SIZE)
            if stream.size:
                return None, stream.size
            data = head + stream.read(MAX_SIZE + 1 - len(head))
            if len(data) > MAX_SIZE:
                raise too_large(MAX_SIZE)
            return data, len(data)
    except RefusedError as error:
        sink.fatal("cannot-read-file", file=name, reason=reason_of(error))


def _is_unknown(head: bytes) -> bool:
    """Return whether a file with this head is of no known kind; PTX may start with a comment."""
    if head.lstrip().startswith(b"/"):
        return False
    kinds = inputfiles.classify(head, bytes(8) + len(head).to_bytes(8, "little"))
    return bool(kinds) and kinds[0] == UNKNOWN
