"""Blobs: content that is written once, before the commit that refers to it; and requests for them.

A blob's name carries the transaction id of the attempt that wrote it, which is fresh every time. So no attempt finds another's
blobs, and nobody learns the names of those whose attempt was lost.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from exactlyonce.values.envelope import EntityRef

CLAIM_CHECKS: Final = "_messages"
"""Folder for the data of messages that are too large for their queue. No other name begins like this."""

MAX_BLOB_BYTES: Final = 64 * 1024 * 1024
"""Most that all blobs of one message may have together: they are in memory until they are written. And most that is read."""

_LONGEST_FOLDER: Final = 300
_PLAIN: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")


@dataclass(frozen=True, slots=True)
class Author:
    """The attempt that wrote a blob: what clean-up has to know to judge whether anything can refer to it.

    Attributes:
        entity: that the attempt was made on.
        message: key of the message.
        tx: transaction id of the message in that attempt.
        at: time of the attempt, by the clock of its process.
        told: id of the companion that proves its commit, where it does not follow from message and entity: of a read model,
            which has one for each number. None elsewhere. Blobs are stored with this name.
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
        content: what to write.
        type: media type of the content.
        author: the attempt that writes it; None if it was written outside of any.
    """

    name: str
    content: bytes
    type: str
    author: Author | None = None

    def told_by(self, id: str) -> Blob:
        """The blob of an author whose commit is proved by the companion with this id."""
        return self if self.author is None else replace(self, author=replace(self.author, told=id))


@dataclass(frozen=True, slots=True)
class ListedBlob:
    """A blob as a listing shows it.

    Attributes:
        name: path within the container.
        author: the attempt that wrote it; None if that is not known.
        age: since it was written, both ends by the service's clock; or since the time of its attempt, if that is longer. So
            a blob that was copied from elsewhere does not look young.
    """

    name: str
    author: Author | None
    age: timedelta


def folder_of(entity: EntityRef) -> str:
    """Folder of the blobs that attempts on an entity write: its source, where that can stand in a URL as it is.

    Parts like `..` would lead elsewhere, those that end with a dot are changed by some services and programs, and names have a
    greatest length; so for an entity whose source is not plain it is a hash.
    """
    source = entity.source
    if len(source) <= _LONGEST_FOLDER and all(_PLAIN.fullmatch(part) for part in source.split("/")):
        return source
    return f"~{hashlib.sha256(entity.key.encode()).hexdigest()}"
