"""Finds numbers of rows that native code uses for the rows of another table.

A number of a row has a type that names its table, such as `SectionNumber` (tables/rows.pxd). C and
Cython treat all these types as integers. This checker reads the typed trees that Cython makes of
native code before it writes C, and reports these mistakes:

* An index of rows, or of a column, is a number of another table.
* Such an index is a parameter, a field, an element or a result without a type.
* A number of one table is assigned to one of another: also by a call or a `return`. Or the two are
  compared.
* An array of numbers of one table becomes an array of numbers of another.
* A number goes to a field, an element, a parameter or a result without a type.
* A local variable without a type has numbers of two tables.
* A local variable of 32 bits always has numbers of one table, and does not say so.

A plain local variable gets its table from what is assigned to it or what it indexes, until the next
assignment. So a loop of `size_t` needs no type. A column says in its comment which table it has an
element for each row of: `by entity`, `by input section` (`TABLE_WORDS`). A cast to the type of a
number, such as `<OutNumber>`, says that the number is one of that table; a cast to a plain integer
that its table does not matter.

These are accepted, since their table is not known: results of arithmetic, unless a number is moved
by something that is none; literals and counts; indices of arrays without a comment; pointers into
the middle of an array; what a Python function gets or returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from Cython.Compiler import ExprNodes, Nodes, PyrexTypes
from Cython.Compiler.Visitor import TreeVisitor
from helpers.native_trees import NATIVE, typed_trees

# The tables that comments of columns name. Other words after "by" name no table.
TABLE_WORDS = {
    "input file": "File",
    "input section": "Section",
    "input symbol": "Symbol",
    "entity": "Entity",
    "OutRow": "Out",
    "OutSymbolRow": "OutSymbol",
    "node": "Node",
    "kernel": "Kernel",
    "variable": "Variable",
    "prototype": "Prototype",
    "member": "Member",
    "section of the file": "FileSection",
    "symbol of the file": "FileSymbol",
    "ledger entry": "LedgerEntry",
    "ledger function": "LedgerFunction",
}
# A number of a row of the first table is also one of the second.
PARTS = {("Entity", "Node")}
NUMBER = re.compile(r"(\w+)(?:Number|Ref|Counter)")
SHORT_INTEGERS = ("int32_t", "uint32_t")
INTEGERS = (*SHORT_INTEGERS, "size_t")
TYPEDEF = re.compile(rf"^ctypedef (?:{'|'.join(INTEGERS)}) (\w+(?:Number|Ref|Counter))\b", re.M)
STRUCT = re.compile(r"^(?:ctypedef |cdef )(?:packed )?struct (\w+):\n((?:[ \t]+.*\n|\n)+)", re.M)
FIELD = re.compile(r"^ +(?:const )?(\w+)(\**) (\w+) *(?:# (.*))?$")


class Mistake(NamedTuple):
    """A number that is used for the wrong table."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Vocabulary(NamedTuple):
    """The tables of some sources, and the columns of structs that comments describe."""

    tables: set[str]
    rows: dict[str, str]  # table by struct of its rows
    columns: dict[tuple[str, str], str]  # table by struct and field

    def add(self, text: str) -> None:
        """Add the types of numbers, the rows and the columns of the sources of a package.

        The type of a number is in the same package as the struct of the rows.
        """
        tables = {match[1] for name in TYPEDEF.findall(text) if (match := NUMBER.fullmatch(name))}
        self.tables.update(tables)
        for struct, body in STRUCT.findall(text):
            for name in (struct.removesuffix("Row"), struct):
                if name in tables:
                    self.rows[struct] = name
            self.columns.update(
                ((struct, field), table) for field, table in described_columns(body)
            )


def table_word(comment: str) -> str | None:
    """Return the table that a comment of a column names after `by`; the type may stand before."""
    match = re.match(r"(?:\w+, )?[Bb]y ([\w ]+?)(?= and |, |[:;.(]|$)", comment)
    return TABLE_WORDS.get(match[1]) if match else None


def described_columns(body: str) -> Iterator[tuple[str, str]]:
    """Yield the columns of a struct whose comments, beside or above them, name a table."""
    above = ""
    for line in body.splitlines():
        if line.strip().startswith("# "):
            above = above or line.strip()[2:]
            continue
        field = FIELD.match(line)
        if field and (field[2] or field[1] == "Vec"):
            table = table_word(field[4] or "") or table_word(above)
            if table:
                yield field[3], table
        above = ""


