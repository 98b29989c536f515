"""Random histories, clocks and clean-ups: a copy that may still arrive finds what the message left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope, VersionStream
from exactlyonce.effects.companions import DeleteCompanions
from tests import samples
from tests.samples import close, deposit
from tests.unit.protocols import sourcing
from tests.unit.protocols.cleaning import COLOCATED, RETENTION, cleaned, listed
from tests.unit.script import ENTITY, Script

TYPES = {
    "ways back": lambda every: samples.accounts(VersionStream(every)),
    "events": lambda every: sourcing.accounts(VersionStream(every)),
    "records": lambda every: samples.accounts(COLOCATED),
}
STEP = st.tuples(st.sampled_from([deposit, close]), st.integers(0, 12), st.booleans())
"""A message, days until it comes, and whether the clean-up runs after it."""


def lossy(script: Script, chance: Any) -> Any:
    """Deletions of which any part may be lost."""

    def delete(effect: DeleteCompanions) -> None:
        script.usual(
            DeleteCompanions(ENTITY, tuple(companion for companion in effect.companions if chance.random() < 0.8))
        )

    return delete


@pytest.mark.parametrize("name", TYPES)
@given(steps=st.lists(STEP, min_size=1, max_size=14), every=st.integers(1, 4), chance=st.randoms(use_true_random=False))
def test_a_copy_inside_the_retention_finds_what_it_left_and_sends_what_it_sent(
    name: str, steps: list[tuple[Any, int, bool]], every: int, chance: Any
) -> None:
    type, script = TYPES[name](every), Script()
    protocol: str = "colocated" if name == "records" else "stream"
    came: list[tuple[Envelope, Any]] = []
    for number, (make, days, cleans) in enumerate(steps):
        script.at += timedelta(days=days)
        message = make(f"m-{number}")
        came.append((message, script.at))
        script.play(sourcing.attempt(type, message))
        if cleans or number == len(steps) - 1:
            old = listed(script, RETENTION + timedelta(seconds=1))
            some = tuple(item for item in old if chance.random() < 0.8)
            cleaned(script, protocol, some, {DeleteCompanions: lossy(script, chance)})
    sent = {output.id: output for output in script.published}
    recent = [message for message, at in came if script.at - at <= RETENTION]
    script.published.clear()
    version = script.ledger.version
    kept = {str(companion.message) for companion in script.companions}
    assert kept >= {f"web/{message.id}" for message in recent}
    for message in chance.sample(recent, len(recent)):
        finished = script.play(sourcing.attempt(type, message)).finished
        assert (finished.processed, finished.failed) == ((), ())
    assert script.ledger.version == version
    assert all(output == sent[output.id] for output in script.published)
    assert len(script.published) == (0 if name == "records" else len(recent))
