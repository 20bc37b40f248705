"""The inputs of a call, in every form, with the caller's description of an input."""

from __future__ import annotations

import os

from pylink.facts import inputkinds
from pylink.inputs import kinds
from pylink.options.model import Input as LinkInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from typing_extensions import Buffer

    from pylink.diagnostics import Sink

    Path: TypeAlias = str | os.PathLike[str]
    InputKind: TypeAlias = Literal["any", "cubin", "ptx", "ltoir", "fatbin", "object", "library"]
    InputLike: TypeAlias = "Path | Buffer | tuple[str, Buffer] | Input"

# The kinds that a caller can require, with the numbers of `inputkinds` that each stands for.
KINDS: dict[str, tuple[int, ...]] = {
    "any": (),
    "cubin": (inputkinds.CUBIN,),
    "ptx": (inputkinds.PTX,),
    "ltoir": (inputkinds.LTOIR,),
    "fatbin": (inputkinds.FATBIN,),
    "object": (inputkinds.HOST,),
    "library": (inputkinds.ARCHIVE, inputkinds.THIN_ARCHIVE),
}

# Number of bytes at the start of a file that show its kind. PTX may begin with long comments.
HEAD_SIZE = 1 << 16


class Input:
    """One input of a link: a file, or contents in memory.

    `source` is a path, or an object with the buffer protocol (bytes, bytearray, memoryview, mmap,
    a numpy array) whose bytes are copied unless they are `bytes`. `name` is the name in diagnostics
    (default: the path, or `<input N>` for contents). `kind` is the required kind: `any`, `cubin`,
    `ptx`, `ltoir`, `fatbin`, `object` (of the host) or `library` (an archive). The link refuses an
    input of another kind. `whole_archive` links every member of an archive.

    Raises TypeError for a source of another type and ValueError for an unknown kind.
    """

    __slots__ = ("data", "kind", "name", "path", "whole_archive")

    path: str | None
    """The file; None for contents in memory."""
    data: bytes | None
    """The contents; None for a file, which the link reads."""
    name: str | None
    """The name in diagnostics; None for `<input N>`."""
    kind: InputKind
    """The required kind."""
    whole_archive: bool
    """Whether all members of an archive are linked, needed or not."""

    def __init__(
        self,
        source: Path | Buffer,
        name: str | None = None,
        *,
        kind: InputKind = "any",
        whole_archive: bool = False,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"no kind of input: {kind!r}; kinds are {', '.join(KINDS)}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of an input is a str, not {name!r}")
        self.path = self.data = None
        if isinstance(source, (str, os.PathLike)):
            self.path = os.fsdecode(source)
            name = name or self.path
        elif isinstance(source, bytes):
            self.data = source
        else:
            # bytes(5) would be five zeros; memoryview(5) raises TypeError.
            self.data = bytes(memoryview(source))
        self.name = name
        self.kind = kind
        self.whole_archive = whole_archive

    def __repr__(self) -> str:
        name = "<data>" if self.name is None else self.name
        size = "" if self.data is None else f", {len(self.data)} bytes"
        return f"<Input {name}{size}>"


def as_input(source: InputLike, number: int) -> Input:
    """Convert an input of any form; TypeError, with the number, if it is not an input."""
    try:
        if isinstance(source, Input):
            return source
        if isinstance(source, tuple):
            name, data = source
            if isinstance(data, (str, os.PathLike)):
                raise TypeError("a pair has a name and contents, not a path")
            return Input(data, name)
        return Input(source)
    except (TypeError, ValueError) as error:
        raise TypeError(f"input {number}: {error}") from None


def name_of(source: Input, number: int, used_names: Mapping[str, int]) -> str:
    """Return the name of an input in diagnostics.

    `number` is that of the input in the call, `used_names` has the numbers of earlier inputs by
    name. If contents have the name of an earlier input, the number is appended to the name.
    """
    name = f"<input {number}>" if source.name is None else source.name
    return f"{name} (input {number})" if source.data is not None and name in used_names else name


def to_linker_input(source: Input, name: str, sink: Sink) -> LinkInput:
    """Convert an input for the linker; a file whose `name` is not its path is read here."""
    data, path = source.data, source.path
    if path is None or name == path:
        return LinkInput(name, data, whole_archive=source.whole_archive)
    if data is None:
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except (OSError, ValueError):
            sink.fatal("cannot-open-input", file=name)
    return LinkInput(name, data, path=path, whole_archive=source.whole_archive)


def needs_no_check(source: Input, *, must_exist: bool) -> bool:
    """Return whether `check_input` is not needed; with `must_exist` a file must exist for that."""
    if source.kind != "any":
        return False
    try:
        return not must_exist or source.path is None or os.stat(source.path) is not None
    except (OSError, ValueError):
        return False


def check_input(source: Input, name: str, sink: Sink) -> None:
    """Refuse a file that does not exist, and an input that is not of the required kind."""
    head = source.data
    if source.path is not None:
        try:
            os.stat(source.path)
            if source.kind != "any":
                with open(source.path, "rb") as stream:
                    head = stream.read(HEAD_SIZE)
        except (OSError, ValueError):
            sink.fatal("cannot-open-input", file=name)
    if source.kind != "any" and head is not None and kinds.kind_of(head) not in KINDS[source.kind]:
        sink.fatal(
            "input-kind", file=name, expected=source.kind, actual=_kind_name(kinds.kind_of(head))
        )


def _kind_name(kind: int) -> str:
    """Return the word of `KINDS` for a kind of input, or `unknown`."""
    return next((word for word, numbers in KINDS.items() if kind in numbers), "unknown")