# --- expressions ---------------------------------------------------------------------------------


class Number(NamedTuple):
    """The number of a row of a table."""

    table: str


class Local(NamedTuple):
    """A plain local variable, from one assignment to the next."""

    key: Any
    name: str


class Untyped(NamedTuple):
    """A plain integer of which nothing says what it counts."""

    text: str


class Computed(NamedTuple):
    """A literal, a count, or a result of arithmetic: it may be any number."""


Value = Number | Local | Untyped | Computed
COMPUTED = Computed()
MIDDLE = "in the middle of rows"  # instead of the table of a pointer


def strip_qualifiers(type_: Any) -> Any:
    """Return a type without `const`."""
    while type_ is not None and (type_.is_cv_qualified or type_.is_reference):
        type_ = type_.cv_base_type if type_.is_cv_qualified else type_.ref_base_type
    return type_


def inner(node: Any) -> Any:
    """Return an expression without the conversions that Cython put around it."""
    while True:
        if isinstance(node, ExprNodes.CoercionNode):
            node = node.arg
        elif type(node).__name__ == "ResultRefNode":
            node = node.expression
        elif type(node).__name__ == "EvalWithTempExprNode":
            node = node.subexpression
        else:
            return node


def branches(node: Any) -> list[Any]:
    """Return the expressions one of which is the value: those of `a if b else c` are two."""
    node = inner(node)
    if isinstance(node, ExprNodes.CondExprNode):
        return [*branches(node.true_val), *branches(node.false_val)]
    return [node]


def is_pointer(type_: Any) -> bool:
    """Return whether an expression of this type is indexed by numbers of rows."""
    type_ = strip_qualifiers(type_)
    return bool(type_ is not None and (type_.is_ptr or type_.is_array))


def describe(node: Any) -> str:
    """Return the words of the source for an expression, as far as a message needs them."""
    node = inner(node)
    if isinstance(node, ExprNodes.NameNode):
        return str(node.name)
    if isinstance(node, ExprNodes.AttributeNode):
        return f"{describe(node.obj)}.{node.attribute}"
    if isinstance(node, ExprNodes.IndexNode):
        return f"{describe(node.base)}[{describe(node.index)}]"
    if isinstance(node, ExprNodes.SimpleCallNode):
        return f"{describe(node.function)}()"
    if isinstance(node, ExprNodes.TypecastNode):
        return describe(node.operand)
    if isinstance(node, ExprNodes.AmpersandNode):
        return describe(node.operand)
    if isinstance(node, ExprNodes.BinopNode):
        return f"{describe(node.operand1)} {node.operator} {describe(node.operand2)}"
    if isinstance(node, ExprNodes.ConstNode):
        return str(node.value)
    return "an expression"


class Fact(NamedTuple):
    """The knowledge of a plain local variable: a value that it gets, or a use."""

    table: str | None  # None: the value has no type
    text: str
    line: int
    indexes: bool = False


class Locals:
    """The plain local variables of a function, from one assignment to the next."""

    def __init__(self) -> None:
        self.facts: dict[Any, list[Fact]] = {}  # by assignment
        self.joined: dict[Any, Any] = {}  # by assignment: another one that reaches the same use

    def root(self, key: Any) -> Any:
        """Return the assignment that stands for all that reach the same uses."""
        while key in self.joined:
            key = self.joined[key]
        return key

    def join(self, key: Any, other: Any) -> None:
        """Let two assignments count as one, since a use may see either."""
        key, other = self.root(key), self.root(other)
        if key is not other:
            self.joined[other] = key

    def learn(self, key: Any, fact: Fact) -> None:
        """Add a fact about an assignment."""
        facts = self.facts.setdefault(key, [])
        if fact not in facts:
            facts.append(fact)

    def groups(self) -> Iterator[list[Fact]]:
        """Yield the facts about assignments that reach the same uses, in the order of lines."""
        groups: dict[Any, list[Fact]] = {}
        for key, facts in self.facts.items():
            groups.setdefault(self.root(key), []).extend(facts)
        for facts in groups.values():
            yield sorted(facts, key=lambda fact: fact.line)

    def undeclared(self) -> Iterator[tuple[Any, str]]:
        """Yield the variables of 32 bits that always have numbers of one table, and the table."""
        tables: dict[Any, set[str | None]] = {}
        for key, facts in self.facts.items():
            entry = key.entry if isinstance(key, ExprNodes.NameNode) else key
            tables.setdefault(entry, set()).update(fact.table for fact in facts)
        for entry, fact_tables in tables.items():
            table = next(iter(fact_tables))
            is_short = str(getattr(entry, "type", "")) in SHORT_INTEGERS
            if table and len(fact_tables) == 1 and is_short and not entry.name.endswith("count"):
                yield entry, table


