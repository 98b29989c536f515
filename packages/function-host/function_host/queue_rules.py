"""What to do with a message, given how often it came and how its function ended. Pure.

Mirrors `QueueProcessor` of the WebJobs SDK.
"""

import base64
import re
from dataclasses import dataclass
from enum import Enum

from .host_json import Encoding

_POISON_SUFFIX = "-poison"
_LONGEST_NAME = 63
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class Step(Enum):
    """What happens next with a message."""

    CALL = "call the function"
    DELETE = "delete the message: done"
    RELEASE = "make it visible again after host.json's visibilityTimeout"
    POISON = "copy it to the poison queue, then delete it; not atomic"
    LEAVE = "leave it invisible until its invisibility ends: there is no poison queue to move it to"


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The decisions for one queue.

    Attributes:
        max_dequeue_count: deliveries after which a failing message is poison.
        has_poison_queue: false for poison queues themselves and for names with no room for the suffix.
    """

    max_dequeue_count: int
    has_poison_queue: bool

    def on_arrival(self, *, readable: bool, dequeue_count: int) -> Step:
        """Decide before the function is called.

        A body that is not what `messageEncoding` says is poison at once. A count above the maximum means that the
        last allowed delivery ended without a verdict: its host was killed, or lost the message's pop receipt.
        """
        if readable and dequeue_count <= self.max_dequeue_count:
            return Step.CALL
        return self._poison()

    def on_outcome(self, *, succeeded: bool, dequeue_count: int) -> Step:
        """Decide after the function has ended.

        Without a poison queue a failed message is not released, since it would come back at once and for ever.
        """
        if succeeded:
            return Step.DELETE
        if self.has_poison_queue and dequeue_count < self.max_dequeue_count:
            return Step.RELEASE
        return self._poison()

    def _poison(self) -> Step:
        return Step.POISON if self.has_poison_queue else Step.LEAVE


def poison_queue_name(queue: str) -> str | None:
    """`<queue>-poison`, or None where the real host has no poison queue: for poison queues, and for too long names."""
    name = queue + _POISON_SUFFIX
    return None if queue.endswith(_POISON_SUFFIX) or len(name) > _LONGEST_NAME else name


def decode_body(text: str, encoding: Encoding) -> bytes | None:
    """The body a function gets, or None when the text is not base64 although it should be.

    As strict as .NET: white space is skipped, any other stray character or wrong padding makes the body unreadable.
    Python's own decoder would let too much padding pass.
    """
    if encoding == "none":
        return text.encode()
    compact = _WHITE_SPACE.sub("", text)
    return base64.b64decode(compact) if _BASE64.fullmatch(compact) else None
