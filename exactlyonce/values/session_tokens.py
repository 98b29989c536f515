"""Session tokens of Cosmos DB, and their order.

A token reads `{range id}:{version}#{global LSN}[#{region}={local LSN}…]` and belongs to a single physical partition. It is a
lower bound: a read with the token sees the token's write or a later write.
"""

from __future__ import annotations


def at_or_after(token: str | None, needed: str | None) -> bool:
    """Whether a view at `token` certainly includes everything up to `needed`.

    Tokens compare only within the same range id and version; where they do not compare, the answer is no and the caller reads
    again with the needed token. Without a needed token every view will do.
    """
    if needed is None:
        return True
    if token is None:
        return False
    scope, position = _parts(token)
    needed_scope, needed_position = _parts(needed)
    return (
        scope == needed_scope and position is not None and needed_position is not None and position >= needed_position
    )


def later(token: str | None, other: str | None) -> str | None:
    """The token that includes the other token; the second if they do not compare."""
    return token if at_or_after(token, other) else other


def is_before(token: str | None, needed: str | None) -> bool:
    """Whether a view at `token` certainly lacks a write up to `needed`."""
    return at_or_after(needed, token) and not at_or_after(token, needed) and token is not None


def _parts(token: str) -> tuple[str, int | None]:
    """The scope (range id and version) and the global LSN, or None if the LSN is unreadable."""
    scope, _, rest = token.partition("#")
    position = rest.partition("#")[0]
    return scope, int(position) if position.isdecimal() else None
