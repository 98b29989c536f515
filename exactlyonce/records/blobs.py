"""Blobs: content written once, before the commit that refers to it.

A blob's name carries the transaction id of its attempt, fresh every time. So no attempt finds another's blobs, and the names
of a lost attempt's blobs stay secret.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from exactlyonce.values.envelope import EntityRef

CLAIM_CHECKS: Final = "_messages"
"""Folder for the data of messages too large for their queue. No other name begins like this."""

MAX_BLOB_BYTES: Final = 64 * 1024 * 1024
"""Limit for all blobs of one message together, because they stay in memory until written. Also the limit for reading."""

_LONGEST_FOLDER: Final = 300
_PLAIN: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")


@dataclass(frozen=True, slots=True)
class Author:
    """The attempt that wrote a blob, as clean-up needs it to judge whether anything can refer to the blob.

    Attributes:
        entity: entity of the attempt.
        message: key of the message.
        tx: transaction id of the message in the attempt.
        at: time of the attempt, by the clock of its process.
        told: id of the companion that proves the commit, where message and entity do not determine the id: a read model has
            one for each number. Else None. Blobs are stored with this name.
    """

    entity: EntityRef
    message: str
    tx: str
    at: datetime
    told: str | None = None


@dataclass(frozen=True, slots=True)
class Blob:
    """Content to be written once.

    Attributes:
        name: path within the container for blobs.
        content: the bytes.
        type: media type of the content.
        author: the attempt writing the blob; None outside of attempts.
    """

    name: str
    content: bytes
    type: str
    author: Author | None = None

    def told_by(self, id: str) -> Blob:
        """The blob, with the id of the companion that proves its author's commit."""
        return self if self.author is None else replace(self, author=replace(self.author, told=id))


@dataclass(frozen=True, slots=True)
class ListedBlob:
    """A blob as a listing shows it.

    Attributes:
        name: path within the container.
        author: the attempt that wrote the blob; None if not recorded.
        age: time since writing, both ends by the service's clock; or time since the attempt, if longer. So a blob copied from
            elsewhere does not look young.
    """

    name: str
    author: Author | None
    age: timedelta


def folder_of(entity: EntityRef) -> str:
    """Folder of the blobs of an entity's attempts: the entity's source, if a URL can hold the source unchanged, else a hash.

    A part such as `..` would lead elsewhere, some services and programs change parts that end with a dot, and names have a
    greatest length.
    """
    source = entity.source
    if len(source) <= _LONGEST_FOLDER and all(_PLAIN.fullmatch(part) for part in source.split("/")):
        return source
    return f"~{hashlib.sha256(entity.key.encode()).hexdigest()}"
