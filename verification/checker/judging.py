"""What is wrong with an acknowledgement, and when all is done."""

from __future__ import annotations

from collections.abc import Iterable

from verification.checker.reductions import State
from verification.checker.scenarios import Scenario
from verification.checker.store import Store


def lost(keys: Iterable[str], store: Store) -> str | None:
    """What is wrong with acknowledging these messages."""
    committed = {key for key, _ in store.committed}
    for key in keys:
        if key in store.parked:
            continue
        if key not in committed:
            return f"nothing_lost: {key} is acknowledged, but was never committed"
        if key not in store.published | store.overdue:
            return f"nothing_lost: {key} is acknowledged, but its output was never published"
    return None


def is_good_end(scenario: Scenario, keys: tuple[str, ...], state: State) -> bool:
    """Whether every message was committed and published, or lies parked; nobody is at work; and nothing lies about."""
    store, queue, workers, _, _ = state
    if any(queue) or any(worker.situation is not None for worker in workers):
        return False
    committed = {key for key, _ in store.committed}
    expected = (key for number, key in enumerate(keys) if scenario.copies[number] or key in committed)
    if lost(expected, store) is not None:
        return False
    return not scenario.budget.cleanings or not any(_garbage(store, entity) for entity in range(scenario.entities))


def _garbage(store: Store, entity: int) -> bool:
    """Whether staged outputs lie about that no entry names."""
    named = {entry.tx for entry in store.entities[entity].ledger.entries}
    staged = (id.removeprefix("staged:") for id in store.libraries[entity].now if id.startswith("staged:"))
    return any(tx not in named for tx in staged)
