"""Finds numbers of rows that native code uses for the rows of another table.

A number of a row has a type that names its table, such as `SectionNumber` (tables/rows.pxd). C and
Cython treat all these types as integers. This checker reads the typed trees that Cython makes of
native code before it writes C, and reports these mistakes:

* An index of rows, or of a column, is a number of another table.
* A number of one table is assigned to one of another: also by a call or a `return`. Or the two are
  compared.
* A plain integer is used where a number is expected: as an index, in an assignment, a call, a
  `return` or a comparison. A result of arithmetic is one, unless it is a number that was moved.
* An array of numbers of one table becomes an array of numbers of another, or of plain integers, or
  the reverse.
* A number goes to a field, an element, a parameter or a result without a type.
* A local variable without a type has numbers of two tables.
* A local variable of 32 bits always has numbers of one table, and does not say so.
* The rows of a `Vec` are read, added or measured with `sizeof` as rows of another type, or nothing
  says their type.

A cast makes a number of a plain integer where it is born: `<OutNumber>slot.value`. It says that the
integer is a number of that table. A cast to a plain integer says that the table does not matter.

A plain local variable gets its table from what is assigned to it or what it indexes, until the next
assignment. So a loop of `size_t` needs no type if it indexes rows. A column says in its comment
which table it has an element for each row of: `by entity`, `by input section` (`TABLE_WORDS`). The
comment of a `Vec` in a struct or a class begins with the type of its rows: `# OutNumber`. A local
`Vec` gets it from the `sizeof` that it is started with, a parameter from all its calls.

These are accepted, since their table is not known: literals, and names that end with `count`;
indices of arrays without a comment; pointers into the middle of an array; what a Python function
returns; in-place operators; a `Vec` parameter of a function that is only called by a pointer. Bytes
may be anything: a cast of a pointer to `uint8_t`, `char` or `void` is not followed. Nor are
`memcpy` and `qsort`. A cast to a number is believed, for example of a value of a `NameIndex`.
"""

from __future__ import annotations

import linecache
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
# Functions that get a Vec, and after it the size of its rows or a pointer to some.
ROW_FUNCTIONS = ("vec_init", "vec_over", "vec_append", "scratch_vector")
BYTES = ("void", "char", "uint8_t")  # what any memory may be read as
NEW_ARRAYS = ("scratch_nones", "scratch_zeros")  # functions whose results have no numbers yet


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
    """A literal or a count: it may be any number."""


