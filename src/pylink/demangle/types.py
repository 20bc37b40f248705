"""Reads types: built-in ones, and types with declarators and qualifiers."""

from __future__ import annotations

from pylink.demangle.cursor import Cursor, NotMangled, Type

# Built-in types by their codes. BUILTIN_D has those whose code begins with D, by the next letter.
BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char",
    "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long",
    "m": "unsigned long", "x": "long long", "y": "unsigned long long", "n": "__int128",
    "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double", "g": "__float128",
}  # fmt: skip
BUILTIN_D = {
    "n": "std::nullptr_t",
    "a": "auto",
    "c": "decltype(auto)",
    "h": "__fp16",
    "i": "char32_t",
    "s": "char16_t",
    "u": "char8_t",
}
# Declarators by their codes, and qualifiers by theirs, in the order in which they are written.
POINTERS = {"P": "*", "R": "&", "O": "&&"}
QUALIFIERS = {"K": "const", "V": "volatile", "r": "restrict"}


class TypeParser(Cursor):
    """Reads one type, or the parameters of a function."""

    def type(self) -> Type:
        """Read a type, and remember what later parts can abbreviate."""
        code = self.peek()
        if code in BUILTIN and code:
            self.position += 1
            return Type(BUILTIN[code])
        if code in POINTERS and code:
            self.position += 1
            return self.remember(declare(self.type(), POINTERS[code]))
        if code in QUALIFIERS and code:
            return self.remember(_qualify(self._qualifiers(), self.type()))
        if code == "D":
            return self._extended()
        if code == "F":
            return self.remember(self._function())
        if code == "A":
            return self.remember(self._array())
        if code == "M":
            self.position += 1
            scope = self.type()
            return self.remember(declare(self.type(), f" :: {scope}::*"))
        if code == "C":
            self.position += 1
            return self.remember(Type(f"_Complex {self.type()} ", spaced=False))
        if code == "U":
            self.position += 1
            extension = self._source_name()
            inner = self.type()
            kind = "base" if inner.kind == "base" else "pointer"
            return self.remember(Type(inner.before + extension, inner.right, kind, spaced=False))
        if code == "u":
            self.position += 1
            return self.remember(Type(self._source_name()))
        if code == "T" and self.peek(2)[1:] not in ("s", "u", "e"):
            self.position += 1
            return self._with_template_arguments(self.remember(Type(f"T{self.ordinal() + 1}")))
        return self.class_type()

    def _with_template_arguments(self, template: Type) -> Type:
        """Read the arguments of a template parameter, if any follow, and append them to it."""
        if self.peek() != "I" or self.bare_parameters:
            return template
        return self.remember(Type(template.left + self.template_args(), spaced=template.spaced))

    def _qualifiers(self) -> str:
        """Read qualifiers; the text has them in the usual order, with blanks between them."""
        qualifiers = ""
        while self.peek() in QUALIFIERS and self.peek():
            qualifiers += self.next()
        return " ".join(word for code, word in QUALIFIERS.items() if code in qualifiers)

    def _source_name(self) -> str:
        """Read an identifier of the source code: its length, then its characters."""
        size = self.number()
        if size == 0 or size > len(self.name) - self.position:
            raise NotMangled
        self.position += size
        return self.name[self.position - size : self.position]

    def _extended(self) -> Type:
        """Read a type whose code begins with D."""
        code = self.peek(2)[1:]
        if code in BUILTIN_D and code:
            self.position += 2
            return Type(BUILTIN_D[code])
        if code in ("t", "T"):
            return self.remember(Type(self.decltype()))
        if self.consume("Dp"):
            inner = self.type()
            text = str(inner) if inner.kind != "base" else inner.left
            return self.remember(Type(f"{text}...", kind=inner.kind))
        if self.consume("DF16_"):
            return Type("_Float16")
        if self.consume("DF16b"):
            return Type("std::bfloat16_t")
        if self.consume("Dv"):
            count = self.number()
            self.require("_")
            element = str(self.type())
            text = f"{element} __attribute((vector_size({count}*sizeof({element})))) "
            return self.remember(Type(text))
        if code in ("o", "O"):
            self.position += 2
            condition = ""
            if code == "O":
                condition = f"({self.expression()})"
                self.require("E")
            function = self._function()
            return self.remember(
                Type(function.left, f"{function.right} noexcept{condition}", "function")
            )
        raise NotMangled

    def decltype(self) -> str:
        """Read a decltype: of any expression (DT), or of a name or member (Dt)."""
        is_general = self.consume("DT")
        if not is_general:
            self.require("Dt")
        text = self.expression()
        self.require("E")
        return f"decltype(({text}))" if is_general else f"decltype({text})"

    def _function(self) -> Type:
        """Read the type of a function; `Y` marks one that is extern "C"."""
        self.require("F")
        self.consume("Y")
        result = self.type()
        right = self.parameters("RO")
        if self.consume("R"):
            right += " &"
        elif self.consume("O"):
            right += " &&"
        self.require("E")
        return Type(result.before, right + result.right, "function")

    def parameters(self, reference: str = "") -> str:
        """Read the parameters up to the end of a function type or name; the text has parentheses.

        A letter of `reference` before the end is a qualifier of the function, not a parameter.
        """
        if self.consume("v"):
            return "()"
        types = []
        while self.peek() not in ("", "E", "$"):
            if self.peek() in reference and self.peek(2)[1:] == "E":
                break
            if self.consume("z"):
                types.append("...")
                break
            types.append(str(self.type()))
        if not types:
            raise NotMangled
        return f"({', '.join(types)})"

    def _array(self) -> Type:
        """Read the type of an array, whose size is a number, an expression, or missing."""
        self.require("A")
        size = ""
        if self.peek().isdecimal():
            size = str(self.number())
        elif self.peek() != "_":
            size = self.expression()
        self.require("_")
        element = self.type()
        return Type(element.before, f"[{size}]{element.right}", "array")


def declare(inner: Type, operator: str) -> Type:
    """Return `inner` with a further declarator (`operator`, such as `*`).

    In types of functions and arrays, the declarator stands in parentheses: `int (*)[3]`.
    """
    if inner.kind in ("array", "function"):
        return Type(f"{inner.left}({operator}", f"){inner.right}", "pointer")
    return Type(inner.before + operator, inner.right, "pointer")


def _qualify(qualifiers: str, inner: Type) -> Type:
    """Return `inner` with qualifiers, such as `const`.

    They stand in front of a base type, and after a pointer or the parameters of a function. An
    array stays as it is.
    """
    if inner.kind == "base":
        return Type(f"{qualifiers} {inner.left}", inner.right, spaced=inner.spaced)
    if inner.kind == "function":
        parameters, _, reference = inner.right.partition(") &")
        if reference or inner.right.endswith(") &"):
            return Type(inner.left, f"{parameters}) {qualifiers} &{reference}", "function")
        return Type(inner.left, f"{inner.right} {qualifiers}", "function")
    if inner.kind == "array":
        return inner
    return Type(f"{inner.left}{qualifiers} ", inner.right, "pointer")
