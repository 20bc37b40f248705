"""Compiles modules for bundles without the parts that only readers and type checkers need.

Docstrings, annotations of parameters and results, fields without values, imports of `__future__`
and the bodies of `if TYPE_CHECKING:` are removed; statements, assertions and line numbers stay.
Fields without values stay in classes with a decorator, a base or a keyword, since code may inspect
them.
"""

from __future__ import annotations
import __future__

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType


def compile_stripped(source: bytes, path: str) -> CodeType:
    """Compile the module at `path` without docstrings and the annotations that no code reads."""
    tree = ast.parse(source, path)
    flags = 0  # of the compiler, for imports of `__future__`
    for statement in list(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            tree.body.remove(statement)
            for name in statement.names:
                flags |= getattr(__future__, name.name).compiler_flag
    tree = ast.fix_missing_locations(Stripper().visit(tree))
    code: CodeType = compile(tree, path, "exec", flags, dont_inherit=True)
    return code


class Stripper(ast.NodeTransformer):
    """Removes docstrings, most annotations and `if TYPE_CHECKING:` from a syntax tree, in place."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        return self._without_docstring(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        node.returns = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Remove annotations without values, unless other code may inspect them."""
        if not (node.decorator_list or node.bases or node.keywords):
            node.body = [statement for statement in node.body if not _only_declares(statement)] or [
                ast.Pass()
            ]
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """Replace `if TYPE_CHECKING:` by its `else` part, or by nothing."""
        self.generic_visit(node)
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse or ast.copy_location(ast.Pass(), node)
        return node

    def _without_docstring(self, node: Node) -> Node:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        return node


if TYPE_CHECKING:
    from typing import TypeVar

    Node = TypeVar("Node", ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _only_declares(node: ast.stmt) -> bool:
    """Return whether a statement only annotates a name, without a value."""
    return isinstance(node, ast.AnnAssign) and node.value is None
