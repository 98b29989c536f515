"""Replies of handlers, as answers to requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from exactlyonce.errors import OutputTooLarge
from exactlyonce.handling.messages import require_model
from exactlyonce.records.answers import Answer
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.round_trips import shown

MAX_ANSWER_BYTES: Final = 16 * 1024
"""Most bytes of an answer. Its commit writes it in the entity document."""
_STATUSES: Final = range(200, 600)
_WITHOUT_BODY: Final = (204, 205, 304)
_HEADERS: Final = re.compile(r"location|etag|content-language|x-[a-z0-9-]+", re.IGNORECASE)
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def answer_of(body: object, status: int | None, headers: Mapping[str, str]) -> Answer:
    """The answer that a handler gives.

    Args:
        body: a pydantic model or a dataclass; None for none.
        status: status code of HTTP; None for 200, or for 204 without a body.
        headers: of the answer.

    Raises:
        ConfigurationError: the body is neither a pydantic model nor a dataclass.
        OutputTooLarge: the answer is larger than one may be.
        HandlerFailed: the body holds NaN or an infinity.
        ValueError: the status code or a header cannot be.
    """
    chosen = status or (204 if body is None else 200)
    if chosen not in _STATUSES or (body is not None and chosen in _WITHOUT_BODY):
        raise ValueError(f"The status code of an answer is from 200 to 599, and {_WITHOUT_BODY} have no body.")
    for name, value in headers.items():
        if not _HEADERS.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(
                "The headers of an answer are Location, ETag, Content-Language, and names that begin with X-; values are "
                "printable ASCII."
            )
    if body is not None:
        require_model(type(body), "The body of an answer")
    text = None if body is None else Json.of(shown(body)).text
    answer = Answer(chosen, tuple(headers.items()), text)
    if answer.size > MAX_ANSWER_BYTES:
        raise OutputTooLarge(
            f"The answer has {answer.size} bytes; at most {MAX_ANSWER_BYTES} are allowed. Write what is large with "
            "context.write_once, and reply with its address."
        )
    return answer
