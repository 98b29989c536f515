"""What can be done to one place of a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import chain
from types import ModuleType
from typing import Any, Final

_ANSWERED: Final[dict[str | None, str]] = {
    "effects.Loaded(None, None, 0, None)": "LoadEntity request",
    "False": "HasPages HasCompanions",
    'effects.Saved("1", None)': "SaveEntity SaveBatch",
    "effects.PUBLISHED": "Publish",
    None: (
        "OpenNumbers take_back load load_with_companions admitted settle companions_know "
        "committed_by_companions clean_companions clean_by_ledger self.tend sweep_records self.load_state "
        "self._loaded self._process self._handle self._commit _commit commit _received Begin"
    ),
    "None": (
        "CloseNumbers DeletePages DeleteStaged ReplaceCompanions DeleteCompanions DeleteBlobs Unpark "
        "_require_no_pages write_blobs finish publish_records skip ask_again self.proof"
    ),
    "frozenset()": "paid_of FindBlobs strategy.committed",
    "effects.FoundRequests((), None)": "first_look _look_for_requests",
    'effects.Written("0:-1#0")': "KeepAnswers WritePage Stage Park",
    "{2}": "_keep_answers",
    "committed": "pay",
    "effects.FoundPages(())": "FindPages",
    "effects.FoundAbove(())": "FindPagesAbove",
    "effects.FoundStaged(())": "LoadStaged",
    "effects.FoundCompanions(())": "LoadCompanions FindEntries FindOwing",
    "effects.FoundNumbered(())": "FindNumbered",
    "KEPT": "WriteOnce",
    'Settled("parked", view.memory)': "park",
    "effects.FoundParked(None, None, None)": "LoadParked",
    "{{}}": "_known",
    "view": "_pay look_apart",
    "view.ledger.token": "_written_before",
    "(view.memory, frozenset())": "_copies_paid",
    'Again(view.memory, "")': "_make_room",
    "()": "_due handled_again release",
    '"0:-1#0"': "fresh_token",
    "view.memory": "fence publish_owed",
    "True": "_never_had_a_ledger",
    "Finished(view.memory)": "self.attempt",
}
"""What a removed effect is taken to have answered: as if nothing could go wrong. None: nothing is left without it.

