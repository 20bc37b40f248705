"""A link that a coroutine waits for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from pylink.api.following import ONE_FRAME
from pylink.api.linker import link

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


class Either:
    """Says that a link is no longer wanted when the task or the caller does."""

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
    """Link as `link` does, in a thread; the arguments are those of `link`.

    A task that is cancelled ends when the phase that runs has ended, without a file written unless
    that was the last one, which writes it.
    `progress` is called in the thread.

    Raises what `link` does, and asyncio.CancelledError.
    """
    unwanted = threading.Event()
    task = asyncio.ensure_future(
        asyncio.to_thread(
            link,
            list(inputs) if not isinstance(inputs, (str, bytes)) else inputs,
            options,
            arch=arch,
            output=output,
            log=log,
            progress=progress,
            cancel=Either(unwanted, cancel),
            **keywords,
        )
    )
    try:
        with ONE_FRAME:
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        unwanted.set()
        while not task.done():  # a task may be cancelled again while it waits for its thread
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody else asks for it
        raise