Value = Number | Local | Untyped | Computed
COMPUTED = Computed()
MIDDLE = "in the middle of rows"  # in place of a table, of a pointer that is not to the first row


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
    """Return whether a type is a pointer or an array, whose elements numbers of rows may select."""
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
    is_use: bool = False  # a number of the table is expected
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
    """Knowledge of the pointers that calls pass to functions, by function and parameter number.

    For an array it is the table for whose rows the array has an element each, for a Vec the types
    of its rows.
    """

    def __init__(self) -> None:
        self.arguments: dict[tuple[str, int], set[str | None]] = {}

    def pass_on(self, function: str, place: int, passed: set[Any]) -> None:
        """Record what a call passes as parameter number `place` of a function."""
        self.arguments.setdefault((function, place), set()).update(passed)

    def rows(self, function: str, place: int) -> set[Any]:
        """Return the types of rows of the Vecs that a function gets."""
        return self.arguments.get((function, place), set())

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
        self.row_types: dict[Any, set[str]] = {}
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
        if isinstance(node, ExprNodes.ConstNode):
            return [COMPUTED]
        if isinstance(node, ExprNodes.BinopNode):
            return self.arithmetic(node)
        table = self.table_of(node.type)
        if table:
            return [Number(table)]
        if isinstance(node, ExprNodes.TypecastNode) and inner(node.operand).type.is_int:
            return self.values(node.operand)
        if isinstance(node, ExprNodes.NameNode):
            return [self.local(node)]
        text = describe(node)
        return [COMPUTED if text.endswith("count") else Untyped(text)]

    def arithmetic(self, node: Any) -> list[Value]:
        """Return what a sum or another operation may be."""
        first, second = inner(node.operand1), inner(node.operand2)
        result = Untyped(describe(node))
        if is_pointer(first.type) or is_pointer(second.type):
            rows = self.rows_of(first.type)
            return [Number(rows) if rows and self.column(second) != MIDDLE else result]
        left, right = self.values(first), self.values(second)
        if node.operator not in ("+", "-"):
            return [result]
        if node.operator == "-":
            if any(isinstance(value, Number) for value in right):
                return [result]
            right = [COMPUTED for _ in right]
        for kind in (Number, Untyped, Local):
            numbers: list[Value] = [value for value in (*left, *right) if isinstance(value, kind)]
            if numbers:
                return numbers[:1] if len(set(numbers)) == 1 else [result]
        return [COMPUTED]

    def local(self, node: Any) -> Value:
        """Return the value of a name: a local variable between assignments, or something else."""
        entry = node.entry
        if entry is not None and entry.type.is_pyobject:
            return Untyped(node.name)
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
                elif isinstance(value, Untyped):
                    self.report(line, f"{value.text} has no type, but {purpose} {a_number(table)}")
                elif isinstance(value, Local) and (indexes or not value.name.endswith("count")):
                    fact = Fact(table, f"{value.name}: {purpose}", line, True, indexes)
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
            use = next((fact for fact in facts if fact.is_use), None)
            untyped = next((fact for fact in facts if not fact.table), None)
            if use and untyped:
                self.report(
                    use.line,
                    f"{use.text} {a_number(use.table)}, "
                    f"but {untyped.text} in line {untyped.line} has no type",
                )
            elif use and all(fact.is_use and not fact.indexes for fact in facts):
                self.report(
                    use.line, f"{use.text} {a_number(use.table)}, but nothing says what it counts"
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
        PointerFinder(self.pointers, self.row_types).visit(node.body)
        self.visitchildren(node)
        self.finish_function()
        self.start_function(None)

    def visit_IndexNode(self, node: Any) -> None:
        if is_pointer(inner(node.base).type) and node.index is not None:
            self.check_index(node.base, node.index)
        self.visitchildren(node)

    def visit_TypecastNode(self, node: Any) -> None:
        vec = vec_of(inner(node.operand))
        if vec is not None and is_pointer(node.type):
            self.check_rows(vec, row_name(node.type))
        self.visitchildren(node)

    def check_rows(self, vec: Any, row: str | None) -> None:
        """Report rows, or the size of a row if no type has it, that are not those of a Vec."""
        declared, text = self.rows_of_vec(vec), describe(vec)
        is_parameter = isinstance(vec, ExprNodes.NameNode) and vec.entry.is_arg
        if declared in ({row}, {"uint8_t"}) or row in BYTES:
            return
        if is_parameter and not (declared and row):  # a function for all Vecs, or for a pointer
            return
        if not declared:
            self.report(vec.pos[1], f"nothing says what rows {text} has")
        else:
            types = " or ".join(sorted(declared))
            wrong = f"not of {row}" if row else "but their size does not say so"
            self.report(vec.pos[1], f"{text} has rows of {types}, {wrong}")

    def rows_of_vec(self, node: Any) -> set[str]:
        """Return the type of the rows of a Vec, or of several types if sources disagree.

        A field says it in its comment, a local variable by the size that it starts with. What a
        parameter has is known from the calls.
        """
        node = inner(node)
        if isinstance(node, ExprNodes.AmpersandNode):
            return self.rows_of_vec(node.operand)
        if isinstance(node, ExprNodes.IndexNode):
            return self.rows_of_vec(node.base)
        if isinstance(node, ExprNodes.AttributeNode):
            return comment_row(node)
        if not isinstance(node, ExprNodes.NameNode) or node.entry in self.asked:
            return set()
        self.asked.add(node.entry)
        rows = set(self.row_types.get(node.entry, ()))
        rows.update(*map(self.rows_of_vec, self.pointers.get(node.entry, ())))
        self.asked.discard(node.entry)
        if node.entry.is_arg and node.entry.name in self.places:
            rows |= self.columns.rows(self.function.entry.cname, self.places[node.entry.name])
        return rows

    def check_index(self, base: Any, index: Any) -> None:
        """Report an index of `base` that is not a number of the table that `base` is for."""
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
        """Check a value that is assigned to a target, or record it if that is a plain local."""
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
        """Report a number that goes to a plain integer, which does not say its table."""
        for branch in branches(value):
            table = self.table_of(branch.type)
            if table and not isinstance(branch, ExprNodes.BinopNode):
                text = f"{describe(branch)} is {a_number(table)}, but {target_text} has no type"
                self.report(branch.pos[1], text)

    def expect_array(self, value: Any, type_: Any, name: str) -> None:
        """Report an array of numbers of another table."""
        table, other = self.element(type_), self.element(inner(value).type)
        is_new = describe(value).removesuffix("()") in NEW_ARRAYS
        are_integers = is_number_array(type_) and is_number_array(inner(value).type)
        if table != other and are_integers and not is_new:
            self.report(
                inner(value).pos[1],
                f"{describe(value)} has {numbers_of(other)}, but {name} has {numbers_of(table)}",
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
            if self.table_of(target.type) or any(
                isinstance(value, Number) for value in self.values(end)
            ):
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
        for vec, name, value in rows_beside(node):
            source = vec_of(value)
            rows = {sized_type(value) if name == "row" else row_name(value.type)}
            for row in rows if source is None else self.rows_of_vec(source):
                self.check_rows(vec, row)
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
                    passed = (
                        self.rows_of_vec(value) if is_vec(argument.type) else {self.column(value)}
                    )
                    self.columns.pass_on(node.function.entry.cname, place, passed)
            elif is_plain_integer(argument.type):
                self.keep_type(value, text)
        self.visitchildren(node)

    def visit_PrimaryCmpNode(self, node: Any) -> None:
        self.compare(node.operand1, node.operand2)
        self.visitchildren(node)

    def compare(self, first: Any, second: Any) -> None:
        """Report two compared expressions of which only one is a number of its table."""
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


def numbers_of(table: str | None) -> str:
    """Return the words for the elements of an array."""
    return f"numbers of {table}" if table else "integers"


def is_number_array(type_: Any) -> bool:
    """Return whether a type is an array of integers that may be numbers of rows."""
    type_ = strip_qualifiers(type_)
    return is_pointer(type_) and is_plain_integer(type_.base_type)


def fits(table: str | None, other: str | None) -> bool:
    """Return whether a number of a table is one of another table, or of the same."""
    return table == other or (table, other) in PARTS


def is_vec(type_: Any) -> bool:
    """Return whether a type is a Vec, or a pointer to one."""
    type_ = strip_qualifiers(type_)
    if type_ is not None and type_.is_ptr:
        type_ = strip_qualifiers(type_.base_type)
    return bool(type_ is not None and type_.is_struct and type_.name == "Vec")


def vec_of(node: Any) -> Any:
    """Return the Vec whose rows an expression leads to, or None."""
    if isinstance(node, ExprNodes.BinopNode):
        node = inner(node.operand1)
    if isinstance(node, ExprNodes.AttributeNode) and node.attribute == "data":
        return node.obj if is_vec(node.obj.type) else None
    if isinstance(node, ExprNodes.SimpleCallNode) and node.type.is_ptr:
        return next((value for value in node.args if is_vec(inner(value).type)), None)
    return None


def rows_beside(call: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the Vec that a call starts or fills, and what says its rows: name and value."""
    if call.function.is_name and call.function.name in ROW_FUNCTIONS:
        vec = None
        for argument, value in zip(call_type(call).args, map(inner, call.args), strict=True):
            if is_vec(argument.type):
                vec = value.operand if isinstance(value, ExprNodes.AmpersandNode) else value
            elif argument.name in ("row", "rows"):
                yield vec, argument.name, value


def sized_type(size: Any) -> str | None:
    """Return the type whose size an expression is, or a multiple of it."""
    if isinstance(size, ExprNodes.MulNode):
        return sized_type(inner(size.operand1)) or sized_type(inner(size.operand2))
    if isinstance(size, ExprNodes.SizeofTypeNode):
        return str(size.arg_type)
    return "uint8_t" if size.constant_result == 1 else None


def comment_row(node: Any) -> set[str]:
    """Return the type of the rows of a Vec, with which the comment beside its field begins."""
    owner = strip_qualifiers(node.obj.type)
    if owner.is_ptr:
        owner = strip_qualifiers(owner.base_type)
    source, line, _column = owner.scope.lookup_here(node.attribute).pos
    comment = re.search(r"# (\w+)", linecache.getline(source.filename, line))
    return {comment[1]} if comment else set()


def row_name(pointer: Any) -> str:
    """Return the name of the type that a pointer leads to."""
    return str(strip_qualifiers(strip_qualifiers(pointer).base_type))


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
    """Lists what is assigned to each local pointer or Vec; None if a pointer moves.

    Lists also the type of which each local Vec gets the size.
    """

    def __init__(self, pointers: dict[Any, list[Any]], row_types: dict[Any, set[str]]) -> None:
        super().__init__()
        self.pointers = pointers
        self.row_types = row_types

    def visit_Node(self, node: Any) -> None:
        self.visitchildren(node)

    def add(self, target: Any, value: Any) -> None:
        """Record a value that is assigned to a local pointer or Vec; None if the pointer moves."""
        is_name = isinstance(target, ExprNodes.NameNode) and target.entry
        if is_name and (is_pointer(target.type) or is_vec(target.type)):
            self.pointers.setdefault(target.entry, []).append(value)

    def visit_SingleAssignmentNode(self, node: Any) -> None:
        self.add(node.lhs, node.rhs)

    def visit_CascadedAssignmentNode(self, node: Any) -> None:
        for target in node.lhs_list:
            self.add(target, node.rhs)

    def visit_InPlaceAssignmentNode(self, node: Any) -> None:
        self.add(node.lhs, None)

    def visit_SimpleCallNode(self, node: Any) -> None:
        for vec, name, value in rows_beside(node):
            row = sized_type(value) if name == "row" else None
            if row and isinstance(vec, ExprNodes.NameNode):
                self.row_types.setdefault(vec.entry, set()).add(row)
        self.visitchildren(node)


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
