"""Bicep files as Python values, read from the syntax tree of tree-sitter-bicep; unknown syntax is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

ROOT: Final = Path(__file__).resolve().parents[2]
INFRA: Final = ROOT / "infra"
NEW_APP: Final = ROOT / "packages" / "exactlyonce-dev" / "exactlyonce_dev" / "app-template" / "infra"
"""Infrastructure of an app that `exactlyonce new` writes: a main file of its own, and parts that are those of the sample."""
FILES: Final = sorted([*INFRA.rglob("*.bicep"), *NEW_APP.glob("*.bicep")])
REGISTRY: Final = "br/public:avm/res/"

_HERE: Final[Mapping[str, Callable[..., Any]]] = {
    "concat": lambda *lists: [item for given in lists for item in given],
    "map": lambda items, function: [function(item) for item in items],
    "union": lambda *objects: {name: value for given in objects for name, value in given.items()},
    "empty": lambda value: not value,
    "length": len,
}
_IN_AZURE: Final = frozenset(
    [
        "first",
        "guid",
        "replace",
        "resourceId",
        "split",
        "subscription",
        "subscriptionResourceId",
        "toLower",
        "uniqueString",
    ]
)


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


class Later(str):
    """What only a deployment knows; the text says where it comes from."""


@dataclass(frozen=True)
class Module:
    """A module of the registry, as it would be deployed.

    Attributes:
        reference: name and version, such as `web/site:0.24.0`.
        params: what it is given.
    """

    reference: str
    params: dict[str, Any]


@dataclass
class File:
    """A Bicep file with values for its parameters.

    Attributes:
        path: of the file.
        given: values of parameters; the others have their defaults.
    """

    path: Path
    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def tree(self) -> Node:
        """The root of the syntax tree."""
        return parse(self.path.read_bytes())

    def declared(self, kind: str) -> dict[str, Node]:
        """Declarations of a kind at the top of the file (`parameter`, `variable`, `output`, `module`, `resource`), by name."""
        found = (node for node in self.tree.named_children if node.type == f"{kind}_declaration")
        return {name_of(node): node for node in found}

    @property
    def required(self) -> set[str]:
        """Parameters without a default."""
        return {name for name, node in self.declared("parameter").items() if default_of(node) is None}

    @property
    def allowed(self) -> dict[str, list[Any]]:
        """What `@allowed` says, by parameter."""
        found: dict[str, list[Any]] = {}
        decorators: list[Node] = []
        for node in parts_of(self.tree):
            if node.type != "decorators":
                calls = (decorator.named_children[0] for decorator in decorators)
                values = [call.named_children[1] for call in calls if text_of(call.named_children[0]) == "allowed"]
                found |= {name_of(node): self.evaluate(item.named_children[0]) for item in values}
            decorators = node.named_children if node.type == "decorators" else []
        return found

    def value(self, name: str) -> Any:
        """The value of a parameter or variable."""
        if name in self.given:
            return self.given[name]
        declaration = self.declared("parameter").get(name) or self.declared("variable").get(name)
        default = None if declaration is None else default_of(declaration)
        if default is None:
            if name in self.declared("module") or name in self.declared("resource"):
                return Later(name)
            raise LookupError(f"{self.path.name}: {name} has no value")
        return self.evaluate(default)

    def outputs(self) -> dict[str, Any]:
        """Values of all outputs."""
        return {name: self.evaluate(node.named_children[-1]) for name, node in self.declared("output").items()}

    def modules(self) -> Iterator[Module]:
        """The registry's modules that would be deployed, those of files that this one uses included."""
        for node in self.declared("module").values():
            reference = reference_of(node)
            body = self._wanted(node)
            if body is None:
                continue
            params = body.get("params", {})
            if reference.startswith(REGISTRY):
                yield Module(reference.removeprefix(REGISTRY), params)
            else:
                yield from File(self.path.parent / reference, params).modules()

    def resources(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Type and body of each resource that would be deployed without a module of the registry, those of files included."""
        for node in self.declared("resource").values():
            if "existing" not in (child.type for child in node.children):
                found = self.evaluate(node.named_children[-1])
                yield from ((reference_of(node), body) for body in (found if isinstance(found, list) else [found]))
        for node in self.declared("module").values():
            body = self._wanted(node)
            if body is not None and not reference_of(node).startswith(REGISTRY):
                yield from File(self.path.parent / reference_of(node), body["params"]).resources()

    def _wanted(self, declaration: Node) -> dict[str, Any] | None:
        """The body of a module; None if its condition is false."""
        body = declaration.named_children[-1]
        if body.type == "if_statement":
            condition, body = body.named_children
            if not self.evaluate(condition):
                return None
        found: dict[str, Any] = self.evaluate(body)
        return found

    def evaluate(self, node: Node, local: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression.

        Args:
            node: of the expression.
            local: arguments of the functions it stands in.

        Raises:
            NotImplementedError: it is of a kind that this does not know.
        """
        return _Expression(self, local or {}).value(node)


@dataclass(frozen=True)
class _Expression:
    """Evaluates within a file. Names of the methods are types of nodes."""

    file: File
    local: Mapping[str, Any]

    def value(self, node: Node) -> Any:
        evaluate = getattr(self, node.type, None)
        if evaluate is None:
            raise NotImplementedError(
                f"{self.file.path.name}:{node.start_point.row + 1}: {node.type} {text_of(node)[:60]}"
            )
        return evaluate(node)

    def string(self, node: Node) -> str:
        parts = [self.value(part) for part in node.named_children]
        return "".join(map(str, parts)) if len(parts) != 1 else parts[0]

    def string_content(self, node: Node) -> str:
        return text_of(node)

    def interpolation(self, node: Node) -> Any:
        return self.value(node.named_children[0])

    def number(self, node: Node) -> int:
        return int(text_of(node))

    def boolean(self, node: Node) -> bool:
        return text_of(node) == "true"

    def null(self, node: Node) -> None:
        del node

    def identifier(self, node: Node) -> Any:
        name = text_of(node)
        return self.local[name] if name in self.local else self.file.value(name)

    def parenthesized_expression(self, node: Node) -> Any:
        return self.value(node.named_children[0])

    def array(self, node: Node) -> list[Any]:
        return [self.value(item) for item in parts_of(node)]

    def object(self, node: Node) -> dict[str, Any]:
        return {name: self.value(value) for name, value in properties_of(node).items()}

    def for_statement(self, node: Node) -> list[Any]:
        variable, items, body = node.named_children
        return [self.file.evaluate(body, {**self.local, text_of(variable): item}) for item in self.value(items)]

    def member_expression(self, node: Node) -> Any:
        of, name = node.named_children
        known = self.local.get(text_of(of))
        return known[text_of(name)] if isinstance(known, dict) else Later(text_of(node))

    def resource_expression(self, node: Node) -> Later:
        return Later(text_of(node))

    def ternary_expression(self, node: Node) -> Any:
        condition, consequence, alternative = node.named_children
        return self.value(consequence if self.value(condition) else alternative)

    def binary_expression(self, node: Node) -> Any:
        left, operator, right = node.children
        found = self.value(left)
        match operator.type:
            case "??":
                return self.value(right) if found is None else found
            case "==":
                return found == self.value(right)
            case "+":
                return found + self.value(right)
        raise NotImplementedError(operator.type)

    def call_expression(self, node: Node) -> Any:
        function, arguments = node.named_children
        name = text_of(function)
        if name in _IN_AZURE:
            return Later(text_of(node))
        if name == "loadTextContent":
            return (self.file.path.parent / self.value(arguments.named_children[0])).read_text()
        if name not in _HERE:
            raise NotImplementedError(f"{self.file.path.name}: {name}()")
        return _HERE[name](*(self.value(item) for item in parts_of(arguments)))

    def lambda_expression(self, node: Node) -> Callable[[Any], Any]:
        argument, body = node.named_children
        name = text_of(argument)
        return lambda value: self.file.evaluate(body, {**self.local, name: value})


def resources(**parameters: Any) -> list[tuple[str, dict[str, Any]]]:
    """The resources, by type, that main.bicep deploys by itself with these parameters."""
    return list(_main(parameters).resources())


def deployment(**parameters: Any) -> list[Module]:
    """The registry's modules that main.bicep deploys with these parameters."""
    return list(_main(parameters).modules())


def _main(parameters: Mapping[str, Any]) -> File:
    return File(INFRA / "main.bicep", {"environmentName": "test", "location": "westeurope", **parameters})


def one(modules: list[Module], name: str) -> dict[str, Any]:
    """What the only module of this name is given."""
    (found,) = (module.params for module in modules if module.reference.partition(":")[0] == name)
    return found
