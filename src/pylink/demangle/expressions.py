"""Expressions in template arguments, array bounds and decltype.

A method whose name is an underscore and two letters, such as `_cv`, reads an expression that begins
with this code of the ABI. `expression` has read the code itself.
"""

from __future__ import annotations

import struct

from pylink.demangle.cursor import NotMangled
from pylink.demangle.types import TypeParser

# Texts of operators by their codes in the ABI.
OPERATORS = {
    "nw": "new ", "na": "new[] ", "dl": "delete ", "da": "delete[] ", "aw": "co_await",
    "ps": "+", "ng": "-", "ad": "&", "de": "*", "co": "~", "nt": "!", "pp": "++", "mm": "--",
    "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|", "eo": "^",
    "aS": "=", "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=", "aN": "&=", "oR": "|=",
    "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=", "rS": ">>=",
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "ss": "<=>",
    "aa": "&&", "oo": "||", "cm": ",", "pm": "->*", "ds": ".*", "pt": "->",
    "cl": "()", "ix": "[]", "qu": "?", "st": "sizeof()", "sz": "sizeof()",
}  # fmt: skip
# Codes of operators that stand in front of their one operand; `++` and `--` may also follow it.
UNARY = ("ps", "ng", "ad", "de", "co", "nt", "dl", "da", "aw")
# Codes of operators that do not stand between two operands, and codes of those that do.
NOT_BINARY = {*UNARY, "nw", "na", "pp", "mm", "pt", "cl", "ix", "qu", "st", "sz"}
BINARY = {code for code in OPERATORS if code not in NOT_BINARY}
# Casts, by their codes.
CASTS = {"sc": "static_cast", "dc": "dynamic_cast", "cc": "const_cast", "rc": "reinterpret_cast"}