class Columns:
    """Tables that arrays have an element for: those of pointers that functions get."""

    def __init__(self) -> None:
        self.arguments: dict[tuple[str, int], set[str | None]] = {}

    def pass_on(self, function: str, place: int, table: str | None) -> None:
        """Record that a call passes such a pointer to a function."""
        self.arguments.setdefault((function, place), set()).add(table)

    def parameter(self, function: str, place: int) -> str | None:
        """Return the table of a pointer that a function gets, if all its calls agree."""
        tables = self.arguments.get((function, place), set())
        if MIDDLE in tables:
            return MIDDLE
        return next(iter(tables)) if len(tables) == 1 else None


class Checker(TreeVisitor):
    """Finds the mistakes of a tree."""

    def __init__(self, vocabulary: Vocabulary, columns: Columns) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.columns = columns
        self.mistakes: set[Mistake] = set()
        self.source = ""
        self.start_function(None)

    def start_function(self, function: Any) -> None:
        """Forget the local variables of another function."""
        self.function = function
        self.places: dict[str, int] = {}
        if isinstance(function, Nodes.CFuncDefNode):
            self.places = {arg.name: place for place, arg in enumerate(function.type.args)}
        self.locals = Locals()
        self.pointers: dict[Any, list[Any]] = {}
        self.asked: set[Any] = set()

    # --- tables of types and expressions

    def table_of(self, type_: Any) -> str | None:
        """Return the table of a type such as `SectionNumber`."""
        type_ = strip_qualifiers(type_)
        if type_ is None or not type_.is_typedef:
            return None
        match = NUMBER.fullmatch(type_.typedef_name)
        return match[1] if match and match[1] in self.vocabulary.tables else None

    def element(self, type_: Any) -> str | None:
        """Return the table of the numbers that a pointer leads to."""
        type_ = strip_qualifiers(type_)
        return self.table_of(type_.base_type) if is_pointer(type_) else None

    def rows_of(self, type_: Any) -> str | None:
        """Return the table whose rows a pointer leads to."""
        type_ = strip_qualifiers(type_)
        if not is_pointer(type_):
            return None
        row = strip_qualifiers(type_.base_type)
        return self.vocabulary.rows.get(str(row.name)) if row.is_struct else None

    def column(self, node: Any) -> str | None:
        """Return the table for whose rows an array has an element each, MIDDLE, or None."""
        node = inner(node)
        if not is_pointer(node.type):
            return None
        if isinstance(node, ExprNodes.AttributeNode):
            column = self.field_column(node)
        elif isinstance(node, ExprNodes.TypecastNode):
            column = self.column(node.operand)
        elif isinstance(node, ExprNodes.NameNode):
            column = self.local_column(node)
        elif isinstance(node, ExprNodes.CondExprNode):
            tables = {self.column(node.true_val), self.column(node.false_val)} - {None}
            column = tables.pop() if len(tables) == 1 else None
        elif isinstance(
            node, (ExprNodes.BinopNode, ExprNodes.AmpersandNode, ExprNodes.SimpleCallNode)
        ):
            column = MIDDLE
        else:
            column = None
        return column or self.rows_of(node.type)

    def field_column(self, node: Any) -> str | None:
        """Return the table of a column of a struct, of a Vec, or of a result of a phase."""
        owner = strip_qualifiers(node.obj.type)
        if node.attribute in ("rows", "data") and isinstance(
            inner(node.obj), ExprNodes.AttributeNode
        ):
            node = inner(node.obj)
            owner = strip_qualifiers(node.obj.type)
        if owner.is_ptr:
            owner = strip_qualifiers(owner.base_type)
        name = str(getattr(owner, "name", "")).replace("Tables", "View")
        return self.vocabulary.columns.get((name, str(node.attribute)))

    def local_column(self, node: Any) -> str | None:
        """Return the table of a local pointer, from what is assigned to it or passed."""
        entry = node.entry
        if entry in self.asked:
            return None
        self.asked.add(entry)
        tables = {
            self.column(value) if value is not None else MIDDLE
            for value in self.pointers.get(entry, [])
        }
        self.asked.discard(entry)
        if entry.is_arg and entry.name in self.places:
            tables.add(self.columns.parameter(self.function.entry.cname, self.places[entry.name]))
        if MIDDLE in tables:
            return MIDDLE
        tables.discard(None)
        return tables.pop() if len(tables) == 1 else None

    def values(self, node: Any) -> list[Value]:
        """Return what an expression of integers may be: one value for each of its branches."""
        node = inner(node)
        if isinstance(node, ExprNodes.CondExprNode):
            return [value for branch in branches(node) for value in self.values(branch)]
        if isinstance(node, ExprNodes.BinopNode):
            return self.arithmetic(node)
        table = self.table_of(node.type)
        if table:
            return [Number(table)]
        if isinstance(node, ExprNodes.TypecastNode):
            operand = inner(node.operand)
            return self.values(operand) if operand.type.is_int else [Untyped(describe(node))]
        if isinstance(node, ExprNodes.NameNode):
            return [self.local(node)]
        if isinstance(
            node, (ExprNodes.AttributeNode, ExprNodes.IndexNode, ExprNodes.SimpleCallNode)
        ):
            text = describe(node)
            return [COMPUTED if text.endswith("count") else Untyped(text)]
        return [COMPUTED]

    def arithmetic(self, node: Any) -> list[Value]:
        """Return what a sum or another operation may be."""
        first, second = inner(node.operand1), inner(node.operand2)
        if is_pointer(first.type) or is_pointer(second.type):
            rows = self.rows_of(first.type)
            return [Number(rows) if rows and self.column(first) != MIDDLE else COMPUTED]
        left, right = self.values(first), self.values(second)
        if node.operator not in ("+", "-"):
            return [COMPUTED]
        if node.operator == "-":
            if any(isinstance(value, Number) for value in right):
                return [COMPUTED]
            right = [COMPUTED for _ in right]
        for kind in (Number, Untyped, Local):
            numbers: list[Value] = [value for value in (*left, *right) if isinstance(value, kind)]
            if numbers:
                return numbers if len(numbers) == 1 else [COMPUTED]
        return [COMPUTED]

    def local(self, node: Any) -> Value:
        """Return the value of a name: a local variable between assignments, or something else."""
        entry = node.entry
        if entry is None or entry.is_const or not entry.type.is_int or entry.type.is_enum:
            return COMPUTED
        if not (entry.is_local or entry.is_arg):
            return Untyped(node.name) if entry.is_variable else COMPUTED
        keys = []
        for assignment in node.cf_state or ():
            keys.append(assignment.lhs)
            if assignment.is_arg and not entry.name.endswith("count"):
                self.locals.learn(
                    assignment.lhs, Fact(None, f"parameter {entry.name}", entry.pos[1])
                )
        keys = keys or [entry]
        for key in keys[1:]:
            self.locals.join(keys[0], key)
        return Local(keys[0], str(node.name))

    # --- local variables

    def give(self, target: Any, value: Any, line: int) -> None:
        """Record what a plain local variable gets."""
        for source in self.values(value):
            if isinstance(source, Number):
                self.locals.learn(target, Fact(source.table, f"{target.name} gets", line))
            elif isinstance(source, Untyped):
                self.locals.learn(target, Fact(None, source.text, line))
            elif isinstance(source, Local):
                self.locals.join(target, source.key)

    def expect(self, node: Any, table: str, purpose: str, *, indexes: bool = False) -> None:
        """Report an expression that is not a number of this table."""
        for branch in branches(node):
            line = branch.pos[1]
            for value in self.values(branch):
                if isinstance(value, Number) and not fits(value.table, table):
                    part = f"{describe(branch)} is {a_number(value.table)}"
                    self.report(line, f"{part}, but {purpose} {a_number(table)}")
                elif isinstance(value, Untyped) and indexes:
                    self.report(line, f"{value.text} has no type, but {purpose} {a_number(table)}")
                elif isinstance(value, Local):
                    fact = Fact(table, f"{value.name}: {purpose}", line, indexes)
                    self.locals.learn(value.key, fact)

    def finish_function(self) -> None:
        """Report what is wrong with the local variables of a function."""
        for facts in self.locals.groups():
            typed = [fact for fact in facts if fact.table]
            first = typed[0] if typed else None
            for fact in typed[1:]:
                if (
                    first
                    and not fits(fact.table, first.table)
                    and not fits(first.table, fact.table)
                ):
                    self.report(
                        fact.line,
                        f"{fact.text} {a_number(fact.table)}, "
                        f"but {first.text} {a_number(first.table)} in line {first.line}",
                    )
            index = next((fact for fact in facts if fact.indexes), None)
            untyped = next((fact for fact in facts if not fact.table), None)
            if index and untyped:
                self.report(
                    index.line,
                    f"{index.text} {a_number(index.table)}, "
                    f"but {untyped.text} in line {untyped.line} has no type",
                )
        for entry, table in self.locals.undeclared():
            self.report(entry.pos[1], f"{entry.name} is always {a_number(table)}: declare it")

    def report(self, line: int, text: str) -> None:
        self.mistakes.add(Mistake(self.source, line, text))

    # --- statements

    def visit_Node(self, node: Any) -> None:
        self.visitchildren(node)

    def visit_FuncDefNode(self, node: Any) -> None:
        if node.pos[0].filename is None:  # Cython wrote the function
            return
        self.source = source_of(node)
        self.start_function(node)
        PointerFinder(self.pointers).visit(node.body)
        self.visitchildren(node)
        self.finish_function()
        self.start_function(None)

    def visit_IndexNode(self, node: Any) -> None:
        if is_pointer(inner(node.base).type) and node.index is not None:
            self.check_index(node.base, node.index)
        self.visitchildren(node)

    def check_index(self, base: Any, index: Any) -> None:
        table = self.column(base)
        if table in self.vocabulary.tables:
            self.expect(index, table, f"{describe(base)} takes", indexes=True)

    def visit_AddNode(self, node: Any) -> None:
        first, second = inner(node.operand1), inner(node.operand2)
        if is_pointer(first.type) and strip_qualifiers(second.type).is_int:
            self.check_index(first, second)
        self.visitchildren(node)

    def visit_SingleAssignmentNode(self, node: Any) -> None:
        self.assign(node.lhs, node.rhs)
        self.visitchildren(node)

    def visit_CascadedAssignmentNode(self, node: Any) -> None:
        for target in node.lhs_list:
            self.assign(target, node.rhs)
        self.visitchildren(node)

    def assign(self, target: Any, value: Any) -> None:
        table = self.table_of(target.type)
        if table:
            self.expect(value, table, f"{describe(target)} is")
        elif is_pointer(target.type):
            self.expect_array(value, target.type, describe(target))
        elif isinstance(target, ExprNodes.NameNode) and strip_qualifiers(target.type).is_int:
            self.give(target, value, target.pos[1])
        elif is_plain_integer(target.type):
            self.keep_type(value, describe(target))

    def keep_type(self, value: Any, target_text: str) -> None:
        """Report a number that goes to a plain integer, from where its table is not known."""
        for branch in branches(value):
            table = self.table_of(branch.type)
            if table and not isinstance(branch, ExprNodes.BinopNode):
                text = f"{describe(branch)} is {a_number(table)}, but {target_text} has no type"
                self.report(branch.pos[1], text)

    def expect_array(self, value: Any, type_: Any, name: str) -> None:
        """Report an array of numbers of another table."""
        table, other = self.element(type_), self.element(inner(value).type)
        if table and other and not fits(other, table):
            self.report(
                inner(value).pos[1],
                f"{describe(value)} has numbers of {other}, but {name} has numbers of {table}",
            )

    def visit_InPlaceAssignmentNode(self, node: Any) -> None:
        target = node.lhs
        is_local = isinstance(target, ExprNodes.NameNode) and is_plain_integer(target.type)
        if is_local and not self.table_of(target.type):
            for assignment in target.cf_state or ():
                self.locals.join(target, assignment.lhs)
            if node.operator == "+":
                self.give(target, node.rhs, target.pos[1])
        self.visitchildren(node)

    def visit_ForInStatNode(self, node: Any) -> None:
        sequence = inner(node.iterator.sequence)
        target = inner(node.target)
        if is_range(sequence) and isinstance(target, ExprNodes.NameNode):
            *start, end = sequence.arg_tuple.args[:2]
            for bound in start:
                self.assign(target, bound)
            if any(isinstance(value, Number) for value in self.values(end)):
                self.assign(target, end)
        self.visitchildren(node)

    def visit_ReturnStatNode(self, node: Any) -> None:
        if node.value is not None and isinstance(self.function, Nodes.CFuncDefNode):
            type_ = self.function.type.return_type
            name = f"the result of {self.function.entry.name}()"
            table = self.table_of(type_)
            if table:
                self.expect(node.value, table, f"{name} is")
            elif is_pointer(type_):
                self.expect_array(node.value, type_, name)
            elif is_plain_integer(type_):
                self.keep_type(node.value, name)
        self.visitchildren(node)

    def visit_SimpleCallNode(self, node: Any) -> None:
        type_ = call_type(node)
        for place, value in enumerate(node.args or () if type_ else ()):
            if place >= len(type_.args):
                break
            argument = type_.args[place]
            table = self.table_of(argument.type)
            text = f"{argument.name} of {describe(node.function)}()"
            if table:
                self.expect(value, table, f"{text} is")
            elif is_pointer(argument.type):
                self.expect_array(value, argument.type, text)
                if node.function.is_name and node.function.entry:
                    self.columns.pass_on(node.function.entry.cname, place, self.column(value))
            elif is_plain_integer(argument.type):
                self.keep_type(value, text)
        self.visitchildren(node)

    def visit_PrimaryCmpNode(self, node: Any) -> None:
        self.compare(node.operand1, node.operand2)
        self.visitchildren(node)

    def compare(self, first: Any, second: Any) -> None:
        for value, other in ((first, second), (second, first)):
            for number in self.values(value) if is_integer(value) and is_integer(other) else ():
                if isinstance(number, Number):
                    self.expect(other, number.table, f"{describe(value)} is")


