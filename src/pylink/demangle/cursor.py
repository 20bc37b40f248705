"""The position in a mangled name, and the methods that all parts of the parser share."""

from __future__ import annotations

from abc import ABC, abstractmethod

# Digits of numbers in base 36.
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# Most digits of a decimal number in a name: the size of an array can have 20. A name with more is
# not demangled.
MAX_DIGITS = 20

# Most characters of the texts of all parts of a name, with abbreviations expanded. A name with more
# is not demangled: a part may contain the part in front of it twice, so 300 characters could expand
# to more than memory holds.
MAX_TEXT = 1 << 24


class NotMangled(Exception):
    """A name breaks the rules, uses a rule that nvlink does not know, or has too long a text."""


class Type:
    """A type as the texts left and right of a declarator's `*`, `&` or name.

    `kind` is `base`, `pointer` (any type that ends in a declarator), `array` or `function`. If
    `spaced` is true, a blank separates a base type from its declarator, as in `int *`. It is false
    for an abbreviated name, for example.
    """

    __slots__ = ("kind", "left", "right", "spaced")

    def __init__(self, left_text: str, right: str = "", kind: str = "base", *, spaced: bool = True):
        self.left = left_text
        self.right = right
        self.kind = kind
        self.spaced = spaced

    def __str__(self) -> str:
        return self.left + self.right

    @property
    def before(self) -> str:
        """The left text, with the blank that a declarator needs."""
        return f"{self.left} " if self.kind == "base" and self.spaced else self.left


class Cursor(ABC):
    """The mangled name, the position in it, and the parts that later parts can abbreviate."""

    def __init__(self, name: str, position: int) -> None:
        self.name = name
        self.position = position
        self.parts: list[Type] = []
        self._text_size = 0  # characters of all parts that were remembered or recalled so far
        self.bare_parameters = False  # a template parameter takes no arguments here

    def peek(self, count: int = 1) -> str:
        """Return the next characters, which are not skipped; fewer at the end."""
        return self.name[self.position : self.position + count]

    def consume(self, text: str) -> bool:
        """Skip `text` if it is next; return whether it was."""
        if self.name.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def require(self, text: str) -> None:
        """Skip `text`; NotMangled if it is not next."""
        if not self.consume(text):
            raise NotMangled

    def next(self) -> str:
        """Skip the next character and return it; NotMangled at the end."""
        if self.position >= len(self.name):
            raise NotMangled
        self.position += 1
        return self.name[self.position - 1]

    def number(self) -> int:
        """Read a decimal number; NotMangled without digits, or with more than MAX_DIGITS."""
        start = self.position
        while self.peek().isdecimal():
            self.position += 1
        if not 0 < self.position - start <= MAX_DIGITS:
            raise NotMangled
        return int(self.name[start : self.position])

    def ordinal(self) -> int:
        """Read an ordinal: `_` is 0, `0_` is 1, `1_` is 2."""
        if self.consume("_"):
            return 0
        value = self.number() + 1
        self.require("_")
        return value

    def remember(self, part: Type) -> Type:
        """Add a part that later parts can abbreviate, and return it."""
        self.parts.append(self._check_length(part))
        return part

    def recall(self) -> Type:
        """Read an abbreviation after its `S`, and return the part that it stands for.

        `_` is the first of `parts`, `0_` the second; the number is in base 36.
        """
        index = 0
        if not self.consume("_"):
            while not self.consume("_"):
                index = index * len(DIGITS) + DIGITS.index(self._digit())
                if index >= len(self.parts):
                    raise NotMangled
            index += 1
        if index >= len(self.parts):
            raise NotMangled
        return self._check_length(self.parts[index])

    def _check_length(self, part: Type) -> Type:
        """Count the text of a part, and return the part; NotMangled if all exceed MAX_TEXT."""
        self._text_size += len(part.left) + len(part.right)
        if self._text_size > MAX_TEXT:
            raise NotMangled
        return part

    def _digit(self) -> str:
        """Read a digit in base 36."""
        digit = self.next()
        if digit not in DIGITS:
            raise NotMangled
        return digit

    # The classes for types, expressions and names implement these methods.

    @abstractmethod
    def type(self) -> Type:
        """Read a type."""

    @abstractmethod
    def expression(self) -> str:
        """Read an expression and return its text."""

    @abstractmethod
    def encoding(self, *, bare: bool = False) -> str:
        """Read a function or a variable, and return its text; with `bare`, a function's name."""

    @abstractmethod
    def class_type(self) -> Type:
        """Read a type that is a name."""

    @abstractmethod
    def unqualified(self, scope: str) -> str:
        """Read a name without its scope and return it; a constructor has the name of `scope`."""

    @abstractmethod
    def template_args(self) -> str:
        """Read template arguments and return their text, such as `<int, T1>`."""
