"""Reads remarks from YAML: accepts the documents that LLVM's remark parser accepts.

Strings are unquoted by the rules of YAML, unlike in LLVM's parser.
"""

from __future__ import annotations

from typing import Any

from pylink.packages.extras import need
from pylink.remarks.record import KINDS, MalformedRemarks, Remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink._native.remarkstream import Arg

_LOCATION = "DebugLoc"

# Greatest line, column and hotness, and the number of decimal digits of that.
_MAX_NUMBER = 0xFFFFFFFF
_MAX_DIGITS = 10

# Levels of nesting: the remark, its list Args, an argument, and the location in that argument.
_MAX_DEPTH = 4


class _Fault(Exception):
    """An error with its line number, counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


class _Value:
    """A value of a document: a string, a mapping or a list, with the number of its first line.

    One of `text`, `entries` and `items` is set, or none for an empty value.
    """

    __slots__ = ("entries", "items", "line", "text")

    def __init__(self, line: int) -> None:
        self.line = line
        self.text: str | None = None
        self.entries: list[tuple[_Value, _Value]] | None = None
        self.items: list[_Value] | None = None

    def string(self) -> str:
        """Return the text of a scalar; `_Fault` if the value is something else."""
        if self.text is None:
            raise _Fault(self.line, "expected a value of scalar type")
        return self.text

    def number(self) -> int:
        """Return the number that a scalar has.

        `_Fault` if the value is something else or too large.
        """
        text = self.string()
        digits = text.lstrip("0") or "0"
        if (
            text.isascii()
            and text.isdigit()
            and len(digits) <= _MAX_DIGITS
            and int(digits) <= _MAX_NUMBER
        ):
            return int(digits)
        raise _Fault(self.line, "expected a value of integer type")

    def mapping(self) -> Iterator[tuple[str, _Value]]:
        """Yield the entries of a mapping; `_Fault` if the value is something else."""
        if self.entries is None:
            raise _Fault(self.line, "expected a value of mapping type")
        for key, value in self.entries:
            if key.text is None:
                raise _Fault(key.line, "key is not a string")
            yield key.text, value


def read_yaml(data: bytes, name: str) -> Iterator[Remark]:
    """Yield the remarks of a file, whose contents are `data`, in order.

    Raises MalformedRemarks for invalid contents; its text begins with `name`. MissingPackage is
    raised without PyYAML.
    """
    yaml = need("yaml", "reading YAML")
    events = _Events(yaml, data)
    try:
        if not events.next_document():
            raise _Fault(1, "there are no remarks")
        yield events.read_remark()
        while events.next_document():
            yield events.read_remark()
    except _Fault as fault:
        raise MalformedRemarks(f"{name}: {fault}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise MalformedRemarks(f"{name}: line {line}: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise MalformedRemarks(f"{name}: byte {error.position:#x}: {error.reason}") from None


class _Events:
    """Builds remarks from the parser's events, so that no objects of other types are ever built.

    `yaml` is PyYAML's module.
    """

    def __init__(self, yaml: Any, data: bytes) -> None:
        self._yaml = yaml
        self._events = yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    def next_document(self) -> bool:
        """Go to the start of the next document; False after the last."""
        return any(isinstance(event, self._yaml.DocumentStartEvent) for event in self._events)

    def read_remark(self) -> Remark:
        """Read the remark of the document whose start event was read last."""
        event = next(self._events)
        line = event.start_mark.line + 1
        if not isinstance(event, self._yaml.MappingStartEvent):
            raise _Fault(line, "document root is not of mapping type")
        tag = event.tag or ""
        kind = KINDS.get(tag[1:]) if tag.startswith("!") else None
        if kind is None:
            raise _Fault(line, "expected a remark tag")
        return _build_remark(kind, self._read_value(event, 1))

    def _read_value(self, event: Any, depth: int) -> _Value:
        """Read the value that starts with `event`, nested `depth` levels deep."""
        value = _Value(event.start_mark.line + 1)
        if isinstance(event, self._yaml.ScalarEvent):
            if event.value or event.style:  # an empty plain scalar is null, not a string
                value.text = event.value
            return value
        if isinstance(event, self._yaml.AliasEvent):
            raise _Fault(value.line, "an alias is not a value of a remark")
        if depth > _MAX_DEPTH:
            raise _Fault(value.line, "values are nested too deeply")
        parts = []
        while not isinstance(event := next(self._events), self._yaml.CollectionEndEvent):
            parts.append(self._read_value(event, depth + 1))
        if isinstance(event, self._yaml.MappingEndEvent):
            value.entries = list(zip(parts[::2], parts[1::2], strict=True))
        else:
            value.items = parts
        return value


def _build_remark(kind: int, document: _Value) -> Remark:
    """Return the remark that a document describes; `_Fault` if an entry is unknown or missing."""
    strings = {"Pass": "", "Name": "", "Function": ""}
    place: tuple[str | None, int, int] = (None, 0, 0)
    hotness = None
    args: list[Arg] = []
    for key, value in document.mapping():
        if key in strings:
            strings[key] = value.string()
        elif key == _LOCATION:
            place = _location(value)
        elif key == "Hotness":
            hotness = value.number()
        elif key == "Args" and value.items is not None:
            args = [_argument(item) for item in value.items]
        else:
            wrong = "wrong value type for key" if key == "Args" else "unknown key"
            raise _Fault(value.line, f"{wrong} {key!r}")
    if not all(strings.values()):
        raise _Fault(document.line, "Pass, Name or Function missing")
    file, line, column = place
    return Remark(
        kind,
        strings["Pass"],
        strings["Name"],
        strings["Function"],
        file=file,
        line=line,
        column=column,
        hotness=hotness,
        args=args,
    )


def _location(value: _Value) -> tuple[str, int, int]:
    """Return the file, line and column of a location; `_Fault` unless it has just these."""
    parts = dict(value.mapping())
    unknown = parts.keys() - {"File", "Line", "Column"}
    if unknown:
        raise _Fault(value.line, f"unknown entry in {_LOCATION} map: {min(unknown)!r}")
    if len(parts) != 3:
        raise _Fault(value.line, f"{_LOCATION} node incomplete")
    return parts["File"].string(), parts["Line"].number(), parts["Column"].number()


def _argument(value: _Value) -> Arg:
    """Return the key, text, file, line and column of one argument.

    The file is None without a location. `_Fault` unless it has one key, and at most one location.
    """
    pair: tuple[str, str] | None = None
    place: tuple[str | None, int, int] | None = None
    for key, part in value.mapping():
        if key == _LOCATION:
            if place is not None:
                raise _Fault(part.line, f"only one {_LOCATION} entry is allowed per argument")
            place = _location(part)
        elif pair is not None:
            raise _Fault(part.line, "only one string entry is allowed per argument")
        else:
            pair = key, part.string()
    if pair is None:
        raise _Fault(value.line, "argument key is missing")
    return (*pair, *(place or (None, 0, 0)))
