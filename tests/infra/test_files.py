"""The Bicep files by themselves: they parse, pin what they use, and hold no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tree_sitter import Node

from tests.infra.bicep import FILES, File, parse, reference_of, text_of, walk

SECRET: Final = re.compile(r"key|password|secret|connection_?string|credential|sas(?![a-z])", re.IGNORECASE)
HARMLESS: Final = {
    "allowSharedKeyAccess": "switches keys off",
    "disableKeyBasedMetadataWriteAccess": "switches keys off",
    "basicPublishingCredentialsPolicies": "switches passwords off",
    "AzureWebJobsStorage__credential": "says that it is an identity",
    "ServiceBus__credential": "the same",
    "connectionString": "of Application Insights: an address, to which only an identity may send",
    "APPLICATIONINSIGHTS_CONNECTION_STRING": "the same",
}


def broken(tree: Node) -> list[int]:
    """Lines that are no Bicep."""
    return [node.start_point.row + 1 for node in walk(tree) if node.is_error or node.is_missing]


def unpinned(reference: str) -> bool:
    return not re.fullmatch(r"br/public:avm/res/[a-z-]+/[a-z-]+:\d+\.\d+\.\d+|app/[a-z-]+\.bicep", reference)


def secrets(tree: Node) -> Iterator[str]:
    """What would ask Azure for a secret, take one, or hand one out."""
    for node in walk(tree):
        if node.type == "call_expression" and text_of(node.named_children[0]).lower().startswith("list"):
            yield f"calls {text_of(node.named_children[0])}"
        if node.type == "decorator" and "secure" in text_of(node):
            yield text_of(node)
        if node.type in ("identifier", "property_identifier"):
            name = text_of(node)
            if SECRET.search(name) and name not in HARMLESS:
                yield f"names {name}"
        if node.type == "string" and re.search(r"AccountKey=|SharedAccess|DefaultEndpointsProtocol", text_of(node)):
            yield text_of(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_bicep(path: Path) -> None:
    assert broken(File(path).tree) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_module_is_pinned_or_a_file_of_ours(path: Path) -> None:
    found = [reference_of(node) for node in File(path).declared("module").values()]
    assert [item for item in found if unpinned(item)] == []
    assert [item for item in found if item.startswith("app/") and not (path.parent / item).exists()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_asks_for_a_secret_takes_one_or_hands_one_out(path: Path) -> None:
    assert list(secrets(File(path).tree)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_whatever_is_declared_is_used(path: Path) -> None:
    tree = File(path).tree
    uses = [text_of(node) for node in walk(tree) if node.type == "identifier"]
    declared = {**File(path).declared("parameter"), **File(path).declared("variable")}
    assert [name for name in declared if uses.count(name) < 2] == []


@pytest.mark.parametrize(
    "source",
    [
        "output k string = account.listKeys().keys[0].value",
        "output k string = listConnectionStrings(account.id, '2024-01-01').value",
        "@secure()\nparam p string",
        "param adminPassword string",
        "output primaryKey string = x",
        "var v = 'DefaultEndpointsProtocol=https;AccountName=a'",
        "var v = account.outputs.primaryConnectionString",
    ],
)
def test_a_secret_is_noticed(source: str) -> None:
    assert list(secrets(parse(source.encode())))


@pytest.mark.parametrize(
    "reference",
    [
        "br/public:avm/res/web/site:latest",
        "br/public:avm/res/web/site",
        "br/public:avm/res/web/site:0.24",
        "../other.bicep",
    ],
)
def test_a_module_that_is_not_pinned_is_noticed(reference: str) -> None:
    assert unpinned(reference)


def test_a_broken_file_is_noticed() -> None:
    assert broken(parse(b"param a string =\nvar b = {"))
