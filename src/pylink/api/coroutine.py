"""A link that a coroutine waits for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from pylink.api.following import ONE_FRAME
from pylink.api.linker import link
from pylink.api.values import check_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from typing_extensions import Unpack

    from pylink.api.following import Cancel, ProgressCall
    from pylink.api.inputs import InputLike, Path
    from pylink.api.keywords import LinkKeywords
    from pylink.api.options import LinkOptions
    from pylink.api.result import LinkResult


class EitherCancel:
    """A `Cancel` that is set if the task was cancelled, or if the caller's `Cancel` is set."""

    def __init__(self, task: Cancel, caller: Cancel | None) -> None:
        self._task = task
        self._caller = caller

    def is_set(self) -> bool:
        return self._task.is_set() or (self._caller is not None and self._caller.is_set())


async def alink(
    inputs: Iterable[InputLike],
    options: LinkOptions | None = None,
    *,
    arch: str,
    output: Path | None = None,
    log: TextIO | None = None,
    progress: ProgressCall | bool | None = None,
    cancel: Cancel | None = None,
    **keywords: Unpack[LinkKeywords],
) -> LinkResult:
    """Link in a thread; the arguments are those of `link`.

    If the task is cancelled, the link ends after its current phase. It writes no file, unless that
    was the last phase, which writes the output. `progress` is called in the thread.

    Raises the exceptions of `link`, and asyncio.CancelledError.
    """
    check_list(inputs)
    task_cancelled = threading.Event()
    task = asyncio.ensure_future(
        asyncio.to_thread(
            link,
            list(inputs),
            options,
            arch=arch,
            output=output,
            log=log,
            progress=progress,
            cancel=EitherCancel(task_cancelled, cancel),
            **keywords,
        )
    )
    try:
        with ONE_FRAME:
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        task_cancelled.set()
        while not task.done():  # the caller's task may be cancelled again meanwhile
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved
        raise
