"""What a compiler would tell: modules get what they take, outputs exist, defaults are allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tree_sitter import Node

from tests.infra.bicep import FILES, REGISTRY, File, default_of, deployment, properties_of, reference_of, text_of, walk

INTERFACES: Final[dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "module_interfaces.json").read_text()
)
"""Names of parameters and outputs of the registry's modules, from their source in Azure/bicep-registry-modules."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_modules_get_what_they_take_and_all_they_need(path: Path) -> None:
    assert list(misfits(File(path))) == []


def misfits(file: File) -> Iterator[str]:
    """Parameters that a module does not have or misses, and outputs that it does not have."""
    for name, node in file.declared("module").items():
        required, known, outputs = interface(file.path.parent, reference_of(node))
        given = set(properties_of(properties_of(body_of(node))["params"]))
        yield from (f"{name} misses {item}" for item in sorted(required - given))
        yield from (f"{name} has no parameter {item}" for item in sorted(given - known))
        yield from (f"{name} has no output {output}" for output in sorted(outputs_used(file.tree, name) - outputs))


def interface(folder: Path, reference: str) -> tuple[set[str], set[str], set[str]]:
    """Required parameters, all parameters, and outputs of a module that a file of this folder uses."""
    if not reference.startswith(REGISTRY):
        file = File(folder / reference)
        return file.required, set(file.declared("parameter")), set(file.declared("output"))
    found = INTERFACES[reference.removeprefix(REGISTRY)]
    return set(found["required"]), {*found["required"], *found["optional"]}, set(found["outputs"])


def body_of(module: Node) -> Node:
    """The object behind the equals sign, whatever it depends on."""
    body = module.named_children[-1]
    return body.named_children[-1] if body.type == "if_statement" else body


def outputs_used(tree: Node, module: str) -> set[str]:
    """The names after `module.outputs.`."""
    members = [node.named_children for node in walk(tree) if node.type == "member_expression"]
    return {
        text_of(name) for of, name in members if [text_of(child) for child in of.named_children] == [module, "outputs"]
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_defaults_are_among_the_values_that_are_allowed(path: Path) -> None:
    file = File(path)
    for name, allowed in file.allowed.items():
        default = default_of(file.declared("parameter")[name])
        assert default is None or file.evaluate(default) in allowed


def test_all_of_it_can_be_read_with_every_switch_on_and_off() -> None:
    small = {module.reference for module in deployment()}
    large = {module.reference for module in deployment(deploySpark=True, deployServiceBus=True)}
    assert large == set(INTERFACES)
    assert {item.partition(":")[0] for item in large - small} == {"synapse/workspace", "service-bus/namespace"}


def test_a_module_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "wrong.bicep"
    path.write_text(
        """
        module app 'br/public:avm/res/web/site:0.24.0' = if (wanted) {
          params: { name: 'n', kind: 'x', apSettings: {} }
        }
        output a string = app!.outputs.defaultHostName
        output b string = app.outputs.?name ?? ''
        """
    )
    assert list(misfits(File(path))) == [
        "app misses serverFarmResourceId",
        "app has no parameter apSettings",
        "app has no output defaultHostName",
    ]