A number in braces stands for an argument of the call.
"""
_REPLIES: Final = {name: reply for reply, names in _ANSWERED.items() for name in names.split()}

_WITHOUT: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "None": (
        *(("LoadEntity", 1), ("FindPages", 4), ("FindPagesAbove", 2), ("FindBlobs", 2), ("LoadStaged", 2)),
        *(("LoadRequests", 2), ("LoadCompanions", 2), ("FindEntries", 2), ("FindNumbered", 3), ("LoadParked", 2)),
    ),
    "0": (("FindPages", 3), ("FindPaid", 1), ("OpenNumbers", 1)),
    "()": (("FindPaid", 4), ("SaveBatch", 3), ("SaveBatch", 4)),
    "'*'": (("SaveEntity", 2), ("SaveBatch", 2), ("Unpark", 2)),
    "(), len({})": (("Begin", 0), ("OpenNumbers", 2)),
}
"""Arguments of effects that carry a guard, and what is there without. Braces stand for the argument."""
ARGUMENTS: Final = {place: without for without, places in _WITHOUT.items() for place in places}

UNDONE: Final = {"remembering": "{0}", "view.remembering": "view.memory"}
"""Helpers, and what there is without them. Braces stand for the first argument."""


def reply_to(call: ast.expr) -> str | None:
    """Source of what an effect, or a function that asks for some, answers when it is removed; None if nothing is left.

    Raises:
        LookupError: nobody has said so yet.
    """
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ast.unparse(call)
    if name == "Together" and isinstance(call, ast.Call):  # The first of the two is asked all the same.
        first, second = call.args
        return f"((yield from {ast.unparse(first)}), {reply_to(second)})"
    if name in _REPLIES:
        reply = _REPLIES[name]
        arguments = call.args if isinstance(call, ast.Call) else ()
        return reply and reply.format(*map(ast.unparse, arguments))
    raise LookupError(f"What does the reply to {name!r} look like when nothing goes wrong? `_ANSWERED` has to say it.")


_OPPOSITES: Final = (
    (ast.Eq, ast.NotEq),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
)
COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    first: second for pair in _OPPOSITES for first, second in (pair, pair[::-1])
}
LONGEST: Final = 72
"""Characters of source in a name."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Source text that takes the place of a node.

    Attributes:
        what: in words; without line numbers, so that it stays when other lines change.
    """

    what: str
    node: ast.stmt | ast.expr
    text: str


def swaps(function: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType) -> Iterator[Swap]:
    """Everything that can be done to one function, in the order of the source."""
    bound = {argument.arg for argument in chain(function.args.args, function.args.kwonlyargs)}
    for statement in function.body:
        yield from _in_statement(statement, bound, module)


def _in_statement(statement: ast.stmt, bound: set[str], module: ModuleType) -> Iterator[Swap]:
    yield from _of_statement(statement, bound)
    for field, value in ast.iter_fields(statement):
        if isinstance(value, ast.expr) and field != "annotation":
            yield from _in_expression(value, module)
    if isinstance(statement, ast.For):
        bound.update(_names(statement))
    blocks: list[list[ast.stmt]] = [getattr(statement, "body", []), getattr(statement, "orelse", [])]
    blocks += [part.body for name in ("handlers", "cases") for part in getattr(statement, name, [])]
    for block in blocks:
        if len(block) > 1:  # If the only one goes, that is the condition forced False.
            yield from (_without(item) for item in block if isinstance(item, ast.Return | ast.Continue | ast.Break))
        for item in block:
            yield from _in_statement(item, bound, module)
    bound.update(_names(statement))


def _of_statement(statement: ast.stmt, bound: set[str]) -> Iterator[Swap]:
    match statement:
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield _without(statement)
        case ast.While(test=test):  # One that never ends is no use to anybody.
            yield Swap(f"'while {said(test)}' never entered", test, "False")
        case ast.Assign(value=value) if _names(statement) <= bound and not isinstance(value, ast.YieldFrom):
            yield _without(statement)
        case _:
            pass


def _without(statement: ast.stmt) -> Swap:
    return Swap(f"no '{said(statement)}'", statement, "pass")


def _names(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)}


def _in_expression(node: ast.expr, module: ModuleType) -> Iterator[Swap]:
    match node:
        case ast.JoinedStr():  # Messages are for people.
            return
        case ast.YieldFrom():
            yield from _of_effect(node)
        case ast.Call():
            yield from _of_call(node, module)
        case ast.Tuple(elts=elements) if any(isinstance(item, ast.Starred) for item in elements):
            for element in elements:
                rest = [item for item in elements if item is not element]
                yield Swap(f"'{said(node)}' without '{said(element)}'", node, _text(ast.Tuple(rest, ast.Load())))
        case _:
            yield from _of_operation(node)
    for part in _parts(node):
        yield from _in_expression(part, module)


def _of_operation(node: ast.expr) -> Iterator[Swap]:
    match node:
        case ast.BoolOp(values=operands):
            for operand in operands:
                rest = [item for item in operands if item is not operand]
                yield Swap(f"'{said(node)}' without '{said(operand)}'", node, _joined(node, rest))
        case ast.Compare():
            yield from _of_comparison(node)
        case ast.BinOp(left=left, op=ast.Add() | ast.BitOr() | ast.BitAnd() | ast.Sub(), right=right):
            yield Swap(f"'{said(node)}' without '{said(right)}'", node, _text(left))
            yield Swap(f"'{said(node)}' without '{said(left)}'", node, _text(right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield Swap(f"'{said(node)}' without 'not'", node, _text(operand))
        case _:
            pass


def conditions(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Whatever decides: conditions of statements, expressions and comprehensions."""
    for node in ast.walk(function):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case _:
                pass


