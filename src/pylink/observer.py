"""What observes a link and writes about it: remarks, profiles, maps.

An observer gets the result of each phase when the phase has ended. It reads finished tables and
changes nothing, so the output does not depend on it. Observers that measure also hear of
the steps in a phase as they end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.profile.model import Profile


class Observer:
    """Base of observers of a link; the methods do nothing.

    `timed` says that kernels are to keep the times of their items, `profile` is what the link cost
    once it has ended. `of_image` says that it reads the linked file, `of_cubins` that there is
    nothing to tell where no cubins were linked, because link-time optimization made the whole
    program.
    """

    __slots__ = ()

    timed = False
    of_image = False
    of_cubins = False
    profile: Profile | None = None

    @property
    def records_folds(self) -> bool:
        return False

    def resume(self) -> None:
        """All observers know of the phase that ended; what comes now is part of the next one."""

    def step(self, name: str, detail: object) -> None:
        """The step `name` of the running phase ended; it began where the one before it ended."""

    def after(self, tag: str, result: object) -> None:
        """The phase `tag` ended with `result`, such as `Merged` for merge."""

    def close(self, *, failed: bool) -> None:
        """The link ended, `failed` when it made no output. Comes once, also after errors."""


class Steps:
    """What phases tell of their steps, for observers; most links have nobody.

    `between` is called with the tag of each phase that ended, and ends the link by raising. Unlike
    an observer it sees no table, so the link takes the same path with it.
    """

    __slots__ = ("between", "observers", "timed")

    def __init__(
        self, observers: Sequence[Observer] = (), between: Callable[[str], None] | None = None
    ) -> None:
        self.observers = observers
        self.between = between
        self.timed = any(observer.timed for observer in observers)

    def done(self, name: str, detail: object = None) -> None:
        """The step `name` has ended; `detail` is what the result of the phase does not show."""
        for observer in self.observers:
            observer.step(name, detail)

    def times(self, items: int) -> bytearray | None:
        """Room for the TimeRow of each item of a kernel, where times are asked for."""
        return bytearray(32 * items) if self.timed else None

    @property
    def records_folds(self) -> bool:
        return any(observer.records_folds for observer in self.observers)

    def end(self) -> None:
        """Let go of the observers: they hold what the link made, and its job holds this."""
        self.observers = ()
