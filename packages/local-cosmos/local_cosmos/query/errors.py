"""Why a query is not answered."""

from __future__ import annotations


class UnsupportedQueryError(Exception):
    """The text is not a query that this emulator answers; the message names the part."""
