"""Names: scopes, template arguments, operators, things local to a function, and whole symbols."""

from __future__ import annotations

from pylink.demangle.cursor import NotMangled, Type
from pylink.demangle.expressions import OPERATORS, ExpressionParser

CHARS = "std::char_traits<char>"
STANDARD = {
    "t": "std",
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": f"std::basic_string<char, {CHARS}, std::allocator<char>>",
    "i": f"std::basic_istream<char, {CHARS}>",
    "o": f"std::basic_ostream<char, {CHARS}>",
    "d": f"std::basic_iostream<char, {CHARS}>",
}
STRUCTORS = {
    "C1": "",
    "C2": " [subobject]",
    "C3": " [allocating]",
    "D0": " [deleting]",
    "D1": "",
    "D2": " [subobject]",
}
SPECIAL = {
    "TV": "Virtual function table for ",
    "TT": "Virtual table table for ",
    "TI": "Typeinfo for ",
    "TS": "Typeinfo name for ",
    "TW": "Thread-local wrapper routine for ",
    "TH": "Thread-local initialization routine for ",
    "GV": "Initialization guard variable for ",
}


class Name:
    """A name as far as it is read: its text, and what its last part means for the rest.

    `last` is the last part without template arguments, which constructors repeat; `suffix` comes
    after the parameters, `qualifiers` before it. `known` says that the text as it stands may
    already be abbreviated.
    """

    __slots__ = ("known", "last", "plain", "qualifiers", "suffix", "template", "text")

    def __init__(self, text: str = "", last: str = "", *, known: bool = False) -> None:
        self.text = text
        self.last = last
        self.known = known
        self.template = False  # ends in template arguments
        self.plain = False  # a constructor or conversion, whose result is not written
        self.suffix = self.qualifiers = ""


