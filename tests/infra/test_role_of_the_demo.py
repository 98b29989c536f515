"""The app's role in Cosmos DB is what the request log of the demo takes: no more and no less."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from demo.options import Options, Strategy
from demo.play import play
from demo.shots import plan_deliveries, plan_shots
from demo.stack import DATABASE, ROOT, Stack, running_stack
from tests.infra.permissions import needed
from tests.infra.test_roles import definitions

pytestmark = pytest.mark.acceptance
PRESETS: Final[tuple[Strategy, ...]] = ("transaction_id", "outbox")
"""The second one takes the games over. The first stages what it sends and deletes it; the second looks for records."""


async def play_quietly(stack: Stack, preset: Strategy) -> None:
    """Play a short game without trouble."""
    options = Options(shots=8, games=1, faults=False, strategy=preset, seed=PRESETS.index(preset), hosts=1)
    random = Random(options.seed)
    stack.strategy = preset
    stack.start_hosts(options.hosts)
    await play(stack, options, plan_deliveries(plan_shots(options, random), options, random), lambda _: None)
    stack.stop_hosts()


def operations(stack: Stack) -> set[str]:
    """What was asked for, by the log; of batches, what they held, by the history of what was written."""
    asked = {total.operation for total in stack.cosmos.totals() if total.database == DATABASE}
    held = {write.operation for write in stack.cosmos.history(DATABASE) if write.batch is not None}
    assert "batch" in asked
    return asked - {"batch"} | held


async def test_the_demo_takes_every_action_of_the_apps_role_and_no_other(tmp_path: Path) -> None:
    with running_stack(ROOT, tmp_path, PRESETS[0], disordered=False) as stack:
        for preset in PRESETS:
            await play_quietly(stack, preset)
        asked = operations(stack)
    assert needed(frozenset(asked)) == set(definitions()["exactlyonce-application"]["dataActions"])
    for operation in asked:  # Without any one of them the role would be another.
        assert needed(frozenset(asked - {operation})) != needed(frozenset(asked))
