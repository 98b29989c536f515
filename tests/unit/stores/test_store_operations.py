"""Every request that a strategy may make of a store has a method."""

from __future__ import annotations

import inspect
import re
from datetime import datetime, timezone

from exactlyonce.drivers.operations import store_operations
from exactlyonce.effects import companions as beside
from exactlyonce.effects.effect import Effect
from exactlyonce.stores.awaiting import Awaited
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore, Store

STORE = MemoryStore(lambda: datetime(2026, 11, 21, tzinfo=timezone.utc))


def methods(port: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}


def test_each_effect_is_performed_by_the_method_of_its_name() -> None:
    for store in (STORE, Awaited(STORE)):
        operations = store_operations(store)
        for effect, method in operations.items():
            assert method.__name__ == re.sub(r"(?<!^)(?=[A-Z])", "_", effect.__name__).lower()
        assert {method.__name__ for method in operations.values()} == methods(Store) == methods(AsyncStore)


def test_all_requests_for_companions_are_a_stores() -> None:
    classes = (one for one in vars(beside).values() if inspect.isclass(one) and issubclass(one, Effect))
    assert set(classes) - {Effect} <= set(store_operations(STORE))
