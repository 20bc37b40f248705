"""A place in a mangled name, and what every part of the parser shares."""

from __future__ import annotations

from abc import ABC, abstractmethod

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# No number of a name has more: the greatest size of an array has 20.
MOST_DIGITS = 20

# Characters that the parts of one name may have which others abbreviate, and those others. A part
# may abbreviate the one before it twice: 300 characters could stand for more than memory holds.
MOST_TEXT = 1 << 24


class NotMangled(Exception):
    """The name does not follow the rules, or uses one that nvlink does not know."""


class Type:
    """A type in two halves, between which a declarator's `*`, `&` or name goes.

    `kind` is `base`, `pointer` (all that ends in a declarator), `array` or `function`. `spaced`
    says whether a blank separates a base from its declarator: not so after an abbreviated name.
    """

    __slots__ = ("kind", "left", "right", "spaced")

    def __init__(self, left_part: str, right: str = "", kind: str = "base", *, spaced: bool = True):
        self.left = left_part
        self.right = right
        self.kind = kind
        self.spaced = spaced

    def __str__(self) -> str:
        return self.left + self.right

    @property
    def before(self) -> str:
        """The left half, ready for a declarator."""
        return f"{self.left} " if self.kind == "base" and self.spaced else self.left


class Cursor(ABC):
    """The name, how far it is read, and the parts that later parts may abbreviate."""

    def __init__(self, name: str, at: int) -> None:
        self.name = name
        self.at = at
        self.known: list[Type] = []
        self._text = 0
        self.bare_parameters = False  # a template parameter takes no arguments here

    def peek(self, count: int = 1) -> str:
        return self.name[self.at : self.at + count]

    def take(self, text: str) -> bool:
        """Step over `text` if it is next."""
        if self.name.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            raise NotMangled

    def next(self) -> str:
        """The next character, which is stepped over."""
        if self.at >= len(self.name):
            raise NotMangled
        self.at += 1
        return self.name[self.at - 1]

    def number(self) -> int:
        """A decimal number, which must be there."""
        start = self.at
        while self.peek().isdecimal():
            self.at += 1
        if not 0 < self.at - start <= MOST_DIGITS:
            raise NotMangled
        return int(self.name[start : self.at])

    def ordinal(self) -> int:
        """`_` is 0, `0_` is 1, `1_` is 2."""
        if self.take("_"):
            return 0
        value = self.number() + 1
        self.need("_")
        return value

    def remember(self, part: Type) -> Type:
        self.known.append(self._counted(part))
        return part

    def recall(self) -> Type:
        """The part that what follows `S` abbreviates: `_`, `0_` and so on, in base 36."""
        place = 0
        if not self.take("_"):
            while not self.take("_"):
                place = place * 36 + DIGITS.index(self._digit())
                if place >= len(self.known):
                    raise NotMangled
            place += 1
        if place >= len(self.known):
            raise NotMangled
        return self._counted(self.known[place])

    def _counted(self, part: Type) -> Type:
        """The part, unless all of them together have become too long."""
        self._text += len(part.left) + len(part.right)
        if self._text > MOST_TEXT:
            raise NotMangled
        return part

    def _digit(self) -> str:
        digit = self.next()
        if digit not in DIGITS:
            raise NotMangled
        return digit

    # What the classes of the parser that know types, expressions and names supply.

    @abstractmethod
    def type(self) -> Type: ...

    @abstractmethod
    def expression(self) -> str: ...

    @abstractmethod
    def encoding(self, *, bare: bool = False) -> str: ...

    @abstractmethod
    def class_type(self) -> Type: ...

    @abstractmethod
    def unqualified(self, scope: str) -> str: ...

    @abstractmethod
    def template_args(self) -> str: ...
