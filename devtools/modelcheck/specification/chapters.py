"""The pages: a module of the strategies each, and what is driven for its steps. Their prose is docstrings and comments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any, Final

from devtools.modelcheck.specification import occasions
from devtools.modelcheck.specification.driving import Driven
from devtools.modelcheck.specification.playing import Occasion
from devtools.modelcheck.specification.settings import COLOCATED, WAITING
from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.protocols import colocated
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.outbox import settle as settling
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.steps import clean_companions as truncation
from exactlyonce.protocols.steps import give_back as returning
from exactlyonce.protocols.steps import settle as settling_beside
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying


def prose(documented: Any) -> str:
    """The docstring of a module or function, as far as it is prose."""
    text = inspect.getdoc(documented) or ""
    return text.partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]


@dataclass(frozen=True)
class Part:
    """One generator, driven.

    Attributes:
        title: of the part.
        function: the generator function.
        occasions: to start it.
    """

    title: str
    function: Callable[..., Any]
    occasions: Callable[[], Iterable[Occasion]]

    @cached_property
    def driven(self) -> Driven:
        """All that was seen."""
        return Driven(self.occasions())


@dataclass(frozen=True)
class Chapter:
    """One page.

    Attributes:
        name: of the file.
        module: whose docstring begins the page.
        parts: in order.
    """

    name: str
    module: ModuleType
    parts: tuple[Part, ...]

    @property
    def summary(self) -> str:
        """What the page is about: the first sentence of the docstring."""
        return f"{prose(self.module).partition('.')[0]}."


CHAPTERS: Final = (
    Chapter(
        "outbox.md",
        outbox,
        (
            Part("Processing messages", Outbox.attempt, partial(occasions.attempts, *occasions.OUTBOX)),
            Part("Marking what was published", Outbox.mark, partial(occasions.markings, *occasions.OUTBOX)),
        ),
    ),
    Chapter(
        "settling.md",
        settling,
        (
            Part("Sweeping an entity", settling.sweep, occasions.sweeps),
            Part(
                "Settling a message that the host gave up on",
                settling.settle,
                partial(occasions.settlements, *occasions.OUTBOX),
            ),
            Part("Sending a parked message again", settling.requeue, occasions.requeuings),
            Part("Making a parked message a new one", settling.renew, occasions.renewals),
        ),
    ),
    Chapter(
        "returning.md",
        returning,
        (
            Part("Returning a message unless it is parked", returning.give_back, occasions.returnings),
            Part("Returning a message that cannot be parked", returning.send, occasions.sendings),
        ),
    ),
    Chapter(
        "retention.md",
        retention,
        (
            Part("Deleting staged outputs", retention.clean_staged, occasions.cleanings_of_staged),
            Part("Deleting processed records", retention.clean_processed, occasions.cleanings_of_processed),
            Part("Deleting blobs", retention.clean_blobs, occasions.cleanings_of_blobs),
            Part("Deleting companions", truncation.clean_beside, occasions.cleanings_beside),
        ),
    ),
    Chapter(
        "colocated.md",
        colocated,
        (
            Part("Processing messages", Colocated.attempt, partial(occasions.attempts, COLOCATED)),
            Part("Sweeping an entity", colocated.sweep, occasions.sweeps_beside),
        ),
    ),
    Chapter(
        "version-stream.md",
        version_stream,
        (
            Part("Processing messages", VersionStream.attempt, occasions.stream_attempts),
            Part("Finding what a read model lacks", replaying.versions_of, occasions.searches),
            Part("Sending again", replaying.replay, occasions.replays),
        ),
    ),
    Chapter(
        "resequencer.md",
        resequencer,
        (
            Part("Receiving messages", Resequencer.attempt, occasions.receptions),
            Part("Marking what was published", Resequencer.mark, partial(occasions.markings, WAITING)),
            Part("Tending a read model", gaps.tend, occasions.tendings),
        ),
    ),
    Chapter(
        "settling-beside.md",
        settling_beside,
        (
            Part(
                "Settling a message that the host gave up on",
                settling_beside.settle_beside,
                partial(occasions.settlements, *occasions.BESIDE),
            ),
        ),
    ),
)