class ExpressionParser(TypeParser):
    """Reads one expression. Its text has no parentheses around operands, as in nvlink's texts."""

    def expression(self) -> str:
        """Read an expression and return its text.

        It begins with the two letters of its code, unless it is a literal, a template parameter or
        a name.
        """
        code = self.peek(2)
        if code[:1] == "L":
            return self.literal()
        if code[:1] == "T":
            return str(self.type())
        if code[:1].isdecimal():
            return self._reference("")
        self.position += 2
        if code in UNARY:
            return OPERATORS[code] + self.expression()
        if code in BINARY:
            first = self.expression()
            return f"{first}{OPERATORS[code]}{self.expression()}"
        if code in CASTS:
            target_type = self.type()
            return f"{CASTS[code]}<{target_type}>({self.expression()})"
        rule = getattr(self, f"_{code}", None)
        if rule is None:
            raise NotMangled
        text: str = rule()
        return text

    def _expression_list(self) -> str:
        """Read expressions up to an E; the text has commas between them."""
        items = []
        while not self.consume("E"):
            items.append(self.expression())
        return ", ".join(items)

    def _reference(self, scope: str) -> str:
        """Read a name that may have template arguments; a constructor has the name of `scope`."""
        name = self.unqualified(scope)
        return name + self.template_args() if self.peek() == "I" else name

    def _fp(self) -> str:
        """Read a parameter of the function, or `this`."""
        return "this" if self.consume("T") else self._parameter()

    def _parameter(self) -> str:
        """Read a function's parameter: qualifiers and its number, which the text counts from 1."""
        qualifiers = self._qualifiers()
        return f"{qualifiers} param#{self.ordinal() + 1}".lstrip()

    def _fL(self) -> str:
        """Read a parameter of an enclosing function, or a left fold with an initial value."""
        if not self.peek().isdecimal():
            return self._fR()
        levels = self.number() + 1
        self.require("p")
        return f"{self._parameter()}[up {levels} level{'s' * (levels > 1)}]"

    def _fR(self) -> str:
        """Read a right fold with an initial value."""
        operator = self._fold_operator()
        first = self.expression()
        return f"({first}{operator}...{operator}{self.expression()})"

    def _fl(self) -> str:
        """Read a left fold."""
        return f"(...{self._fold_operator()}{self.expression()})"

    def _fr(self) -> str:
        """Read a right fold."""
        operator = self._fold_operator()
        return f"({self.expression()}{operator}...)"

    def _fold_operator(self) -> str:
        """Read the operator of a fold expression."""
        code = self.next() + self.next()
        if code not in BINARY:
            raise NotMangled
        return OPERATORS[code]

    def _pp(self) -> str:
        """Read `++`, in front of or after its operand."""
        return self._increment("++")

    def _mm(self) -> str:
        return self._increment("--")

    def _increment(self, operator: str) -> str:
        """Read the operand of `++` or `--`; an underscore in front makes the operator a prefix."""
        if self.consume("_"):
            return operator + self.expression()
        return self.expression() + operator

    def _gs(self) -> str:
        """Read a name in the global scope."""
        return f"::{self.expression()}"

    def _nw(self) -> str:
        return self._new("new ")

    def _na(self) -> str:
        return self._new("new[] ")

    def _new(self, text: str) -> str:
        """Read the placement arguments, the type and the initializer of a new expression.

        `text` is the operator, `new ` or `new[] `.
        """
        placement = []
        while not self.consume("_"):
            placement.append(self.expression())
        if placement:
            text += f"({', '.join(placement)}) "
        text += str(self.type())
        if self.consume("pi"):
            return f"{text}({self._expression_list()})"
        if self.consume("il"):
            return f"{text}{{{self._expression_list()}}}"
        self.require("E")
        return text

    def _cl(self) -> str:
        """Read a call."""
        callee = self.expression()
        return f"{callee}({self._expression_list()})"

    def _cv(self) -> str:
        """Read a conversion to a type: of one operand or, after an underscore, of a list."""
        target_type = self.type()
        if self.consume("_"):
            return f"{target_type}({self._expression_list()})"
        return f"({target_type}){self.expression()}"

    def _dt(self) -> str:
        """Read an access to a member of an object."""
        return f"({self.expression()}.{self._reference('')})"

    def _pt(self) -> str:
        """Read an access to a member by a pointer."""
        return f"({self.expression()}->{self._reference('')})"

    def _ix(self) -> str:
        """Read a subscript."""
        array = self.expression()
        return f"{array}[{self.expression()}]"

    def _qu(self) -> str:
        """Read a conditional expression."""
        condition, if_true = self.expression(), self.expression()
        return f"{condition}?{if_true}:{self.expression()}"

    def _sp(self) -> str:
        """Read the expansion of a pack."""
        return f"{self.expression()}..."

    def _st(self) -> str:
        return f"sizeof({self.type()})"

    def _sz(self) -> str:
        return f"sizeof({self.expression()})"

    def _sZ(self) -> str:
        return f"sizeof...({self.expression()})"

    def _at(self) -> str:
        return f"alignof({self.type()})"

    def _az(self) -> str:
        return f"alignof({self.expression()})"

    def _ti(self) -> str:
        return f"typeid({self.type()})"

    def _te(self) -> str:
        return f"typeid({self.expression()})"

    def _tw(self) -> str:
        return f"throw {self.expression()}"

    def _tr(self) -> str:
        return "throw"

    def _nx(self) -> str:
        return f"noexcept({self.expression()})"

    def _tl(self) -> str:
        """Read a type with an initializer list."""
        type_name = self.type()
        return f"{type_name}{{{self._expression_list()}}}"

    def _il(self) -> str:
        """Read an initializer list."""
        return f"{{{self._expression_list()}}}"

    def _sr(self) -> str:
        """Read a scope, which is a type or a list of names up to an E, and its member."""
        if not self.peek().isdecimal():
            return f"{self.type()}::{self._reference('')}"
        scope = []
        while not self.consume("E"):
            scope.append(self._reference(""))
        return f"{'::'.join(scope)}::{self._reference('')}"

    def literal(self) -> str:
        """Read `L type value E`, or `L _Z name E` for the name of a function or variable."""
        self.require("L")
        if self.consume("_Z"):
            text = self.encoding(bare=True)
            self.require("E")
            return text
        code = self.peek()
        type_name = self.type()
        sign = "-" if self.consume("n") else ""
        end = self.name.find("E", self.position)
        digits = self.name[self.position : end]
        if code in ("f", "d"):
            value = _format_real(digits, code)
        elif digits.isdecimal():
            value = digits
        else:
            raise NotMangled
        self.position = end + 1
        return f"({type_name}){sign}{value}"


def _format_real(digits: str, code: str) -> str:
    """Return the text of a floating-point number from its hexadecimal digits.

    The most significant digit is first. `code` is `f` or `d`, for 32 and 64 bits.
    """
    try:
        (value,) = struct.unpack(f">{code}", bytes.fromhex(digits))
    except (ValueError, struct.error):
        raise NotMangled from None
    text = f"{value:.6g}" if code == "f" else f"{value:.15g}"
    return text if "." in text or not text.strip("-").isdecimal() else f"{text}.0"