class NameParser(ExpressionParser):
    """Reads what follows `_Z`."""

    def encoding(self, *, bare: bool = False) -> str:
        """A function with its parameters (not if `bare`), or a variable."""
        if self.peek() in ("T", "G"):
            return self._special()
        name = self.full_name()
        if self.peek() in ("", "E", "$"):
            return name.text + name.qualifiers + name.suffix
        result = None
        if name.template and not name.plain:
            result = self.type()
        parameters = self.parameters()
        if bare:
            return name.text
        text = f"{name.text}{parameters}{name.qualifiers}{name.suffix}"
        return text if result is None else f"{result} {text}"

    def _special(self) -> str:
        """Tables and thunks that the compiler makes."""
        code = self.peek(2)
        self.at += 2
        if code in ("TI", "TS", "TV", "TT"):
            return f"{SPECIAL[code]}{self.type()}"
        if code in SPECIAL:
            return f"{SPECIAL[code]}{self.full_name().text}"
        if code not in ("Th", "Tv", "Tc"):
            raise NotMangled
        self.at -= code != "Tc"
        offsets = [self._offset() for _ in range(2 if code == "Tc" else 1)]
        kind = "Covariant thunk" if code == "Tc" else "Thunk"
        return f"{kind} for {' '.join(offsets)} {self.encoding()}"

    def _offset(self) -> str:
        virtual = self.take("v")
        if not virtual:
            self.need("h")
        text = f"offset {self._signed()}"
        self.need("_")
        if virtual:
            text += f", virtual offset {self._signed()}"
            self.need("_")
        return f"({text})"

    def _signed(self) -> int:
        return -self.number() if self.take("n") else self.number()

    def class_type(self) -> Type:
        """A type that is a name."""
        start = len(self.known)
        code = self.peek()
        if code == "S" and self.peek(2) != "St":
            self.at += 1
            abbreviated = self._abbreviated()
            if self.peek() != "I":
                return abbreviated
            return self.remember(Type(str(abbreviated) + self.template_args(), spaced=False))
        name = self.full_name()
        if name.known and len(self.known) == start:
            return Type(name.text, spaced=False)
        return self.remember(Type(name.text))

    def _abbreviated(self) -> Type:
        """What follows an S: a part seen before or of the standard library."""
        code = self.peek()
        if code in STANDARD and code:
            self.at += 1
            return Type(STANDARD[code], spaced=False)
        return self.recall()

    def full_name(self) -> Name:
        """A name in any scope."""
        code = self.peek()
        if code == "N":
            self.at += 1
            return self._nested()
        if code == "Z":
            self.at += 1
            return self._local()
        name = Name()
        if self.take("St"):
            name = self._append(Name("std"))
        elif code == "S":
            self.at += 1
            abbreviated = str(self._abbreviated())
            name = Name(abbreviated, _last(abbreviated), known=True)
        else:
            name = self._append(Name())
        if self.peek() == "I":
            if not name.known:
                self.remember(Type(name.text, spaced=False))
            name = self._with_arguments(name)
        return name

    def _with_arguments(self, name: Name) -> Name:
        arguments = self.template_args()
        result = Name(name.text + arguments, name.last)
        result.template = True
        result.plain, result.suffix = name.plain, name.suffix
        return result

    def _append(self, scope: Name) -> Name:
        """One more unqualified name inside `scope`."""
        part = self.unqualified(scope.last)
        name = Name(f"{scope.text}::{part}" if scope.text and part else scope.text or part)
        name.last = part or scope.last
        name.plain, name.suffix = self._meaning
        return name

    def _nested(self) -> Name:
        qualifiers = self._qualifiers()
        if self.take("R"):
            qualifiers = f"{qualifiers} &".strip()
        elif self.take("O"):
            qualifiers = f"{qualifiers} &&".strip()
        name = self._first_part()
        while not self.take("E"):
            if not name.known:
                self.remember(Type(name.text, spaced=False))
            name = self._with_arguments(name) if self.peek() == "I" else self._append(name)
        name.qualifiers = f" {qualifiers}" if qualifiers else ""
        return name

    def _first_part(self) -> Name:
        """What a nested name begins with."""
        code = self.peek()
        if code == "S":
            self.at += 1
            abbreviated = str(self._abbreviated())
            return Name(abbreviated, _last(abbreviated), known=True)
        if self.peek(2) in ("Dt", "DT"):
            return Name(self.decltype())
        if code == "T":
            self.at += 1
            text = f"T{self.ordinal() + 1}"
            return Name(text, text)
        return self._append(Name())

    def _local(self) -> Name:
        """Something inside a function."""
        scope = self.encoding()
        self.need("E")
        if self.take("s"):
            name = Name(f"{scope}::string")
        else:
            if self.take("d"):
                scope += f"::[default argument {self.ordinal() + 1} (from end)]"
            inner = self.full_name()
            name = inner
            name.text = f"{scope}::{inner.text}"
        if self.take("__"):
            name.text += f" (instance {self.number() + 2})"
            self.need("_")
        elif self.peek() == "_" and self.peek(2)[1:].isdecimal():
            self.at += 2
            name.text += f" (instance {int(self.name[self.at - 1]) + 2})"
        return name

    # What the last call of `unqualified` found: a name without a result, its suffix.
    _meaning = (False, "")

    def unqualified(self, scope: str) -> str:
        """One name; constructors take that of `scope`."""
        self._meaning = (False, "")
        code = self.peek(2)
        if code[:1].isdecimal():
            text = self._source()
            if text.startswith("_GLOBAL__N_"):
                text = "<unnamed>"
            elif text.startswith("_INTERNAL"):
                text = ""
        elif code in STRUCTORS and scope:
            self.at += 2
            self._meaning = (True, STRUCTORS[code])
            text = f"~{scope}" if code[0] == "D" else scope
        elif code == "Ut":
            self.at += 2
            text = f"[unnamed type (instance {self.ordinal() + 1})]"
        elif code == "Ul":
            self.at += 2
            parameters = self.parameters()
            self.need("E")
            text = f"[lambda{parameters} (instance {self.ordinal() + 1})]"
        else:
            text = self._operator(code)
        tags = []
        while self.take("B"):
            tags.append(self._source())
        return f"{text}[abi:{','.join(tags)}]" if tags else text

    def _operator(self, code: str) -> str:
        self.at += 2
        if code == "cv":
            # Template arguments after the type are those of the operator.
            self.bare_parameters = True
            text = f"operator {self.type()}"
            self.bare_parameters = False
            self._meaning = (True, "")
            return text
        if code == "li":
            return f'operator ""{self._source()}'
        if code not in OPERATORS:
            raise NotMangled
        return f"operator {OPERATORS[code]}"

    def template_args(self) -> str:
        """Arguments in angle brackets; a pack is written as its members."""
        self.need("I")
        arguments = []
        while not self.take("E"):
            arguments.append(self._argument())
        return f"<{', '.join(arguments)}>"

    def _argument(self) -> str:
        code = self.peek()
        if code == "L":
            return self.literal()
        if self.take("X"):
            text = self.expression()
            self.need("E")
            return text
        if self.take("J"):
            arguments = []
            while not self.take("E"):
                arguments.append(self._argument())
            return ", ".join(arguments)
        return str(self.type())


def _last(name: str) -> str:
    """The last part of a name, without its template arguments."""
    depth = 0
    end = len(name)
    for i in range(len(name) - 1, -1, -1):
        if name[i] == ">":
            depth += 1
        elif name[i] == "<":
            depth -= 1
            end = i
        elif depth == 0 and name[i] == ":":
            return name[i + 1 : end]
    return name[:end]
