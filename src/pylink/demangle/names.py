"""Reads names: scopes, template arguments, operators, local entities, and whole symbols."""

from __future__ import annotations

from pylink.demangle.cursor import NotMangled, Type
from pylink.demangle.expressions import OPERATORS, ExpressionParser

CHAR_TRAITS = "std::char_traits<char>"
# Abbreviations of namespace std and of names in it, by the letter after S.
STANDARD = {
    "t": "std",
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": f"std::basic_string<char, {CHAR_TRAITS}, std::allocator<char>>",
    "i": f"std::basic_istream<char, {CHAR_TRAITS}>",
    "o": f"std::basic_ostream<char, {CHAR_TRAITS}>",
    "d": f"std::basic_iostream<char, {CHAR_TRAITS}>",
}
# Texts after the parameters of constructors (C) and destructors (D), by their codes.
STRUCTORS = {
    "C1": "",
    "C2": " [subobject]",
    "C3": " [allocating]",
    "D0": " [deleting]",
    "D1": "",
    "D2": " [subobject]",
}
# Texts in front of the names of tables, functions and guards that the compiler generates, by code.
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
    """The text of a name as far as it was read, and properties of its last part.

    `last` is the last part without template arguments: the name of a constructor in this scope.
    `qualifiers` (such as ` const`) and `suffix` (such as ` [deleting]`) are written after the
    parameters. `is_remembered` says that the text is already among the parts that can be
    abbreviated.
    """

    __slots__ = (
        "has_no_result", "is_remembered", "is_template", "last", "qualifiers", "suffix", "text",
    )  # fmt: skip

    def __init__(self, text: str = "", last: str = "", *, is_remembered: bool = False) -> None:
        self.text = text
        self.last = last
        self.is_remembered = is_remembered
        self.is_template = False  # it ends in template arguments
        # A constructor, destructor or conversion, for which no result type is written.
        self.has_no_result = False
        self.suffix = self.qualifiers = ""


