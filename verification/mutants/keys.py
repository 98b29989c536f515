"""What a mutant is recognised by when its file is moved, or names in it are changed.

A name quotes the source, and so changes with it. A key is made of the syntax tree of the function, as shipped and mutated,
without comments, sentences, annotations, and the names of the function itself and of its local variables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import NamedTuple

_DIGITS = 10


class Key(NamedTuple):
    """Two digests.

    Attributes:
        exact: of the function and its mutation. Where it stays, so does what was found out about the mutant.
        shape: of the same without any names: where only it stays, something else may be called by another name, or be another.
    """

    exact: str
    shape: str

    def __str__(self) -> str:
        return f"{self.exact}-{self.shape}"

    @classmethod
    def read(cls, text: str) -> Key:
        """The key that was written so."""
        exact, _, shape = text.partition("-")
        return cls(exact, shape)


def key_of(shipped: Key, mutated: Key) -> Key:
    """The key of a mutant, from the forms of its function."""
    return Key(*(_digest(item + other) for item, other in zip(shipped, mutated, strict=True)))


def form_of(function: ast.Module) -> Key:
    """The form of a function. Its tree, parsed by itself, is changed on the way."""
    plain = _Plain().visit(function)
    local = _local_names(plain)
    _rename(plain, lambda name: name in local, everything=False)
    exact = _digest(ast.dump(plain))
    _rename(plain, lambda _: True, everything=True)
    return Key(exact, _digest(ast.dump(plain)))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]


class _Plain(ast.NodeTransformer):
    """Leaves out what may change freely."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.name, node.returns = "function", None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)  # type: ignore[arg-type]  # It has the same parts.

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], node.value)

    def visit_JoinedStr(self, _node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("a sentence")

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("a sentence") if isinstance(node.value, str) and " " in node.value else node


def _local_names(tree: ast.AST) -> set[str]:
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    bound = {node.name for node in ast.walk(tree) if isinstance(node, ast.MatchAs) and node.name}
    return stored | caught | bound | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


_NAMES: Mapping[type[ast.AST], str] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.Attribute: "attr",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
}


def _rename(tree: ast.AST, wanted: Callable[[str], bool], *, everything: bool) -> None:
    """Number names in their order; those of attributes and keywords too, if it is everything."""
    numbers: dict[str, str] = {}
    for node in ast.walk(tree):
        field = _NAMES.get(type(node))
        if field is None or (isinstance(node, ast.Attribute | ast.keyword) and not everything):
            continue
        name = getattr(node, field)
        if name is not None and wanted(name):
            setattr(node, field, numbers.setdefault(name, f"name{len(numbers)}"))
