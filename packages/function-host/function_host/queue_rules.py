"""Names of poison queues, and bodies of messages. Pure; mirrors `QueueProcessor` of the WebJobs SDK."""

import base64
import re

from .host_json import Encoding

_POISON_SUFFIX = "-poison"
_LONGEST_NAME = 63
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


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
