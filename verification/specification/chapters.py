"""The pages: a module of the strategies each, and what is driven for its steps. Their prose is docstrings and comments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from types import ModuleType
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.protocols import colocated
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import judge as look
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.outbox import requests
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.steps import clean_blobs
from exactlyonce.protocols.steps import give_back as returning
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from verification.specification import occasions, occasions_opened
from verification.specification.driving import Driven
from verification.specification.places import COMMITTING, PROCESSING
from verification.specification.playing import Occasion
from verification.specification.settings import COLOCATED, OUTBOX, STREAM, WAITING


def prose(documented: Any) -> str:
    """The docstring of a module or function, as far as it is prose; a text as it is."""
    text = documented if isinstance(documented, str) else inspect.getdoc(documented) or ""
    return text.partition("\n\nArgs:")[0].partition("\n\nRaises:")[0]


@dataclass(frozen=True)
class Part:
    """One generator, driven.

    Attributes:
        title: of the part.
        function: the generator function.
        occasions: to start it; none for one that other parts run.
    """

    title: str
    function: Callable[..., Any]
    occasions: Callable[[], Iterable[Occasion]] = tuple

    @cached_property
    def driven(self) -> Driven:
        """All that was seen."""
        return Driven(self.occasions())


@dataclass(frozen=True)
class Chapter:
    """One page.

    Attributes:
        name: of the file.
        module: whose docstring begins the page; or a text that does.
        parts: in order.
    """

    name: str
    module: ModuleType | str
    parts: tuple[Part, ...]

    @property
    def summary(self) -> str:
        """What the page is about: the first sentence of the docstring."""
        return f"{prose(self.module).partition('.')[0]}."


def outbox_attempts() -> Iterable[Occasion]:
    """Process messages with an outbox, opened requests among them."""
    return chain(occasions.outbox_attempts(), occasions_opened.opened_attempts())


def outbox_sweeps() -> Iterable[Occasion]:
    """Sweep entities of an outbox."""
    return chain(occasions.sweeps(), occasions_opened.sweeps_of_requests())


SETTLING: Final = "Settling a message that the host gave up on"

CHAPTERS: Final = (
    Chapter(
        "outbox.md",
        outbox,
        (
            Part("Loading the entity", Outbox.attempt, outbox_attempts),
            Part("Judging and handling messages", PROCESSING),
        ),
    ),
    Chapter(
        "outbox-commits.md",
        "Commits of the outbox: of messages that were handled, and of kept messages that are released.",
        (
            Part("Committing and publishing", COMMITTING),
            Part("Taking back pages of another history", look.take_back),
        ),
    ),
    Chapter(
        "outbox-maintenance.md",
        "Maintenance of the outbox: sweeping and settling.",
        (
            Part("Sweeping an entity", Outbox.sweep, outbox_sweeps),
            Part(SETTLING, Outbox.settle, partial(occasions.settlements, OUTBOX)),
        ),
    ),
    Chapter(
        "outbox-clean-up.md",
        "Clean-up of the outbox: documents of messages that are not kept, and old pages.",
        (
            Part(
                "Deleting documents of messages that are not kept",
                retention.clean_staged,
                occasions.cleanings_of_staged,
            ),
            Part("Deleting pages", Outbox.clean, occasions.cleanings_of_pages),
        ),
    ),
    Chapter(
        "opened-requests.md",
        "Opened requests: what callers do with them besides having them carried out, and clean-up.\n\n"
        "They are carried out as messages are [processed](outbox.md), and [swept](outbox-maintenance.md) like them.",
        (
            Part("Opening a request", requests.open_request, occasions_opened.openings),
            Part("Looking at a request", requests.find_request, occasions_opened.looks_at_requests),
            Part("Closing a request", requests.close_request, occasions_opened.closings),
            Part(
                "Deleting requests that were left open", requests.clean_requests, occasions_opened.cleanings_of_requests
            ),
        ),
    ),
    Chapter(
        "colocated.md",
        colocated,
        (
            Part("Processing messages", Colocated.attempt, partial(occasions.attempts, COLOCATED)),
            Part("Sweeping an entity", Colocated.sweep, occasions.sweeps_of_companions),
            Part(SETTLING, Colocated.settle, partial(occasions.settlements, COLOCATED)),
            Part("Deleting records", Colocated.clean, partial(occasions.cleanings, COLOCATED)),
        ),
    ),
    Chapter(
        "version-stream.md",
        version_stream,
        (Part("Processing messages", VersionStream.attempt, occasions.stream_attempts),),
    ),
    Chapter(
        "version-stream-maintenance.md",
        "Maintenance of a version stream: settling and cleaning up.",
        (
            Part(SETTLING, VersionStream.settle, partial(occasions.settlements, STREAM)),
            Part("Deleting entries", VersionStream.clean, partial(occasions.cleanings, STREAM)),
        ),
    ),
    Chapter(
        "replaying.md",
        replaying,
        (
            Part("Finding what a read model lacks", replaying.versions_of, occasions.searches),
            Part("Sending again", replaying.replay, occasions.replays),
        ),
    ),
    Chapter(
        "resequencer.md",
        resequencer,
        (
            Part("Receiving messages", Resequencer.attempt, occasions.receptions),
            Part("Tending a read model", Resequencer.tend, occasions.tendings),
        ),
    ),
    Chapter(
        "resequencer-maintenance.md",
        "Maintenance of a read model: sweeping, settling and cleaning up.",
        (
            Part("Sweeping a read model", Resequencer.sweep, occasions.sweeps_of_models),
            Part(SETTLING, Resequencer.settle, partial(occasions.settlements, WAITING)),
            Part("Deleting documents of numbers", Resequencer.clean, partial(occasions.cleanings, WAITING)),
        ),
    ),
    Chapter(
        "parking.md",
        parking,
        (
            Part("Putting a message aside", parking.put_aside, occasions.settings_aside),
            Part("Sending a parked message again", parking.requeue, occasions.requeuings),
            Part("Making a parked message a new one", parking.renew, occasions.renewals),
            Part("Discarding a parked message", parking.discard, occasions.discards),
            Part("What an outbox knows of it", Outbox.knows, partial(occasions.questions, OUTBOX)),
            Part("What companions prove of it", Colocated.knows, partial(occasions.questions, COLOCATED)),
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
        "blobs.md",
        clean_blobs,
        (Part("Deleting blobs", clean_blobs.clean_blobs, occasions.cleanings_of_blobs),),
    ),
)