def is_integer(node: Any) -> bool:
    type_ = strip_qualifiers(inner(node).type)
    return bool(type_ is not None and type_.is_int)


def is_plain_integer(type_: Any) -> bool:
    """Return whether a type is an integer that may be the number of a row."""
    type_ = strip_qualifiers(type_)
    return bool(type_.is_int and not type_.is_enum and type_ is not PyrexTypes.c_bint_type)


def a_number(table: str | None) -> str:
    """Return the words for a number of a table."""
    return f"a number of {table}"


def fits(table: str | None, other: str | None) -> bool:
    """Return whether a number of a table is one of another table, or of the same."""
    return table == other or (table, other) in PARTS


def call_type(node: Any) -> Any:
    """Return the type of the C function that a call calls, or None."""
    type_ = strip_qualifiers(node.function.type)
    if type_ is not None and type_.is_ptr:
        type_ = type_.base_type
    return type_ if type_ is not None and type_.is_cfunction else None


def is_range(sequence: Any) -> bool:
    return (
        isinstance(sequence, ExprNodes.SimpleCallNode)
        and sequence.function.is_name
        and sequence.function.name == "range"
        and sequence.arg_tuple is not None
    )


def source_of(node: Any) -> str:
    """Return the file of a node, from the directory of native code."""
    path = Path(node.pos[0].filename)
    return str(path.relative_to(NATIVE)) if path.is_relative_to(NATIVE) else path.name