class NameParser(ExpressionParser):
    """Reads what follows `_Z`."""

    def encoding(self, *, bare: bool = False) -> str:
        """Read a function with its parameters, or a variable.

        With `bare`, the text of a function is only its name, without result type and parameters.
        """
        if self.peek() in ("T", "G"):
            return self._special()
        name = self.full_name()
        if self.peek() in ("", "E", "$"):
            return name.text + name.qualifiers + name.suffix
        result = None
        if name.is_template and not name.has_no_result:
            result = self.type()
        parameters = self.parameters()
        if bare:
            return name.text
        text = f"{name.text}{parameters}{name.qualifiers}{name.suffix}"
        return text if result is None else f"{result} {text}"

    def _special(self) -> str:
        """Read the name of what the compiler generates: a table, a thunk, a wrapper or a guard."""
        code = self.peek(2)
        self.position += 2
        if code in ("TI", "TS", "TV", "TT"):
            return f"{SPECIAL[code]}{self.type()}"
        if code in SPECIAL:
            return f"{SPECIAL[code]}{self.full_name().text}"
        if code not in ("Th", "Tv", "Tc"):
            raise NotMangled
        self.position -= code != "Tc"  # the second letter of Th and Tv begins the offset
        offsets = [self._offset() for _ in range(2 if code == "Tc" else 1)]
        kind = "Covariant thunk" if code == "Tc" else "Thunk"
        return f"{kind} for {' '.join(offsets)} {self.encoding()}"

    def _offset(self) -> str:
        """Read the offset of a thunk: `h` NUMBER `_`, or `v` NUMBER `_` NUMBER `_`."""
        is_virtual = self.consume("v")
        if not is_virtual:
            self.require("h")
        text = f"offset {self._signed_number()}"
        self.require("_")
        if is_virtual:
            text += f", virtual offset {self._signed_number()}"
            self.require("_")
        return f"({text})"

    def _signed_number(self) -> int:
        """Read a decimal number; `n` in front of it is a minus."""
        return -self.number() if self.consume("n") else self.number()

    def class_type(self) -> Type:
        """Read a type that is a name."""
        part_count = len(self.parts)
        code = self.peek()
        if code == "S" and self.peek(2) != "St":
            self.position += 1
            abbreviated = self._abbreviation()
            if self.peek() != "I":
                return abbreviated
            return self.remember(Type(str(abbreviated) + self.template_args(), spaced=False))
        name = self.full_name()
        # A name that only abbreviates an earlier part is not remembered again.
        if name.is_remembered and len(self.parts) == part_count:
            return Type(name.text, spaced=False)
        return self.remember(Type(name.text))

    def _abbreviation(self) -> Type:
        """Read the rest of an abbreviation after S: an earlier part, or a name of STANDARD."""
        code = self.peek()
        if code in STANDARD and code:
            self.position += 1
            return Type(STANDARD[code], spaced=False)
        return self.recall()

    def full_name(self) -> Name:
        """Read a name in any scope."""
        code = self.peek()
        if code == "N":
            self.position += 1
            return self._nested()
        if code == "Z":
            self.position += 1
            return self._local()
        name = Name()
        if self.consume("St"):
            name = self._append(Name("std"))
        elif code == "S":
            self.position += 1
            abbreviated = str(self._abbreviation())
            name = Name(abbreviated, _last_part(abbreviated), is_remembered=True)
        else:
            name = self._append(Name())
        if self.peek() == "I":
            if not name.is_remembered:
                self.remember(Type(name.text, spaced=False))
            name = self._with_arguments(name)
        return name

    def _with_arguments(self, name: Name) -> Name:
        """Read template arguments, and return a name with them after `name`."""
        arguments = self.template_args()
        result = Name(name.text + arguments, name.last)
        result.is_template = True
        result.has_no_result, result.suffix = name.has_no_result, name.suffix
        return result

    def _append(self, scope: Name) -> Name:
        """Read an unqualified name, and return it as a member of `scope`."""
        part = self.unqualified(scope.last)
        name = Name(f"{scope.text}::{part}" if scope.text and part else scope.text or part)
        name.last = part or scope.last
        name.has_no_result, name.suffix = self._properties
        return name

    def _nested(self) -> Name:
        """Read the rest of a nested name after N, up to E."""
        qualifiers = self._qualifiers()
        if self.consume("R"):
            qualifiers = f"{qualifiers} &".strip()
        elif self.consume("O"):
            qualifiers = f"{qualifiers} &&".strip()
        name = self._first_part()
        while not self.consume("E"):
            if not name.is_remembered:
                self.remember(Type(name.text, spaced=False))
            name = self._with_arguments(name) if self.peek() == "I" else self._append(name)
        name.qualifiers = f" {qualifiers}" if qualifiers else ""
        return name

    def _first_part(self) -> Name:
        """Read the first part of a nested name."""
        code = self.peek()
        if code == "S":
            self.position += 1
            abbreviated = str(self._abbreviation())
            return Name(abbreviated, _last_part(abbreviated), is_remembered=True)
        if self.peek(2) in ("Dt", "DT"):
            return Name(self.decltype())
        if code == "T":
            self.position += 1
            text = f"T{self.ordinal() + 1}"
            return Name(text, text)
        return self._append(Name())

    def _local(self) -> Name:
        """Read the rest of a name inside a function, after Z."""
        scope = self.encoding()
        self.require("E")
        if self.consume("s"):
            name = Name(f"{scope}::string")
        else:
            if self.consume("d"):
                scope += f"::[default argument {self.ordinal() + 1} (from end)]"
            inner = self.full_name()
            name = inner
            name.text = f"{scope}::{inner.text}"
        if self.consume("__"):
            name.text += f" (instance {self.number() + 2})"
            self.require("_")
        elif self.peek() == "_" and self.peek(2)[1:].isdecimal():
            self.position += 2
            name.text += f" (instance {int(self.name[self.position - 1]) + 2})"
        return name

    # `has_no_result` and `suffix` of the name that `unqualified` read last.
    _properties = (False, "")

    def unqualified(self, scope: str) -> str:
        """Read a name without its scope; a constructor has the name of `scope`.

        The text is empty for a namespace that the compiler created for a file.
        """
        self._properties = (False, "")
        code = self.peek(2)
        if code[:1].isdecimal():
            text = self._source_name()
            if text.startswith("_GLOBAL__N_"):
                text = "<unnamed>"
            elif text.startswith("_INTERNAL"):
                text = ""
        elif code in STRUCTORS and scope:
            self.position += 2
            self._properties = (True, STRUCTORS[code])
            text = f"~{scope}" if code[0] == "D" else scope
        elif code == "Ut":
            self.position += 2
            text = f"[unnamed type (instance {self.ordinal() + 1})]"
        elif code == "Ul":
            self.position += 2
            parameters = self.parameters()
            self.require("E")
            text = f"[lambda{parameters} (instance {self.ordinal() + 1})]"
        else:
            text = self._operator(code)
        tags = []
        while self.consume("B"):
            tags.append(self._source_name())
        return f"{text}[abi:{','.join(tags)}]" if tags else text

    def _operator(self, code: str) -> str:
        """Read the name of an operator with this code."""
        self.position += 2
        if code == "cv":
            # Template arguments after the target type belong to the operator, not to that type.
            self.bare_parameters = True
            text = f"operator {self.type()}"
            self.bare_parameters = False
            self._properties = (True, "")
            return text
        if code == "li":
            return f'operator ""{self._source_name()}'
        if code not in OPERATORS:
            raise NotMangled
        return f"operator {OPERATORS[code]}"

    def template_args(self) -> str:
        """Read template arguments; the text has the members of a pack one by one."""
        self.require("I")
        arguments = []
        while not self.consume("E"):
            arguments.append(self._argument())
        return f"<{', '.join(arguments)}>"

    def _argument(self) -> str:
        """Read one template argument, or a pack of them."""
        code = self.peek()
        if code == "L":
            return self.literal()
        if self.consume("X"):
            text = self.expression()
            self.require("E")
            return text
        if self.consume("J"):
            arguments = []
            while not self.consume("E"):
                arguments.append(self._argument())
            return ", ".join(arguments)
        return str(self.type())


def _last_part(name: str) -> str:
    """Return the part of a name after its last `::`, without its template arguments."""
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
