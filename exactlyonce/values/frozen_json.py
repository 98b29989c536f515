"""JSON as an immutable, hashable value.

Effects and replies must be frozen and hashable, since the model checker compares and shares them, and documents travel in
them. Holding the text makes both structural: nobody can change a string.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import CoreSchema, core_schema

_WRITER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""One for all: `json.dumps` with these settings would make a new one at every call, for more than it takes to write."""


@dataclass(frozen=True, slots=True)
class Json:
    """One JSON value, held as compact text in the order of its properties.

    Make one with `Json.of`; `text` is taken as it is.
    """

    text: str

    @classmethod
    def of(cls, value: Any) -> Json:
        """Freeze a value made of dicts, lists, strings, numbers, booleans and None.

        Raises:
            TypeError: it holds something else.
            ValueError: it holds NaN, an infinity or half a surrogate pair, which UTF-8 does not have; or refers to itself.
        """
        text = _WRITER.encode(value)
        text.encode()
        return cls(text)

    @property
    def value(self) -> Any:
        """A fresh copy that the caller may change."""
        return json.loads(self.text)

    def plus(self, name: str, value: Json) -> Json:
        """An object with one more property at its end, which it must not have yet. Cheaper than to take it apart."""
        comma = "," if len(self.text) > len("{}") else ""
        return Json(f"{self.text[:-1]}{comma}{_WRITER.encode(name)}:{value.text}}}")

    @property
    def size(self) -> int:
        """Length in bytes, as UTF-8."""
        return len(self.text.encode())

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        """In records it is a string that holds JSON: the store keeps its text to the letter.

        As JSON inside a document it would come back with other numbers: the service knows doubles only.
        """
        return core_schema.no_info_after_validator_function(
            cls._checked,
            core_schema.str_schema(strict=True),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda frozen: frozen.text),
        )

    @classmethod
    def _checked(cls, text: str) -> Json:
        json.loads(text)
        return cls(text)
