"""What a call links: inputs of every form, and what the caller knows about one."""

from __future__ import annotations

import os

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

# The kinds a caller may expect, with the numbers of what contents are; "any" expects nothing.
KINDS: dict[str, tuple[int, ...]] = {
    "any": (),
    "cubin": (kinds.CUBIN,),
    "ptx": (kinds.PTX,),
    "ltoir": (kinds.LTOIR,),
    "fatbin": (kinds.FATBIN,),
    "object": (kinds.HOST,),
    "library": (kinds.ARCHIVE, kinds.THIN_ARCHIVE),
}

# A file's first bytes, by which its kind is known. PTX may begin with comments of any length.
HEAD_SIZE = 1 << 16


class Input:
    """One input of a link: a file, or contents in memory.

    `source` is a path, or an object with the buffer protocol (bytes, bytearray, memoryview, mmap,
    a numpy array) whose bytes are copied unless they are `bytes`. `name` is what diagnostics call
    the input; a path is its own name, and contents without one are `<input N>`. `kind` is what the
    input must be, one of `any`, `cubin`, `ptx`, `ltoir`, `fatbin`, `object` (of the host) and
    `library` (an archive); the link refuses another. `whole_archive` links every member of an
    archive.

    Raises TypeError for a source of another type and ValueError for an unknown kind.
    """

    __slots__ = ("data", "kind", "name", "path", "whole_archive")

    path: str | None
    """The file, None for contents in memory."""
    data: bytes | None
    """The contents, None for a file, which the link reads."""
    name: str | None
    """What diagnostics call it, None for what is numbered."""
    kind: InputKind
    """What it must be."""
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
            # bytes() of a number would be that many zeros.
            self.data = bytes(memoryview(source))
        self.name = name
        self.kind = kind
        self.whole_archive = whole_archive

    def __repr__(self) -> str:
        name = "<data>" if self.name is None else self.name
        size = "" if self.data is None else f", {len(self.data)} bytes"
        return f"<Input {name}{size}>"


def as_input(source: InputLike, number: int) -> Input:
    """An input of any form; TypeError, which names the input by its number, for what is none."""
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
    """What diagnostics call an input; contents whose name is `taken` get one that is not."""
    name = f"<input {number}>" if source.name is None else source.name
    return f"{name} (input {number})" if source.data is not None and name in used_names else name


def to_link(source: Input, name: str, sink: Sink) -> LinkInput:
    """What the linker knows of an input, which knows files by their paths alone."""
    if source.data is not None or name == source.path:
        return LinkInput(name, source.data, whole=source.whole_archive)
    assert source.path is not None
    try:
        with open(source.path, "rb") as stream:
            return LinkInput(name, stream.read(), whole=source.whole_archive)
    except (OSError, ValueError):
        sink.fatal("cannot-open-input", file=name)


def is_plain(source: Input, *, looks: bool) -> bool:
    """Whether there is nothing to check or to say of an input: most are added without a sink.

    With `looks` a file must be there.
    """
    if source.kind != "any":
        return False
    try:
        return not looks or source.path is None or os.stat(source.path) is not None
    except (OSError, ValueError):
        return False


def check_input(source: Input, name: str, sink: Sink) -> None:
    """Refuse a file that is not there, and what is not of the kind that the caller says."""
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
        sink.fatal("input-kind", file=name, wanted=source.kind, found=_word(kinds.kind_of(head)))


def _word(kind: int) -> str:
    return next((word for word, numbers in KINDS.items() if kind in numbers), "unknown")
