"""The local Service Bus of a demo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from demo.options import Options

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

TRIGGERED: Final = ("shooting-range", "leader-board")
OTHERS: Final = ("leader-board-way", "audience")
LOCK_SECONDS: Final = 3
"""How long a killed host's messages stay locked. Locks of single messages are renewed."""
BATCH_LOCK_SECONDS: Final = 15
"""The same of batches, whose locks nobody renews: long enough to process one."""
TROUBLE: Final = (("receive", "lock_lost"), ("complete", "lock_lost"), ("complete", "cut_after"), ("send", "cut_after"))
"""What happens to operations on the queues that functions take messages of, and how."""
_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Bus:
    """A running endpoint, and how the app uses it.

    Attributes:
        endpoint: the broker.
        sessions: whether it delivers the messages of a game one after the other.
        batches: whether functions take batches.
        faults: the trouble that was ordered.
    """

    endpoint: RunningEndpoint
    sessions: bool
    batches: bool
    faults: list[int] = field(default_factory=list)

    @property
    def environment(self) -> Mapping[str, str]:
        """Settings of the app."""
        return {
            "EXACTLYONCE__transport": "servicebus",
            "ServiceBus": self.endpoint.connection_string,
            "SERVICEBUS_SESSIONS": "on" if self.sessions else "off",
            "SERVICEBUS_BATCH": "on" if self.batches else "off",
        }

    def inject(self) -> None:
        """From now on locks are lost in mid-flight, and completions and sends lose their replies after they worked."""
        from local_service_bus.faults import FaultRule  # noqa: PLC0415  # See `running_bus`.

        for queue, (operation, action) in product(TRIGGERED, TROUBLE):
            rule = FaultRule(operation, queue, action, times=None, probability=_SHARE)
            self.faults.append(self.endpoint.add_fault(rule))

    def count(self) -> int:
        """How often that happened."""
        return sum(self.endpoint.fault_hits(fault) for fault in self.faults)


@contextmanager
def running_bus(options: Options) -> Iterator[Bus | None]:
    """Start the endpoint with the sample's queues, if the demo is to use it.

    Raises:
        RuntimeError: the library that speaks AMQP is not installed.
    """
    if options.transport != "servicebus":
        yield None
        return
    try:
        from local_service_bus.inprocess import running_endpoint  # noqa: PLC0415  # It needs a C compiler.
        from local_service_bus.topology import Queue, Topology  # noqa: PLC0415
    except ImportError as error:
        raise RuntimeError(
            "The local Service Bus needs python-qpid-proton, which is compiled when it is installed: install a C compiler and "
            "run make again, or play without --transport servicebus."
        ) from error
    lock = BATCH_LOCK_SECONDS if options.batches else LOCK_SECONDS
    triggered = [Queue(name, lock_duration=lock, requires_session=options.sessions) for name in TRIGGERED]
    topology = Topology(queues=(*triggered, *(Queue(name) for name in OTHERS)))
    with running_endpoint(topology, seed=options.seed) as endpoint:
        yield Bus(endpoint, options.sessions, options.batches)
