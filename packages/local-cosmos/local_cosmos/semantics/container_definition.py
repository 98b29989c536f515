"""The definition of a container: its name, partition key, unique keys, time to live, indexing and computed properties."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from local_cosmos.semantics import expiry
from local_cosmos.semantics.computed_properties import ComputedProperties
from local_cosmos.semantics.errors import RefusedError, bad_request
from local_cosmos.semantics.indexing import Indexing, completed
from local_cosmos.semantics.partition_keys import PartitionKeyDefinition
from local_cosmos.semantics.transactions import checked_name
from local_cosmos.semantics.unique_keys import UniqueKeys
from local_cosmos.values import UNDEFINED, JsonObject

_ECHOED = ("conflictResolutionPolicy", "geospatialConfig")
"""Settings that change nothing here but are given back."""

_UNDERSTOOD = frozenset(
    {*_ECHOED, "id", "indexingPolicy", "partitionKey", "uniqueKeyPolicy", "defaultTtl", "computedProperties"}
)
_OF_KEYS = frozenset({"paths", "kind", "version"})


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    """The settings of a container.

    Attributes:
        keys: Where items have their partition key.
        unique_keys: What no two items of one partition key may share.
        default_ttl: Seconds, -1, or None for no time to live at all.
        indexing: What ORDER BY may sort by.
        computed: What queries find besides what is stored.
        properties: All settings as the client gave them.
    """

    name: str
    keys: PartitionKeyDefinition
    unique_keys: UniqueKeys
    default_ttl: int | None
    indexing: Indexing
    computed: ComputedProperties
    properties: JsonObject

    @classmethod
    def parse(cls, content: object) -> ContainerDefinition:
        """Read the body of a create request.

        Raises:
            RefusedError: 400; not valid, or a setting that would change behaviour and is not supported.
        """
        if not isinstance(content, dict):
            raise bad_request("A container is a JSON object.")
        _require_understood(content, _UNDERSTOOD, "container")
        keys = PartitionKeyDefinition.parse(content.get("partitionKey"))
        _require_understood(content["partitionKey"], _OF_KEYS, "partition key")
        unique_keys = UniqueKeys.parse(content.get("uniqueKeyPolicy"))
        ttl = content.get("defaultTtl")
        default_ttl = expiry.checked(UNDEFINED if ttl is None else ttl, "container")
        policy = completed(content.get("indexingPolicy") or {})
        indexing = Indexing.parse(policy)
        properties: JsonObject = {"indexingPolicy": policy} | {
            name: content[name] for name in _ECHOED if name in content
        }
        properties |= {"id": checked_name(content), "partitionKey": _as_given(content["partitionKey"], keys)}
        if content.get("uniqueKeyPolicy") is not None:
            properties["uniqueKeyPolicy"] = content["uniqueKeyPolicy"]
        if default_ttl is not None:
            properties["defaultTtl"] = default_ttl
        computed = ComputedProperties.parse(content.get("computedProperties"))
        if computed.queries:
            properties["computedProperties"] = content["computedProperties"]
        return cls(properties["id"], keys, unique_keys, default_ttl, indexing, computed, properties)

    def replaced_by(self, content: object) -> ContainerDefinition:
        """The settings after a replace, which may not change name, partition key and unique keys."""
        new = ContainerDefinition.parse(content)
        if (new.name, new.keys) != (self.name, self.keys):
            raise bad_request("The id and the partition key of a container cannot be changed.")
        if new.unique_keys != self.unique_keys:  # The service says so, too, where a replace leaves them out.
            raise RefusedError(403, "The unique index cannot be modified. Create the container anew to change it.")
        return new


def _require_understood(content: JsonObject, understood: Container[str], of: str) -> None:
    """Refuse settings that would change what the service does, and change nothing here; system properties may be there."""
    for name, value in content.items():
        if value and name not in understood and not name.startswith("_"):
            raise bad_request(f"This emulator does not support {name!r} of a {of}.")


def _as_given(definition: JsonObject, keys: PartitionKeyDefinition) -> JsonObject:
    """The definition of the partition key as it is given back: without a version where none was given."""
    given = {"kind": "Hash", **definition}
    if given.pop("version", None) is not None:
        given["version"] = keys.version
    return given
