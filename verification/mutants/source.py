"""Mutants as data: a name, a key, a diff, and a module that can be run."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import Final, NamedTuple

from verification.mutants.operators import Swap, conditions, forced, swaps
from verification.twins.modules import EVERYTHING

# A name quotes the source, and so changes with it. A key is made of the syntax tree of the function, as shipped and mutated,
# without comments, sentences, annotations, and the names of the function itself and of its local variables.


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
        exact, _, shape = text.partition("-")
        return cls(exact, shape)


def key_of(shipped: Key, mutated: Key) -> Key:
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


Function = ast.FunctionDef | ast.AsyncFunctionDef
Operators = Callable[[Function, ModuleType], Iterable[Swap]]
"""What can be done to a function of a module."""
LEFT_OUT: Final = frozenset({"__post_init__"})
"""Functions that only refuse nonsense in settings: unit tests see to them."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change.

    Attributes:
        name: function, and what was done; with its module only where another module has a function of that name.
        line: where; for a statement of several lines the first.
        start, end: the bytes of it that the change takes out.
    """

    name: str
    form: Key
    function: bytes
    module: str
    line: int
    original: str
    start: int
    end: int
    text: str

    @property
    def key(self) -> Key:
        """By which it is found again when files are moved and names are changed. It takes most of the time, and few ask."""
        return key_of(self.form, form_of(_parsed(self.function)))

    @property
    def source(self) -> str:
        original = self.original.encode()
        return (original[: self.start] + self.text.encode() + original[self.end :]).decode()

    @property
    def diff(self) -> str:
        lines = unified_diff(self.original.splitlines(), self.source.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of a module.

    Attributes:
        outermost: the function that it is a part of; itself for most.
    """

    name: str
    node: Function
    outermost: Function


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of every module whose generators the worlds run."""
    return tuple(mutants_of(EVERYTHING))


def mutants_of(modules: Iterable[ModuleType], operators: Operators | None = None) -> Iterator[Mutant]:
    """Every mutant of these modules, in the order of the source; those that come to the same text once.

    Args:
        operators: what is done to each of their functions; by default, what is done to strategies.
    """
    trees = {module: ast.parse(inspect.getsource(module)) for module in modules}
    times = Counter(name for tree in trees.values() for name in {function.name for function in _functions(tree)})
    ambiguous = {name for name, number in times.items() if number > 1}
    for module, tree in trees.items():
        yield from _of_module(module, tree, ambiguous, operators or _of_strategies)


def _of_module(
    module: ModuleType, tree: ast.Module, ambiguous: Collection[str], operators: Operators
) -> Iterator[Mutant]:
    source = inspect.getsource(module)
    starts = _starts(source.encode())
    names: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    for function in _functions(tree):
        alias = f"{module.__name__.removeprefix('exactlyonce.protocols.')}." if function.name in ambiguous else ""
        first, last = _lines(function.outermost)
        shipped = _parsed(source.encode()[starts[first - 1] : starts[last]])
        seen.add((function.outermost.name, ast.dump(shipped)))
        form = form_of(shipped)
        for swap in sorted(operators(function.node, module), key=_place):
            node = swap.node
            assert node.end_lineno is not None  # noqa: S101
            assert node.end_col_offset is not None  # noqa: S101
            start = starts[node.lineno - 1] + node.col_offset  # Columns count bytes.
            end = starts[node.end_lineno - 1] + node.end_col_offset
            around = source.encode()[starts[first - 1] : start], source.encode()[end : starts[last]]
            changed = swap.text.encode().join(around)
            again = (function.outermost.name, ast.dump(_parsed(changed)))
            if again in seen:
                continue
            seen.add(again)
            name = f"{alias}{function.name}: {swap.what}"
            names[name] += 1
            place = f" (place {names[name]})" if names[name] > 1 else ""
            yield Mutant(name + place, form, changed, module.__name__, node.lineno, source, start, end, swap.text)


def _functions(tree: ast.Module) -> list[_Function]:
    found: list[_Function] = []
    waiting: list[tuple[ast.AST, str, Function | None]] = [(tree, "", None)]
    for node, prefix, outermost in waiting:  # It grows as long as something is found.
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                if child.name not in LEFT_OUT:
                    found.append(_Function(prefix + child.name, child, outermost or child))
                waiting.append((child, f"{prefix}{child.name}.", outermost or child))
            elif isinstance(child, ast.ClassDef):
                waiting.append((child, f"{prefix}{child.name}.", outermost))
            else:
                waiting.append((child, prefix, outermost))
    return found


def _lines(function: Function) -> tuple[int, int]:
    """First and last line of a function, from 1; decorators included."""
    assert function.end_lineno is not None  # noqa: S101
    return min([function.lineno, *(item.lineno for item in function.decorator_list)]), function.end_lineno


def _starts(source: bytes) -> list[int]:
    """Where each line starts, in bytes; and at last the end."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _parsed(lines: bytes) -> ast.Module:
    return ast.parse(b"if True:\n" + lines if lines[:1].isspace() else lines)


def _of_strategies(function: Function, module: ModuleType) -> Iterator[Swap]:
    yield from (swap for condition in conditions(function) for swap in forced(condition))
    yield from swaps(function, module)


def _place(swap: Swap) -> tuple[int, int]:
    return swap.node.lineno, swap.node.col_offset
