"""Who is who: identities of messages, entities and outputs, and the chance that derives from them.

Everything a handler could want from outside (ids, random numbers) derives from the message it handles and the entity it
handles it for, so that handling a message again gives the same again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Final
from urllib.parse import quote
from uuid import UUID, uuid5

_NAMESPACE: Final = UUID("0b4f3a2e-7c55-5d0c-9d4e-2f1f0a6c9b11")
"""Root of all derived ids. Changing it would make every redelivered message publish under new ids."""

_CANONICAL: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(separators=(",", ":"))

LONGEST_ID: Final = 255
"""Characters of a document id that every SDK and tool takes. The service takes 1,023 bytes, which they never exceed."""
ID_RULE: Final = f"1 to {LONGEST_ID} characters, none of / \\ ? # nor tabs or line ends, and no space at its end"
_FORBIDDEN_IN_ID: Final = re.compile(r"[/\\?#\t\r\n]|[ ]\Z")  # Refused by the SDK; `/` and `\` by the service, too.

PartitionValue = str | int | float | bool


def is_document_id(id: object) -> bool:
    """Whether this may be the id of a document in Cosmos DB: a string as `ID_RULE` says."""
    return isinstance(id, str) and 0 < len(id) <= LONGEST_ID and not _FORBIDDEN_IN_ID.search(id)


def message_key(source: str, id: str) -> str:
    """A message's identity as one string: source, `/`, id; `%` and `/` in either are percent-encoded.

    >>> message_key("web", "m/42")
    'web/m%2F42'
    """
    return f"{_encode(source)}/{_encode(id)}"


@dataclass(frozen=True)
class EntityRef:
    """Names one entity: its type, the values of its full partition key, its document id.

    It has no slots, so that it may keep `key` and `source`, which are asked for ten times per message.
    """

    type: str
    partition: tuple[PartitionValue, ...]
    id: str

    @cached_property
    def key(self) -> str:
        """Canonical JSON array of type, partition key values and id: the entity's partition in the library container."""
        return _CANONICAL.encode([self.type, *self.partition, self.id])

    @cached_property
    def source(self) -> str:
        """The CloudEvents source of everything this entity sends.

        The partition is left out where it is just the id, as for most entities.
        """
        partition = () if self.partition == (self.id,) else self.partition
        return "/".join(quote(str(part), safe="") for part in (self.type, *partition, self.id))

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Origin:
    """One message handled for one entity: what ids and chance derive from."""

    entity: EntityRef
    message: str

    def output_id(self, index: int) -> str:
        """Id of the index-th output: the same in every attempt, so that the next handler knows a copy when it sees one."""
        return self._derive("output", index)

    def new_id(self, index: int) -> str:
        """Id of the index-th thing the handler asks an id for."""
        return self._derive("id", index)

    def random(self) -> Random:
        """A generator of random numbers seeded by the origin. Not for secrets."""
        return Random(self._derive("random", 0))

    def _derive(self, purpose: str, index: int) -> str:
        return str(uuid5(_NAMESPACE, _ASCII.encode([self.entity.key, self.message, purpose, index])))


def _encode(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")
