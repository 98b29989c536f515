"""Keys: how applications name entities."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from exactlyonce.errors import ExactlyOnceError, HandlerFailed, InvalidMessage
from exactlyonce.raised import ApplicationsCode, class_of
from exactlyonce.values.declarations import kind_of
from exactlyonce.values.identity import ID_RULE, MAX_KEY_BYTES, EntityRef, PartitionValue, is_document_id

_LARGEST_EXACT: Final = 2**53 - 1
_HALF: Final = re.compile(r"[\ud800-\udfff]")
"""Half a surrogate pair, which neither the service nor a queue takes."""


@dataclass(frozen=True, slots=True)
class EntityKey:
    """The key of an entity whose id and partition key differ.

    Attributes:
        id: the document's id.
        partition: the value, or the values of a hierarchical key from the top.
    """

    id: str
    partition: PartitionValue | tuple[PartitionValue, ...]


def entity_ref(type: str, key: str | EntityKey) -> EntityRef:
    """The full name of an entity.

    Args:
        type: name of its type.
        key: a string is both id and partition key.

    Raises:
        InvalidMessage: the id or the partition key is not valid in Cosmos DB.
    """
    id, partition = _parts(key)
    if not is_document_id(id):
        raise InvalidMessage(f"The key of an entity {type!r} is not a document id, which is a string of {ID_RULE}.")
    if not all(_is_partition_value(value) for value in partition):
        raise InvalidMessage(
            f"The partition key of an entity {type!r} has to be made of strings of Unicode, booleans, and numbers up to 2^53."
        )
    # The service takes 1 and 1.0 for the same value, but JSON writes them differently: one entity must not have two names.
    canonical = (int(one) if isinstance(one, float) and one.is_integer() else one for one in partition)
    ref = EntityRef(type, tuple(canonical), id)
    if (size := len(ref.key.encode())) > MAX_KEY_BYTES:
        raise InvalidMessage(
            f"The type, the partition key and the id of an entity {type!r} have {size} bytes together; the library container "
            f"takes {MAX_KEY_BYTES} as partition key. Derive shorter ones in key=."
        )
    return ref


def entity_named(
    what: str, function: Callable[[Any], object], message: object, ref: Callable[[Any], EntityRef]
) -> EntityRef:
    """The entity that a function of the application's names.

    Args:
        what: the function, as the beginning of an error.
        function: gives the key.
        message: that it gets.
        ref: makes the full name of a key.

    Raises:
        HandlerFailed: the function raised, or gave something else than a key.
        ConfigurationError, InvalidMessage: as `ref` does.
    """

    def failed(error: BaseException) -> HandlerFailed:
        return HandlerFailed(f"{what} raised {class_of(error)}.")

    with ApplicationsCode(failed):
        key = function(message)
    with ApplicationsCode(failed, ExactlyOnceError):  # A key may have code of its own, too.
        if (mistake := _mistaken(key)) is not None:
            raise HandlerFailed(f"{what} gave {mistake}. Return a string, or an EntityKey of strings.")
        return ref(key)


def _mistaken(key: object) -> str | None:
    """What a function gave in place of a key, by its kind; None if it is a key, valid or not."""
    if isinstance(key, str):
        return None
    if not isinstance(key, EntityKey):
        return kind_of(key)
    id, partition = cast("tuple[object, tuple[object, ...]]", _parts(key))
    if not isinstance(id, str):
        return f"an EntityKey whose id is {kind_of(id)}"
    wrong = [value for value in partition if not isinstance(value, (str, int, float))]
    return f"an EntityKey whose partition key has {kind_of(wrong[0])}" if wrong else None


def _parts(key: object) -> tuple[str, tuple[PartitionValue, ...]]:
    if isinstance(key, EntityKey):
        values = key.partition if isinstance(key.partition, tuple) else (key.partition,)
        return _plain(key.id), tuple(map(_plain, values))
    if isinstance(key, str):
        return _plain(key), (_plain(key),)
    raise InvalidMessage(f"The key of an entity has to be a string or an EntityKey; it is {kind_of(key)}.")


def _plain(value: Any) -> Any:
    """A string as such: one of an `Enum` is written in addresses as another text than in JSON."""
    return str.__str__(value) if isinstance(value, str) else value


def _is_partition_value(value: object) -> bool:
    """The service keeps numbers as doubles: larger ones would no longer be distinct."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return abs(value) <= _LARGEST_EXACT  # Neither infinite nor NaN.
    return isinstance(value, bool) or (isinstance(value, str) and not _HALF.search(value))
