"""A store performs the effects of `effects.entity`, `effects.library` and `effects.companions`.

It keeps no session tokens of its own: tokens come in with effects and go out with replies.

It raises for what only people can change: settings, damaged documents, and a document that the store does not take, such as
one whose unique key is taken.
"""

from __future__ import annotations

from typing import Protocol

from exactlyonce.effects.port import AsyncPort, Port


class Store(Port, Protocol):
    """A store for blocking drivers."""


class AsyncStore(AsyncPort, Protocol):
    """A store for the async driver."""
