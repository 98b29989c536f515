"""More of the zoo: twins that show only where several things come together, and variants as good as what is shipped."""

from __future__ import annotations

from dataclasses import replace

from devtools.modelcheck.scenarios import Budget, Scenario
from devtools.modelcheck.twins import Change
from exactlyonce import Outbox
from tests.model.broken_strategies import PUBLISH_LEAVING, STAGED, TWO, WRITE_APART, Twin, before

STALE = replace(TWO, name="a stale load beside a fresh record", budget=Budget(crashes=1, stale=1))
LEAVING = f"""{PUBLISH_LEAVING}
        if isinstance(remembered, Again):
            return remembered
        view = replace(view, memory=remembered)
{WRITE_APART}
        if isinstance(token, Again):
            return token
"""
PAIRS = '[(f"{one.source}/{one.id}", one) for one in work.messages if f"{one.source}/{one.id}" in fresh]'
CLEANED = Scenario(
    "staged outputs beside clean-up", (1,), Outbox.transaction_id(), budget=Budget(crashes=1, cleanings=1)
)
COPIES = Scenario("two copies in a group", (2,), Outbox(window=2), workers=1, group=2)
AT_ONCE = Scenario("two at once, staged", (1, 1), Outbox.transaction_id(), budget=Budget(crashes=1))

SUBTLE: tuple[Twin, ...] = (
    Twin(
        "record written before publish",
        (Change(LEAVING, "".join(f"{line}\n" for line in [*LEAVING.splitlines()[4:], *LEAVING.splitlines()[:4]])),),
        STALE,
        "nothing_lost",
    ),
    Twin(
        "two copies of a message in one commit",
        (
            Change("Begin(tuple(fresh))", "Begin(tuple(key_of(one) for one in work.messages if key_of(one) in fresh))"),
            Change("zip(fresh.items(), begun", f"zip({PAIRS}, begun"),
        ),
        COPIES,
        "at_most_one_state_change",
    ),
    Twin(
        "token of a staging conflict dropped",
        (Change("token = staged.token", "token = token if isinstance(staged, Conflict) else staged.token"),),
        replace(STAGED, budget=Budget(crashes=1, repeated=1)),
        "nothing_lost",
    ),
    Twin(
        "a transaction id kept over retries",
        (Change("handled, key, (tx, version, begun.at)", "handled, key, (key, version, begun.at)"),),
        CLEANED,
        "nothing_lost",
    ),
    Twin(
        "acknowledged before publish",
        (Change("        if draft.outputs:", "        if not draft.outputs:"),),
        TWO,
        "nothing_lost",
    ),
    Twin(
        "conflict answered by saving over it",
        (
            before(
                "        if not isinstance(saved, Saved):\n            return start_over(view.memory, saved)",
                'if isinstance(saved, Conflict):\n    saved = yield from SaveEntity(entity, document, "*")',
            ),
        ),
        TWO,
        "serial_execution",
    ),
)

HARMLESS: tuple[Twin, ...] = (
    Twin(
        "missing staged outputs lead back to load",
        (
            before(
                "        outputs += tuple(output for document in found.documents for output in document.outputs)",
                'if len(found.documents) < len(staged):\n    return Again(view.memory, "staged outputs are gone")',
            ),
        ),
        AT_ONCE,
        "",
    ),
)
"""Deletion follows the commit that drops the entry: whoever misses a document has an old view, and a newer one to load."""
