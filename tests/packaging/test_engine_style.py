"""Rules that keep checking sound: what is model-checked is what runs, and a crash runs no clean-up."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from enum import Enum
from textwrap import dedent
from typing import Any

import pytest

from exactlyonce.effects import attempt
from exactlyonce.effects.effect import Effect
from tests.packaging.sources import files, name_of
from verification.twins.all_effects import MODULES

Placed = ast.Expr | ast.Assign | ast.AnnAssign


def offences(tree: ast.Module) -> list[str]:
    """What a strategy must not contain."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Yield):
            found.append(f"line {node.lineno}: a bare yield")
        elif isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)):
            found.append(f"line {node.lineno}: async")
        elif isinstance(node, ast.YieldFrom):
            if not isinstance(parents[node], Placed):
                found.append(f"line {node.lineno}: yield from inside an expression")
            if inside := next(
                (item for item in enclosing(node, parents) if isinstance(item, (ast.Try, ast.With))), None
            ):
                found.append(f"line {node.lineno}: yield from inside {type(inside).__name__.lower()}")
            if any(isinstance(item, (ast.For, ast.While)) for item in enclosing(node, parents)):
                found.append(f"line {node.lineno}: an effect in a loop, so an attempt has no stated maximum")
    return found


def enclosing(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """What a node stands in, up to its function."""
    while not isinstance(node := parents[node], (ast.FunctionDef, ast.Module)):
        yield node


def test_strategies_keep_the_rules() -> None:
    found = {name_of(path): offences(ast.parse(path.read_text())) for path in files("exactlyonce/protocols")}
    assert {name: told for name, told in found.items() if told} == {}
    assert "exactlyonce/protocols/outbox/protocol.py" in found


@pytest.mark.parametrize(
    ("offence", "body"),
    [
        ("bare yield", "yield Load()"),
        ("bare yield", "reply = yield Load()"),
        ("expression", "return (yield from Load())"),
        ("expression", "x = [(yield from Load())]"),
        ("expression", "if (yield from Load()) is None: pass"),
        ("expression", "f((yield from Load()))"),
        ("expression", "x = (yield from Load()).document"),
        ("expression", "x += yield from Load()"),
        ("inside try", "try:\n    yield from Load()\nfinally:\n    pass"),
        ("inside try", "try:\n    pass\nexcept KeyError:\n    yield from Load()"),
        ("inside with", "with lock:\n    if x:\n        yield from Load()"),
        ("loop", "while x:\n    yield from Load()"),
        ("loop", "for x in y:\n    z = yield from Load()"),
    ],
)
def test_a_broken_rule_is_noticed(offence: str, body: str) -> None:
    source = "def step():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    (told,) = offences(ast.parse(source))
    assert offence in told


def test_good_style_is_acquitted() -> None:
    source = """
        def step():
            yield from Save()
            x = yield from Load()
            y: Loaded = yield from Load()
            x, y = yield from Together()
            try:
                check(x)
            finally:
                with lock:
                    pass
            for one in x:
                check(one)
            return y
    """
    assert offences(ast.parse(dedent(source))) == []


def test_async_has_no_place_in_a_strategy() -> None:
    assert offences(ast.parse("async def step():\n    await x"))


PORT = frozenset({"Adapter", "AsyncAdapter", "Awaited", "performs", "_Marked", "_Operations"})
"""Classes that stand with the effects, and are none: they perform effects."""


def classes(module: Any) -> list[type]:
    own = (item for name, item in inspect.getmembers(module, inspect.isclass) if name not in PORT)
    here = (item for item in own if item.__module__ == module.__name__)
    return [item for item in here if not issubclass(item, Enum) and not getattr(item, "_is_protocol", False)]


KINDS = [kind for module in (*MODULES, attempt) for kind in classes(module)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_effects_and_replies_are_frozen_slotted_and_hashable(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    parameters: Any = kind.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    assert parameters.eq
    assert "__slots__" in vars(kind)
    assert kind.__hash__ is not None
    value = kind(*(f"field {number}" for number, _ in enumerate(dataclasses.fields(kind))))
    assert isinstance(hash(value), int)
    assert not hasattr(value, "__dict__")


def test_every_effect_is_an_effect_and_every_other_class_a_reply() -> None:
    names = {kind.__name__ for module in MODULES for kind in classes(module) if issubclass(kind, Effect)}
    assert {"Begin", "LoadEntity", "SaveEntity", "WritePage", "Publish", "Together"} <= names
    assert {"Loaded", "Saved", "Conflict", "Found", "Written"}.isdisjoint(names)
