"""Partition keys: where items have them, how requests give them, and which are equal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from local_cosmos.semantics.errors import bad_request
from local_cosmos.semantics.key_hashes import VERSION_1, VERSION_2, KeyHash
from local_cosmos.values import UNDEFINED, JsonObject, MalformedJsonError, follow, parse, serialise

_NAME: Final = re.compile(r"""/(?:"([^"]+)"|'([^']+)'|([^/"]+))""")
"""A name along a path; quoted, it may have slashes."""
MOST_LEVELS: Final = 3
_HASHES: Final[Mapping[int, KeyHash]] = {1: VERSION_1, 2: VERSION_2}
_VERSIONS: Final[Mapping[int, tuple[object, ...]]] = {1: (None, 1, "V1"), 2: (2, "V2")}
"""How clients say the version; azure-cosmos for Java says `V2`, recorded from traffic of 4.81.0."""


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
        version: Of the hash, 1 or 2.
    """

    paths: tuple[tuple[str, ...], ...]
    version: int = 2

    @classmethod
    def parse(cls, definition: object) -> PartitionKeyDefinition:
        """Read `partitionKey` of a container: `{"paths": ["/a"], "kind": "Hash", "version": 2}`; no version is version 1.

        Raises:
            RefusedError: 400; it is none that is supported.
        """
        if not isinstance(definition, Mapping) or not definition.get("paths"):
            raise bad_request("The partition key definition is missing: partitionKey.paths.")
        if not isinstance(definition["paths"], list):
            raise bad_request("The paths of a partition key definition are a list.")
        paths = tuple(property_names(path, "partition key") for path in definition["paths"])
        kind = definition.get("kind", "Hash")
        stated = definition.get("version")
        version = next((known for known, names in _VERSIONS.items() if stated in names), None)
        if version is None:
            raise bad_request(f"partitionKey.version is 1 or 2, not {stated!r}.")
        if len(paths) > MOST_LEVELS:
            raise bad_request(f"Too many partition key paths: {len(paths)}. A partition key has {MOST_LEVELS} at most.")
        if (kind, len(paths)) != ("Hash", 1) and kind != "MultiHash":
            raise bad_request(f"Partition key of kind {kind!r} with {len(paths)} paths is not supported.")
        if kind == "MultiHash" and version != 2:  # noqa: PLR2004
            raise bad_request("A hierarchical partition key has version 2: state partitionKey.version.")
        return cls(paths, version)

    @property
    def hashing(self) -> KeyHash:
        """What says where a key lies."""
        return _HASHES[self.version]

    def of(self, document: JsonObject) -> PartitionKey:
        """The key of an item."""
        components = [follow(document, path) for path in self.paths]
        # An object is no key: clients say `undefined` for one.
        undefined = [component is UNDEFINED or isinstance(component, dict) for component in components]
        text = serialise(
            [{} if item else component for item, component in zip(undefined, components, strict=True)]
        ).decode()
        return _key(text, self.hashing)

    def read(self, text: object, *, prefix: bool = False) -> PartitionKey:
        """The key in a request's header; only a query may give a prefix of a hierarchical key."""
        if text is None:
            raise bad_request("PartitionKey value must be supplied for this operation.")
        if not isinstance(text, str):  # A bulk operation says it in its body.
            raise bad_request("PartitionKey value must be the text of a JSON array.")
        key = _key(text, self.hashing)
        if key.levels != len(self.paths) and not (prefix and 0 < key.levels < len(self.paths)):
            raise bad_request(
                "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition "
                "key field values specified in the document.",
                1001,
            )
        return key


def property_names(path: object, of: str) -> tuple[str, ...]:
    """The names along a path such as `/a/"b c"`.

    Args:
        of: What has the path.

    Raises:
        RefusedError: 400; it is none.
    """
    names = tuple("".join(found) for found in _NAME.findall(str(path)))
    if not names or not re.fullmatch(f"(?:{_NAME.pattern})+", str(path)):
        raise bad_request(f"The {of} path {path!r} is not valid.")
    return names


def canonical(value: Any) -> Any:
    """A scalar as it is compared: numbers are doubles, however they are written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=65_536)
def _key(text: str, hashing: KeyHash) -> PartitionKey:
    try:
        components = parse(text)
    except MalformedJsonError as error:
        raise bad_request(f"The partition key {text!r} is not a JSON array.") from error
    if not isinstance(components, list):
        raise bad_request(f"The partition key {text!r} is not a JSON array.")
    compared = [_canonical(component) for component in components]
    return PartitionKey(serialise(compared).decode(), hashing.effective(compared), len(compared))


def _canonical(component: Any) -> Any:
    if isinstance(component, list) or (isinstance(component, dict) and component):
        raise bad_request("A partition key component must be a string, a number, a boolean, null or undefined.")
    return canonical(component)
