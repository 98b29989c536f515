"""Who is who: identities of messages, entities and outputs, and the chance that derives from them.

Everything a handler could want from outside (ids, random numbers) derives from the message it handles and the entity it
handles it for, so that handling a message again gives the same again.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from random import Random
from typing import Final
from urllib.parse import quote, unquote
from uuid import UUID, uuid5

_NAMESPACE: Final = UUID("0b4f3a2e-7c55-5d0c-9d4e-2f1f0a6c9b11")
"""Root of all derived ids. Changing it would make every redelivered message publish under new ids."""

_CANONICAL: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(separators=(",", ":"))

LONGEST_ID: Final = 255
"""Characters of a document id that every SDK and tool takes. The service takes 1,023 bytes, which they never exceed."""
ID_RULE: Final = f"1 to {LONGEST_ID} characters, none of / \\ ? # nor tabs or line ends, and no space at its end"
_FORBIDDEN_IN_ID: Final = re.compile(r"[/\\?#\t\r\n\ud800-\udfff]|[ ]\Z")  # By the SDK, the service, or UTF-8.

MAX_KEY_BYTES: Final = 2048
"""Most bytes of a key, which is the partition key of the library container: the service takes no more."""
LONGEST_READABLE: Final = 1024
"""Characters of a source whose parts can be read. Percent-encoding takes nine for a Chinese one, and twelve for an emoji."""
LONGEST_TYPE: Final = 256
"""Characters of an entity type's name in a source."""
MAX_SOURCE_LENGTH: Final = 3072
"""Longest source. An encoded key has at most 2,731 characters; its type and what joins them are before it."""
_HASHED: Final = 12
"""Bytes of a message's hash."""
_ENCODED: Final = "=~"
"""How an encoded key begins: no value of a partition key is written so."""

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


def message_hash(key: str) -> str:
    """The hash of a message's key: 96 bits in base 64. Among 10^9 messages two share one in one of 10^11 cases."""
    return b64encode(hashlib.sha256(key.encode()).digest()[:_HASHED]).decode()


@dataclass(frozen=True, eq=False)
class EntityRef:
    """Names one entity: its type, the values of its full partition key, its document id.

    Two of them are equal if their keys are: to Python `True` and 1 are one value, to the service two.
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
        """The CloudEvents source of everything this entity sends; no two entities of a type have the same.

        Its parts are percent-encoded. A value that is no string follows `=`, which no encoded string has. The partition is
        left out where it is just the id, as for most entities. Where that would be too long, the type is followed by `=~` and
        the key in base64, which takes four characters for a Chinese one. No hash: a request to send again finds the entity by
        its source alone.

        >>> EntityRef("order", ("eu", 7), "o-1").source
        'order/eu/=7/o-1'
        >>> EntityRef("order", ("中" * 200,), "中" * 200).source[:20]
        'order/=~WyJvcmRlciIs'
        """
        partition = () if self.partition == (self.id,) else self.partition
        type = quote(self.type, safe="")
        readable = "/".join((type, *map(_part, partition), quote(self.id, safe="")))
        if len(readable) <= LONGEST_READABLE:
            return readable
        return f"{type}/{_ENCODED}{urlsafe_b64encode(self.key.encode()).decode().rstrip('=')}"

    @classmethod
    def of_source(cls, source: str) -> EntityRef:
        """The entity that sends under a CloudEvents source. Raises `ValueError` if none does."""
        type, *key = source.split("/")
        values = tuple(map(_value, key)) if not source.startswith(_ENCODED, len(type) + 1) else _decoded(key[0])
        ref = cls(unquote(type), values[:-1] or values, str(values[-1])) if values else None
        if ref is None or ref.source != source:
            raise ValueError(f"{source!r} is not the source of an entity.")
        return ref

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, EntityRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class Origin:
    """One message handled for one entity: what ids and chance derive from."""

    entity: EntityRef
    message: str

    def output_id(self, index: int) -> str:
        """Id of the index-th output: the same in every attempt, so that the next handler knows a copy when it sees one."""
        return derived_id(self.entity, message_hash(self.message), index)

    def new_id(self, index: int) -> str:
        """Id of the index-th thing the handler asks an id for."""
        return self._derive("id", index)

    def random(self) -> Random:
        """A generator of random numbers seeded by the origin. Not for secrets."""
        return Random(self._derive("random", 0))

    def _derive(self, purpose: str, index: int) -> str:
        return str(uuid5(_NAMESPACE, _ASCII.encode([self.entity.key, self.message, purpose, index])))


def derived_id(entity: EntityRef, cause: str, index: int) -> str:
    """Id of an output. Engines of SQL have all of its functions, so that an audit can tell what a message caused.

    Args:
        entity: that sends it.
        cause: hash of the message that causes it.
        index: its place among the messages of its handler.
    """
    return hashlib.sha256(f"{entity.key}\n{cause}\n{index}".encode()).hexdigest()[:32]


def _part(value: PartitionValue) -> str:
    return quote(value, safe="") if isinstance(value, str) else f"={quote(_ASCII.encode(value), safe='')}"


def _value(part: str) -> PartitionValue:
    """The value of a part; of one that is none, whatever is written otherwise than the part."""
    if not part.startswith("="):
        return unquote(part)
    with suppress(ValueError, RecursionError):
        value = json.loads(unquote(part[1:]))
        if isinstance(value, (bool, int, float)):
            return value
    return part


def _decoded(part: str) -> tuple[PartitionValue, ...]:
    """The values of a key in base64; none if it is no key."""
    with suppress(ValueError, RecursionError):
        key = json.loads(urlsafe_b64decode(f"{part.removeprefix(_ENCODED)}==="))
        if isinstance(key, list) and all(isinstance(value, (str, bool, int, float)) for value in key):
            return tuple(key[1:])
    return ()


def renewed_id(entity: str, message: str, time: datetime) -> str:
    """Id under which a parked message is sent as a new one: no id is sent with two times.

    Args:
        entity: key of the entity under which it is parked.
        message: its key.
        time: of the new message.
    """
    at = time.astimezone(timezone.utc).isoformat()
    return str(uuid5(_NAMESPACE, _ASCII.encode([entity, message, "renewed", at])))


def _encode(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F")
