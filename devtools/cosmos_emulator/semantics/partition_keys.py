"""Partition keys and their effective hash (version 2), which says in which physical partition an item lives.

The hash is the service's own: MurmurHash3 (128 bit, x64) over type-tagged components, read as a big-endian number with
its two highest bits cleared; a hierarchical key hashes each level by itself and joins the results.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import mmh3

from devtools.cosmos_emulator.semantics.errors import bad_request
from devtools.cosmos_emulator.values import UNDEFINED, JsonObject, MalformedJsonError, follow, parse, serialise

SMALLEST: Final = ""
"""The first effective partition key."""

LARGEST: Final = "FF"
"""The end, exclusive, of all effective partition keys; they are compared as text."""

MOST_LEVELS: Final = 3
VERSION: Final = 2
"""Of the hash; the one that is supported."""

_VERSION_IN_JAVA: Final = "V2"
"""The same as azure-cosmos for Java says it when it creates a container; recorded from traffic of 4.81.0."""


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A partition key value.

    Attributes:
        text: Its JSON as in the `x-ms-documentdb-partitionkey` header, canonical: equal keys have equal texts.
        effective: Its hash in hexadecimal digits.
        levels: Number of components; fewer than the container's paths make it a prefix.
    """

    text: str
    effective: str
    levels: int


@dataclass(frozen=True, slots=True)
class PartitionKeyDefinition:
    """Where a container finds the partition key in its items.

    Attributes:
        paths: One property path per level.
    """

    paths: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, definition: object) -> PartitionKeyDefinition:
        """Read `partitionKey` of a container: `{"paths": ["/a"], "kind": "Hash", "version": 2}`."""
        if not isinstance(definition, Mapping) or not definition.get("paths"):
            raise bad_request("The partition key definition is missing: partitionKey.paths.")
        if not isinstance(definition["paths"], list):
            raise bad_request("The paths of a partition key definition are a list.")
        paths = tuple(property_names(path, "partition key") for path in definition["paths"])
        kind = definition.get("kind", "Hash")
        if definition.get("version") not in (VERSION, _VERSION_IN_JAVA):
            raise bad_request("This emulator supports partitionKey.version 2 only; state it.")
        if (kind, len(paths)) != ("Hash", 1) and not (kind == "MultiHash" and len(paths) <= MOST_LEVELS):
            raise bad_request(f"Partition key of kind {kind!r} with {len(paths)} paths is not supported.")
        return cls(paths)

    def of(self, document: JsonObject) -> PartitionKey:
        """The key of an item."""
        components = [follow(document, path) for path in self.paths]
        return _key(serialise([{} if component is UNDEFINED else component for component in components]).decode())

    def read(self, text: object, *, prefix: bool = False) -> PartitionKey:
        """The key in a request's header; only a query may give a prefix of a hierarchical key."""
        if text is None:
            raise bad_request("PartitionKey value must be supplied for this operation.")
        if not isinstance(text, str):  # A bulk operation says it in its body.
            raise bad_request("PartitionKey value must be the text of a JSON array.")
        key = _key(text)
        if key.levels != len(self.paths) and not (prefix and 0 < key.levels < len(self.paths)):
            raise bad_request("Partition key provided either doesn't correspond to definition in the collection.", 1001)
        return key


def property_names(path: object, of: str) -> tuple[str, ...]:
    """The names along a path such as `/a/"b c"`.

    Args:
        path: From the root of an item.
        of: What has the path.

    Raises:
        RefusedError: 400; it is none.
    """
    names = tuple(name.strip('"') for name in str(path).split("/")[1:])
    if not names or not all(names):
        raise bad_request(f"The {of} path {path!r} is not valid.")
    return names


def canonical(value: Any) -> Any:
    """A scalar as it is compared: numbers are doubles, however they are written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=65_536)
def _key(text: str) -> PartitionKey:
    try:
        components = parse(text)
    except MalformedJsonError as error:
        raise bad_request(f"The partition key {text!r} is not a JSON array.") from error
    if not isinstance(components, list):
        raise bad_request(f"The partition key {text!r} is not a JSON array.")
    compared = [_canonical(component) for component in components]
    effective = "".join(_hash(component) for component in compared)
    return PartitionKey(serialise(compared).decode(), effective, len(compared))


def _canonical(component: Any) -> Any:
    if isinstance(component, list) or (isinstance(component, dict) and component):
        raise bad_request("A partition key component must be a string, a number, a boolean, null or undefined.")
    return canonical(component)


def _hash(component: object) -> str:
    digest = mmh3.mmh3_x64_128_digest(_tagged(component))[::-1]
    return (bytes([digest[0] & 0x3F]) + digest[1:]).hex().upper()


def _tagged(component: object) -> bytes:
    match component:
        case None:
            return b"\x01"
        case False:
            return b"\x02"
        case True:
            return b"\x03"
        case int() | float():
            return b"\x05" + struct.pack("<d", component)
        case str():
            return b"\x08" + component.encode("utf-8", "surrogatepass") + b"\xff"
        case _:
            return b"\x00"