class PointerFinder(TreeVisitor):
    """Lists what is assigned to each local pointer; None if it moves."""

    def __init__(self, pointers: dict[Any, list[Any]]) -> None:
        super().__init__()
        self.pointers = pointers

    def visit_Node(self, node: Any) -> None:
        self.visitchildren(node)

    def add(self, target: Any, value: Any) -> None:
        if isinstance(target, ExprNodes.NameNode) and target.entry and is_pointer(target.type):
            self.pointers.setdefault(target.entry, []).append(value)

    def visit_SingleAssignmentNode(self, node: Any) -> None:
        self.add(node.lhs, node.rhs)

    def visit_CascadedAssignmentNode(self, node: Any) -> None:
        for target in node.lhs_list:
            self.add(target, node.rhs)

    def visit_InPlaceAssignmentNode(self, node: Any) -> None:
        self.add(node.lhs, None)


def native_vocabulary() -> Vocabulary:
    """Return the tables and columns of all native code."""
    vocabulary = Vocabulary(set(), {}, {})
    for package in sorted(NATIVE.iterdir()):
        paths = sorted(package.glob("*.p[yx][xd]"))
        vocabulary.add("\n".join(path.read_text(encoding="utf-8") for path in paths))
    return vocabulary


def check(sources: Iterable[Path], vocabulary: Vocabulary) -> list[Mistake]:
    """Return the mistakes in some sources, and in the headers that they read."""
    trees = typed_trees(sources)
    columns = Columns()
    mistakes: set[Mistake] = set()
    for _ in range(3):  # a pointer may pass through three functions
        mistakes.clear()
        for tree in trees:
            checker = Checker(vocabulary, columns)
            checker.visit(tree)
            mistakes |= checker.mistakes
    return sorted(mistakes)
