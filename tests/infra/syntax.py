"""Syntax trees of Bicep files, by the grammar of tree-sitter-bicep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser


@cache
def parse(source: bytes) -> Node:
    """The syntax tree of a file."""
    return Parser(Language(tree_sitter_bicep.language())).parse(source).root_node


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def text_of(node: Node) -> str:
    """What stands in the file."""
    return (node.text or b"").decode()


def parts_of(node: Node) -> list[Node]:
    """What a node is made of, without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def properties_of(node: Node) -> dict[str, Node]:
    """Properties of an object."""
    pairs = (parts_of(item) for item in parts_of(node))
    return {text_of(name).strip("'"): value for name, value in pairs}


def reference_of(module: Node) -> str:
    """What a module is made of."""
    return text_of(_only(module, "string")).strip("'")


def name_of(declaration: Node) -> str:
    """What a declaration declares."""
    return text_of(_only(declaration, "identifier"))


def default_of(declaration: Node) -> Node | None:
    """What stands behind the equals sign; None if there is none."""
    equals = [place for place, child in enumerate(declaration.children) if child.type == "="]
    return declaration.children[equals[0] + 1] if equals else None


def _only(node: Node, kind: str) -> Node:
    return next(child for child in node.named_children if child.type == kind)
