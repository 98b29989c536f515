"""A document belongs to its entity, and to the protocol that processed it: every other one refuses it, and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Step, Together
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.steps.load import require_own
from exactlyonce.records.ledger import LEDGER, Ledger, entity_document
from exactlyonce.records.outbox import Reception
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.asking import settle, settle_by, sweep, unhandled
from tests.samples import deposit
from tests.unit.protocols.by_protocol import PROTOCOLS
from tests.unit.protocols.gallery import in_order
from tests.unit.script import ABSENT, ENTITY, Script, attempt

OTHERS = [(own, other) for own in PROTOCOLS for other in PROTOCOLS if own != other]
CHORES: dict[str, Callable[[], Step[Any]]] = {
    "sweep": lambda: sweep(ENTITY, Memory()),
    "settle": lambda: settle(ENTITY, deposit("m-1"), "reason", ABSENT, Memory()),
    "clean_staged": lambda: clean_staged(ENTITY, ("tx-9",), ABSENT, Memory()),
}


def belonging_to(protocol: str) -> Json:
    more: dict[str, Any] = {
        "outbox": {"left": 1},
        "stream": {"snapshot_every": 3},
        "resequencer": {"receptions": (Reception("c", "s"),)},
    }
    return entity_document(ABSENT, Ledger(1, type="account", protocol=protocol, **more.get(protocol, {})))


def refused(protocol: str, step: Step[Any]) -> tuple[list[type], str]:
    """What a step asks of a document of this protocol, and what it says."""
    script = Script(belonging_to(protocol))
    with pytest.raises(ConfigurationError) as caught:
        script.play(step)
    assert script.document == belonging_to(protocol)
    return [type(effect) for effect in script.asked], str(caught.value)


@pytest.mark.parametrize(("own", "other"), OTHERS)
def test_a_strategy_refuses_what_another_one_processed_and_names_both(own: str, other: str) -> None:
    asked, text = refused(other, attempt(PROTOCOLS[own], deposit("m-1")))
    assert asked in ([LoadEntity], [Together])
    assert f"account/a was processed by the protocol {other!r}" in text
    assert f"configured for {own!r}" in text
    assert "Nothing was changed" in text
    assert "Go back to the former strategy" in text


@pytest.mark.parametrize("chore", CHORES)
@pytest.mark.parametrize("other", [protocol for protocol in PROTOCOLS if protocol != "outbox"])
def test_a_chore_of_the_outbox_refuses_what_another_one_processed(chore: str, other: str) -> None:
    asked, text = refused(other, CHORES[chore]())
    assert asked == [LoadEntity]
    assert repr(other) in text
    assert "'outbox'" in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_strategy_takes_its_own_and_what_nobody_processed(protocol: str) -> None:
    require_own(ENTITY, None, protocol)
    require_own(ENTITY, Ledger(), protocol)
    require_own(ENTITY, Ledger(3, type="account", protocol=protocol), protocol)


@pytest.mark.parametrize("protocol", ["colocated", "stream"])
def test_a_strategy_signs_what_it_processes(protocol: str) -> None:
    script = Script()
    script.play(attempt(PROTOCOLS[protocol], deposit("m-1")))
    assert script.document is not None
    assert script.document.value[LEDGER]["protocol"] == protocol


def copied_to(protocol: str, copy: EntityRef) -> Script:
    """A script about another document, which has a copy of the ledger of one that this protocol processed."""
    script = Script()
    script.play(attempt(PROTOCOLS[protocol], in_order(1)))
    assert script.document is not None
    ledger = script.document.value[LEDGER]
    return Script(Json.of({"id": copy.id, "owner": copy.partition[0], LEDGER: ledger}), copy)


@pytest.mark.parametrize("copy", [EntityRef("account", ("a",), "b"), EntityRef("account", ("b",), "a")], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_ledger_that_was_copied_to_another_document_is_refused_and_says_what_it_is_of(
    protocol: str, copy: EntityRef
) -> None:
    script = copied_to(protocol, copy)
    document = script.document
    with pytest.raises(DamagedDocument, match=re.escape(f"a copy of the ledger of {ENTITY.key}")):
        script.play(attempt(PROTOCOLS[protocol], in_order(2), entity=copy))
    assert script.document == document


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tombstone_of_a_fence_names_its_entity(protocol: str) -> None:
    script = Script()
    script.play(settle_by(protocol, unhandled(ENTITY, in_order(1), absent=ABSENT), "reason", Memory()))
    assert (script.ledger.deleted, script.ledger.entity) == (True, ENTITY.key)


def test_a_tombstone_belongs_to_its_protocol() -> None:
    with pytest.raises(ConfigurationError):
        require_own(ENTITY, Ledger(deleted=True), "stream")
