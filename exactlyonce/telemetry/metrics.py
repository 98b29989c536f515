"""The metrics, by name; docs/howto/telemetry.md explains each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import Meter

PROCESSED: Final = "exactlyonce.messages.processed"
DUPLICATES: Final = "exactlyonce.messages.duplicates"
DIFFERING: Final = "exactlyonce.messages.differing"
FAILED: Final = "exactlyonce.messages.failed"
HELD: Final = "exactlyonce.messages.held"
PARKED: Final = "exactlyonce.messages.parked"
LAG: Final = "exactlyonce.messages.lag"
COMMIT: Final = "exactlyonce.commit.messages"
UNFINISHED: Final = "exactlyonce.attempts.unfinished"
CONFLICTS: Final = "exactlyonce.requests.conflicts"
UNKNOWN_OUTCOMES: Final = "exactlyonce.requests.unknown"
REFUSED: Final = "exactlyonce.requests.refused"
CHARGE: Final = "azure.cosmosdb.client.operation.request_charge"
PUBLISHED_OUTPUTS: Final = "exactlyonce.outputs.published"
OWED: Final = "exactlyonce.outputs.owed"
GAP_AGE: Final = "exactlyonce.gaps.age"
MAINTENANCE_FAILED: Final = "exactlyonce.maintenance.failed"
OPEN: Final = "exactlyonce.book.open"
STUCK: Final = "exactlyonce.book.stuck"

Record = Callable[[float, Mapping[str, str | int]], None]

_NO_EXEMPLARS: Final = Context()
"""A context without a span: exemplars would cost a third more, and few back ends show them."""

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
_CHARGES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_MESSAGES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
_AGES: Final = (60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604800.0)


class Metrics:
    """The instruments, each as a function that records a number with labels."""

    def __init__(self, meter: Meter) -> None:
        def counter(name: str, unit: str, description: str) -> Record:
            return partial(meter.create_counter(name, unit, description).add, context=_NO_EXEMPLARS)

        def histogram(name: str, unit: str, description: str, boundaries: tuple[float, ...]) -> Record:
            made = meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=boundaries)
            return partial(made.record, context=_NO_EXEMPLARS)

        def gauge(name: str, unit: str, description: str) -> Record:
            return partial(meter.create_gauge(name, unit, description).set, context=_NO_EXEMPLARS)

        self.processed = counter(PROCESSED, "{message}", "Messages committed, each for the first time")
        self.duplicates = counter(DUPLICATES, "{message}", "Deliveries of messages that were processed before")
        self.differing = counter(DIFFERING, "{message}", "Duplicates that differ from the message that was processed")
        self.failed = counter(FAILED, "{message}", "Deliveries given back to their queue")
        self.held = counter(HELD, "{message}", "Messages held for those before them")
        self.parked = counter(PARKED, "{message}", "Messages stored for an operator")
        self.lag = histogram(LAG, "s", "From a message's time to its commit", _SECONDS)
        self.commit = histogram(COMMIT, "{message}", "Messages in one commit", _MESSAGES)
        self.unfinished = counter(UNFINISHED, "{attempt}", "Attempts that did not finish")
        self.conflicts = counter(CONFLICTS, "{request}", "Writes whose condition did not hold")
        self.unknown = counter(UNKNOWN_OUTCOMES, "{request}", "Requests whose outcome is not known")
        self.refused = counter(REFUSED, "{request}", "Requests that were throttled, or met a replica that was behind")
        self.charge = histogram(CHARGE, "{request_unit}", "Request units of an operation", _CHARGES)
        self.published = counter(PUBLISHED_OUTPUTS, "{message}", "Outputs that their queues took, copies included")
        self.owed = counter(OWED, "{message}", "Outputs that an earlier attempt had left unpublished")
        self.gap_age = histogram(GAP_AGE, "s", "Age of a gap before held messages", _AGES)
        self.maintenance_failed = counter(
            MAINTENANCE_FAILED, "{run}", "Maintenance of entities that ended with an error"
        )
        self.open = gauge(OPEN, "{transaction}", "Transactions of this process that are not known to be finished")
        self.stuck = gauge(STUCK, "{transaction}", "Those of them that have been open for long")
