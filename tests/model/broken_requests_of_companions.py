"""The zoo of requests where records are companions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from exactlyonce import Colocated
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.protocols import colocated
from exactlyonce.protocols.steps import batch as publishing
from exactlyonce.protocols.stream import protocol as version_stream
from tests.model.broken_requests import ANSWER, LOST
from tests.model.zoo import Broken
from verification.scenarios.requests import IN_ONE_PARTITION
from verification.twins.alterations import unasked
from verification.twins.modules import Patch, around
from verification.world.scenario import Scenario

WORLDS = {scenario.name.removeprefix("requests: "): scenario for scenario in IN_ONE_PARTITION}
COLOCATED = WORLDS["co-located, lost replies"]
STREAM = WORLDS["stream, lost replies"]


UNPUBLISHED = unasked(Publish, PUBLISHED)


def _keeping(make: Any, **less: Any) -> Patch:
    """What is kept of a request lacks something."""
    return around(make, lambda shipped: lambda *arguments: replace(shipped(*arguments), **less))


TWINS: tuple[Broken[Scenario], ...] = (
    Broken("co-located: answered before published", (around(Colocated._commit, UNPUBLISHED),), COLOCATED, LOST),
    Broken("co-located: a record without its answer", (_keeping(colocated._record, answer=None),), COLOCATED, ANSWER),
    Broken(
        "co-located: swept without publishing",
        (around(publishing.sweep_records, UNPUBLISHED),),
        COLOCATED,
        LOST,
    ),
    Broken(
        "stream: answered before published",
        (around(version_stream._commit, UNPUBLISHED),),
        STREAM,
        LOST,
    ),
    Broken(
        "stream: an entry that does not say what it owes", (_keeping(version_stream._entry, owed=None),), STREAM, LOST
    ),
    Broken(
        "stream: a retry is not published",
        (around(publishing.publish_records, UNPUBLISHED),),
        STREAM,
        LOST,
    ),
)
