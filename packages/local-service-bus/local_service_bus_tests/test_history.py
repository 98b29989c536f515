"""What the endpoint remembers of what it did, and that it says what it has forgotten."""

from __future__ import annotations

import pytest

from local_service_bus.broker.history import ForgottenError, History
from local_service_bus.broker.messages import Content, Stored


def after(operations: int) -> History:
    history = History(kept=3)
    for number in range(1, operations + 1):
        history.note(0.0, "send", "q", Stored(Content(payload=b""), number, 0.0), "active")
    return history


def test_the_last_operations_are_kept_under_their_numbers() -> None:
    assert [item.number for item in after(3).read()] == [1, 2, 3]
    assert [item.number for item in after(5).read(after=2)] == [3, 4, 5]
    assert [item.number for item in after(5).read(after=4)] == [5]
    assert after(5).read(after=5) == after(0).read() == []


def test_a_request_for_forgotten_history_is_refused_with_the_reason() -> None:
    with pytest.raises(ForgottenError, match="begins after operation 2, since only the last 3 are kept"):
        after(5).read(after=1)