def forced(condition: ast.expr) -> Iterator[Swap]:
    """A condition that always or never holds."""
    binds = any(isinstance(node, ast.NamedExpr) for node in ast.walk(condition))
    always, never = (f"{_text(condition)} or True", f"{_text(condition)} and False") if binds else ("True", "False")
    yield Swap(f"condition '{said(condition)}' forced True", condition, always)
    yield Swap(f"condition '{said(condition)}' forced False", condition, never)
    inverted = isinstance(condition, ast.Compare) and len(condition.ops) == 1 and not _ordered(condition.ops[0])
    if not inverted and not isinstance(condition, ast.UnaryOp):  # Those two are inverted as what they are.
        yield Swap(f"condition '{said(condition)}' negated", condition, f"not {_text(condition)}")


def _ordered(operator: ast.cmpop) -> bool:
    return isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _of_effect(node: ast.YieldFrom) -> Iterator[Swap]:
    reply = reply_to(node.value)
    if reply is not None:
        # Without its only effect a function is still to be a generator.
        yield Swap(f"no '{said(node)}'", node, f"((yield from ()) or {reply})")


def _of_comparison(node: ast.Compare) -> Iterator[Swap]:
    for place, operator in enumerate(node.ops):
        other = deepcopy(node)
        other.ops[place] = COMPARISONS[type(operator)]()
        yield Swap(f"'{said(node)}' turned into '{said(other)}'", node, _text(other))


def _of_call(node: ast.Call, module: ModuleType) -> Iterator[Swap]:
    name = ast.unparse(node.func)
    for (effect, place), without in ARGUMENTS.items():
        if name != effect or place >= len(node.args):
            continue
        text = without.format(ast.unparse(node.args[place]))
        if ast.unparse(node.args[place]) != text:
            yield Swap(f"'{said(node)}' with {text} for '{said(node.args[place])}'", node.args[place], text)
    if name in UNDONE:
        text = UNDONE[name].format(*map(ast.unparse, node.args))
        yield Swap(f"'{said(node)}' left at '{text}'", node, text)
    for place, argument in enumerate(node.args):
        if place >= _required(name, module):
            other = deepcopy(node)
            del other.args[place]
            yield Swap(f"'{said(node)}' without '{said(argument)}'", node, _text(other))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and _optional(name, keyword.arg, module):
            other = deepcopy(node)
            del other.keywords[place]
            yield Swap(f"'{said(node)}' without '{keyword.arg}'", node, _text(other))


def _required(name: str, module: ModuleType) -> int:
    """How many arguments a record must have; any number if it is no record."""
    made = _record(name, module)
    return (
        99
        if made is None
        else sum(field.default is MISSING and field.default_factory is MISSING for field in fields(made))
    )


def _optional(name: str, keyword: str, module: ModuleType) -> bool:
    made = _record(name, module)
    if made is None:
        return name == "replace"
    return any(field.name == keyword and field.default is not MISSING for field in fields(made))


def _record(name: str, module: ModuleType) -> Any:
    made = getattr(module, name, None)
    is_effect = any(effect == name for effect, _ in ARGUMENTS)
    return made if isinstance(made, type) and is_dataclass(made) and not is_effect else None


def _joined(node: ast.BoolOp, operands: list[ast.expr]) -> str:
    return _text(operands[0] if len(operands) == 1 else ast.BoolOp(node.op, operands))


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            yield part
        elif isinstance(part, ast.keyword):
            yield part.value
        elif isinstance(part, ast.comprehension):
            yield from (part.iter, *part.ifs)


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return (
        f"({text})"
        if isinstance(node, ast.BoolOp | ast.Compare | ast.BinOp | ast.IfExp | ast.UnaryOp | ast.NamedExpr)
        else text
    )


def said(node: ast.AST) -> str:
    """A node in at most so many characters."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
