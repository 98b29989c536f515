"""What an operation costs, in request units (RU).

One formula, fitted to what Microsoft publishes: a point read of 1 KB costs 1 RU and of 100 KB 10 RU; inserting 1 KB costs
about 5.5 RU; replacing costs twice as much; a query starts at about 2.3 RU and pays for what it returns. Not published and
therefore assumed: a delete costs as an insert, a patch as a replace, a batch the sum of its parts, and a refused write
what it costs to look.
"""

from __future__ import annotations

_KILOBYTE = 1024
_LOOK = 1.0
_INSERT = 5.5
_REPLACE = 11.0
_SMALLEST_QUERY = 2.3
_QUERY_BASE = 1.8
_PER_RETURNED_KILOBYTE = 1.0
_GROWTH = 11.0
"""A charge grows tenfold from 1 KB to 100 KB: 1 + 99 / 11."""


def read(size: int, *, replicas: int = 1) -> float:
    """A point read of `size` bytes; strong and bounded reads ask two replicas."""
    return round(_LOOK * _growth(size) * replicas, 2)


def insert(size: int) -> float:
    """Creating an item of `size` bytes."""
    return round(_INSERT * _growth(size), 2)


def replace(size: int) -> float:
    """Replacing or patching; `size` is that of the new version."""
    return round(_REPLACE * _growth(size), 2)


def delete(size: int) -> float:
    """Deleting an item of `size` bytes."""
    return insert(size)


def query(returned: int) -> float:
    """One page of a query or feed that returns `returned` bytes."""
    return round(max(_SMALLEST_QUERY, _QUERY_BASE + _PER_RETURNED_KILOBYTE * returned / _KILOBYTE), 2)


def refused() -> float:
    """A conflict, a failed condition, an absent item."""
    return _LOOK


def _growth(size: int) -> float:
    return 1 + max(0.0, size / _KILOBYTE - 1) / _GROWTH
