"""The context: a handler's only source of time, ids and chance, and its only way to send, to keep and to write."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.core.messaging import CloudEvent as AzureEvent
from pydantic import BaseModel
from yarl import URL

from exactlyonce import Api, ConfigurationError, Context, Destination, Entity, Envelope, Outbox, Reply, message
from exactlyonce.effects.attempt import Before, Work, keeps_nothing
from exactlyonce.errors import ContextClosed, HandlerFailed, OutputTooLarge, UnknownDestination
from exactlyonce.handling.context import NUMBERED
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.blobs import MAX_BLOB_BYTES, Author, Blob, folder_of
from exactlyonce.records.outbox import MAX_OUTPUT_BYTES, MOST_CARRIED, Output
from exactlyonce.testing import run
from exactlyonce.values.envelope import EntityRef, Origin
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ORIGIN = Origin(EntityRef("range", ("game-7",), "game-7"), "web/m-1")


@message("context.hit")
@dataclass
class Hit:
    position: int = 0
    padding: str = ""


@message("context.miss")
@dataclass
class Miss:
    position: int = 0


@message("context.unwanted", event=True)
@dataclass
class Unwanted:
    position: int = 0


DESTINATIONS = (Destination("board", (Hit, Miss)), Destination("archive", (Hit,)), Destination("other"))


def context(limit: int = 1_000, blobs: str | None = None) -> Context:
    limits = {destination.name: limit for destination in DESTINATIONS}
    return Context(ORIGIN, Before(None, AT, "5f"), Routes.to(DESTINATIONS, limits, blobs=blobs))


def test_a_message_sent_becomes_an_envelope_with_a_derived_id() -> None:
    given = context()
    given.send("board", Hit(5), delay=timedelta(seconds=90))
    envelope = Envelope("range/game-7", ORIGIN.output_id(0), "context.hit", Json.of({"position": 5, "padding": ""}), AT)
    assert given.outputs == (Output(ORIGIN.output_id(0), "board", envelope.to_json(), 90.0),)


def test_outputs_keep_their_order_and_number() -> None:
    given = context()
    given.send("board", Hit(1))
    given.send("other", Miss(2))
    given.send("board", Hit(3))
    assert [output.id for output in given.outputs] == [ORIGIN.output_id(index) for index in range(3)]
    assert [output.destination for output in given.outputs] == ["board", "other", "board"]


def test_the_same_calls_give_the_same_ids_and_chance() -> None:
    def play(given: Context) -> tuple[object, ...]:
        given.send("board", Hit(given.random.randrange(100)))
        return (given.now, given.new_id(), given.new_id(), given.random.random(), given.outputs)

    assert play(context()) == play(context())


def test_ids_do_not_depend_on_what_was_sent_or_drawn_before() -> None:
    one, other = context(), context()
    other.send("board", Hit())
    other.random.random()
    assert [one.new_id(), one.new_id()] == [other.new_id(), other.new_id()]
    assert one.new_id() != one.new_id()


def test_an_event_goes_to_every_destination_that_receives_its_type() -> None:
    given = context()
    given.announce(Hit(1))
    given.announce(Miss(2))
    given.announce(Unwanted(3))
    assert [(output.destination, output.envelope.value["type"]) for output in given.outputs] == [
        ("board", "context.hit"),
        ("archive", "context.hit"),
        ("board", "context.miss"),
    ]
    assert len({output.id for output in given.outputs}) == 3


def test_an_unknown_destination_says_which_are_known() -> None:
    given = context()
    with pytest.raises(UnknownDestination, match="'nowhere'; known are: archive, board, other"):
        given.send("nowhere", Hit())
    assert given.outputs == ()


def test_a_message_at_its_queues_limit_is_sent_and_one_byte_more_is_not() -> None:
    probe = context()
    probe.send("board", Hit())
    size = probe.outputs[0].envelope.size
    context(size).send("board", Hit())
    given = context(size - 1)
    with pytest.raises(OutputTooLarge, match=f"{size} bytes.*{size - 1}.*blob"):
        given.send("board", Hit())
    assert given.outputs == ()


@pytest.mark.parametrize(("size", "apart"), [(MOST_CARRIED, False), (MOST_CARRIED + 1, True)])
@pytest.mark.parametrize("blobs", [None, "https://a.example/blobs"])
def test_a_large_message_travels_by_reference_where_there_is_a_container(
    size: int, apart: bool, blobs: str | None
) -> None:
    probe = context()
    probe.send("board", Hit())
    given = context(limit=10 * MOST_CARRIED, blobs=blobs)
    given.send("board", Hit(padding="x" * (size - probe.outputs[0].envelope.size)))
    (output,) = given.outputs
    assert (len(given.blobs), "dataref" in output.envelope.value) == ((1, True) if apart and blobs else (0, False))
    assert (output.envelope.size < 500) is bool(given.blobs)


def test_all_messages_together_have_to_fit_one_document() -> None:
    given = context(limit=MAX_OUTPUT_BYTES)
    given.send("board", Hit(padding="x" * (MAX_OUTPUT_BYTES // 2)))
    with pytest.raises(OutputTooLarge, match="together"):
        given.send("board", Hit(padding="x" * (MAX_OUTPUT_BYTES // 2)))
    given.send("board", Hit())
    assert len(given.outputs) == 2


@pytest.mark.parametrize("delay", [None, timedelta(0), timedelta(days=7) - timedelta(seconds=1)])
@pytest.mark.parametrize("wrong", [timedelta(microseconds=-1), timedelta(days=7), timedelta(days=400)])
def test_a_delay_is_neither_negative_nor_longer_than_a_message_lives(delay: timedelta | None, wrong: timedelta) -> None:
    given = context()
    with pytest.raises(ValueError, match="7 days"):
        given.send("board", Hit(), delay=wrong)
    given.send("board", Hit(), delay=delay)
    assert [output.delay for output in given.outputs] == [(delay or timedelta(0)).total_seconds()]


USES: dict[str, Callable[[Context], object]] = {
    "send": lambda context: context.send("board", Hit()),
    "announce": lambda context: context.announce(Hit()),
    "announce nobody": lambda context: context.announce(Unwanted()),
    "reply": lambda context: context.reply(),
    "cancel": lambda context: context.cancel("id"),
    "write_once": lambda context: context.write_once("a", b""),
    "delete": lambda context: context.delete(),
    "new_id": lambda context: context.new_id(),
    "random": lambda context: context.random.random(),
    "call": lambda context: context.call(Api("a", "https://a", timedelta(days=1)), "GET", "/", then=Reply),
}


class Keeping(BaseModel):
    hits: int = 0


def keeping(kept: list[Context]) -> Entity[Keeping]:
    entity = Entity("keeping", state=Keeping, container="keeping", strategy=Outbox())

    @entity.handles(Hit, key=lambda hit: "k")
    def hit(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        if hit.padding:
            raise KeyError
        return Keeping(hits=state.hits + 1)

    return entity


def hit_by(entity: Entity[Keeping], **data: object) -> None:
    ref = EntityRef("keeping", ("k",), "k")
    before = Before(None, AT, "t-1", ())
    Runner(entity, ref, Routes.to(DESTINATIONS, {}))(before, Envelope("web", "m-1", "context.hit", Json.of(data), AT))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_context_that_outlives_its_handler_refuses_every_use(use: str, *, fails: bool) -> None:
    kept: list[Context] = []
    with pytest.raises(HandlerFailed) if fails else nullcontext():
        hit_by(keeping(kept), padding="x" * fails)
    with ThreadPoolExecutor(1) as threads:  # As a thread that goes on after its handler.
        error = threads.submit(USES[use], kept[0]).exception()
    assert isinstance(error, ContextClosed)
    name = use.split(maxsplit=1)[0]
    assert str(error).startswith(f"context.{name} was used after the handler of message web/m-1")
    assert (kept[0].outputs, kept[0].blobs, kept[0].deleted, kept[0].answer) == ((), (), False, None)
    assert kept[0].now == AT


def test_a_handler_that_uses_the_context_of_another_message_fails() -> None:
    kept: list[Context] = []
    entity = Entity("reusing", state=Keeping, container="reusing", strategy=Outbox())

    @entity.handles(Hit, key=lambda hit: "k")
    def hit(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        kept[0].new_id()
        return state

    hit_by(entity)
    with pytest.raises(ContextClosed, match="Message web/m-1 on entity"):
        hit_by(entity)


@pytest.mark.parametrize("fails", [False, True])
def test_the_context_of_a_test_is_closed_with_its_handler(fails: bool) -> None:
    kept: list[Context] = []

    def handler(state: Keeping, hit: Hit, context: Context) -> Keeping:
        kept.append(context)
        if fails:
            raise SystemExit
        return state

    with pytest.raises(SystemExit) if fails else nullcontext():
        run(handler, Keeping(), Hit())
    with pytest.raises(ContextClosed):
        kept[0].send("board", Hit())


LATER = AT + timedelta(days=400)
NOTHING: frozenset[str] = frozenset()


@message("keeping.remind")
class Remind(BaseModel):
    """Comes at a later time."""

    to: str = "b-2"
    text: str = ""


class Book(BaseModel):
    """State of a book of reminders."""

    reminders: int = 0


books = Entity("book", state=Book, container="books", strategy=Outbox())


@books.handles(Remind, key=lambda remind: remind.to)
def remind(state: Book, remind: Remind, context: Context) -> Book:
    """Change nothing."""
    del remind, context
    return state


BOOK = EntityRef("book", ("b-1",), "b-1")
BOOK_ORIGIN = Origin(BOOK, "web/m-1")
BOOKS_AND_MAIL = (
    Destination("books", to=books, ordered=True),
    Destination("mail", session_by=lambda remind: remind.to),
)


def routes(limit: int = 48 * 1024, *destinations: Destination) -> Routes:
    chosen = destinations or BOOKS_AND_MAIL
    return Routes.to(chosen, {item.name: limit for item in chosen}, entities=(books,))


def reminding(kept: frozenset[str] | None = NOTHING, limit: int = 48 * 1024) -> Context:
    return Context(BOOK_ORIGIN, Before(None, AT, "5f" * 16, kept=kept), routes(limit))


def kept(destination: str = "books", text: str = "") -> Output:
    """What a handler keeps that sends one reminder."""
    given = reminding()
    given.send(destination, Remind(text=text), at=LATER)
    return given.kept[0][1]


def released(output: Output, body: Json | None = None, given: Routes | None = None) -> Output:
    """A kept message as it is sent in the end."""
    before = Before(body, LATER, "a0" * 16, kept=frozenset({output.id}))
    (sent,) = Runner(books, BOOK, given or routes()).release(before, output).outputs
    return sent


def test_a_message_with_a_time_is_kept_and_not_sent() -> None:
    given = reminding()
    id = given.send("books", Remind(), at=LATER)
    assert given.outputs == ()
    assert given.sequences == ()
    ((due, output),) = given.kept
    assert (due, output.id, output.destination, output.place) == (LATER, id, "books", None)


def test_every_output_has_the_id_that_send_returned_whether_it_is_kept_or_not() -> None:
    given = reminding()
    ids = [given.send("books", Remind()), given.send("books", Remind(), at=LATER), given.send("books", Remind())]
    assert ids == [BOOK_ORIGIN.output_id(index) for index in range(3)]
    assert [output.id for output in given.outputs] == [ids[0], ids[2]]


def test_a_message_that_its_own_handler_cancels_leaves_its_id_to_no_other() -> None:
    given = reminding()
    first = given.send("books", Remind(), at=LATER)
    assert given.cancel(first)
    second = given.send("books", Remind(), at=LATER)
    assert first != second
    assert [output.id for _, output in given.kept] == [second]
    assert given.cancelled == NOTHING
    assert not given.cancel(first)


def test_cancelling_says_whether_the_message_was_still_kept() -> None:
    given = reminding(frozenset({"one", "two"}))
    assert given.cancel("one")
    assert not given.cancel("one")
    assert not given.cancel("released, or another entity's")
    assert given.cancelled == {"one"}


def test_a_time_has_a_zone_and_no_delay_and_is_kept_in_utc() -> None:
    given = reminding()
    given.send("books", Remind(), at=LATER.astimezone(timezone(timedelta(hours=-5))))
    due = given.kept[0][0]
    assert (due, due.utcoffset()) == (LATER, timedelta(0))
    with pytest.raises(ValueError, match="time zone"):
        given.send("books", Remind(), at=LATER.replace(tzinfo=None))
    with pytest.raises(ValueError, match="not both"):
        given.send("books", Remind(), at=LATER, delay=timedelta(1))
    for due in map(datetime.fromisoformat, ("0001-01-01T00:00:00+02:00", "9999-12-31T23:59:00-02:00")):
        with pytest.raises(ValueError, match="at= is a time whose year is 1 to 9999 in UTC"):
            given.send("books", Remind(), at=due)


def test_where_the_ledger_keeps_no_messages_both_are_refused() -> None:
    given = reminding(kept=None)
    with pytest.raises(ConfigurationError, match=r"Outbox\(\)"):
        given.send("books", Remind(), at=LATER)
    with pytest.raises(ConfigurationError, match=r"Outbox\(\)"):
        given.cancel("any")


def test_a_kept_message_fits_its_queue_with_its_number() -> None:
    size = kept().envelope.size
    reminding(limit=size + NUMBERED).send("books", Remind(), at=LATER)
    with pytest.raises(OutputTooLarge):
        reminding(limit=size + NUMBERED - 1).send("books", Remind(), at=LATER)
    with pytest.raises(UnknownDestination):
        reminding().send("nowhere", Remind(), at=LATER)
    assert released(kept(text="x" * 100)).envelope.size <= kept(text="x" * 100).envelope.size + NUMBERED


def test_a_kept_message_travels_by_reference_only_where_its_queue_needs_that() -> None:
    """It may be kept for longer than such blobs are."""
    for padding, apart in ((MOST_CARRIED, False), (48 * 1024, True)):
        given = Context(
            BOOK_ORIGIN, Before(None, AT, "5f", kept=NOTHING), replace(routes(), blobs="https://a.example/b")
        )
        given.send("books", Remind(text="x" * padding), at=LATER)
        assert bool(given.blobs) is apart


def test_time_and_number_of_a_kept_message_are_those_of_its_release() -> None:
    sent = released(kept())
    envelope = Envelope.read(sent.envelope.text)
    assert (sent.id, envelope.id, envelope.time) == (kept().id, kept().id, LATER)
    assert sent.place is not None
    assert (sent.place.receiver, sent.place.number) == ("book/b-2", 1)
    assert dict(envelope.extensions) == dict(sent.place.extensions)


@pytest.mark.parametrize("destination", [Destination("books"), Destination("books", to=books)])
def test_without_an_order_there_is_no_number(destination: Destination) -> None:
    assert released(kept(), given=routes(48 * 1024, destination)).place is None
    sent = released(kept("mail"))
    assert sent.place is None
    assert dict(Envelope.read(sent.envelope.text).extensions) == {"partitionkey": "b-2"}


def test_a_release_changes_no_state_and_brings_no_deleted_entity_back() -> None:
    runner, body = Runner(books, BOOK, routes()), Json.of({"id": "b-1", "reminders": 3})
    there = runner.release(Before(body, LATER, "a0" * 16), kept())
    assert (there.body, there.deleted, there.cancelled) == (body, False, frozenset({kept().id}))
    gone = runner.release(Before(None, LATER, "a0" * 16), kept())
    assert (gone.body, gone.deleted) == (runner.absent, True)


def test_a_destination_that_the_application_no_longer_has_is_an_error() -> None:
    with pytest.raises(UnknownDestination, match="books"):
        released(kept(), given=routes(48 * 1024, Destination("mail")))


def test_work_without_a_runner_releases_nothing() -> None:
    assert Work(BOOK, (), Runner(books, BOOK, routes()), Json("{}")).release is keeps_nothing
    with pytest.raises(ConfigurationError, match=kept().id):
        keeps_nothing(Before(None, AT, "tx"), kept())


def test_run_shows_the_time_and_what_was_cancelled() -> None:
    def handler(state: Book, _: Remind, context: Context) -> Book:
        context.send("mail", Remind(), at=context.now + timedelta(days=30))
        assert context.cancel("o-1")
        assert not context.cancel("o-2")
        return state

    ran = run(handler, Book(), Remind(), now=AT, kept=("o-1",))
    assert [(sent.destination, sent.at) for sent in ran.sent] == [("mail", AT + timedelta(days=30))]
    assert ran.cancelled == {"o-1"}


BASE = "https://account.blob.core.windows.net/blobs"
GAME = EntityRef("range", ("game-7",), "game-7")


@message("writing.letter")
@dataclass
class Letter:
    text: str = ""


def writing(entity: EntityRef = GAME, *, limit: int = 1_000, blobs: str | None = BASE) -> Context:
    routes = Routes.to((Destination("post"),), {"post": limit}, blobs=blobs)
    return Context(Origin(entity, "web/m-1"), Before(None, AT, "5f"), routes)


def test_a_blob_gets_an_address_of_its_attempt() -> None:
    given = writing()
    address = given.write_once("letters/one.txt", "ÄÖÜ", content_type="text/plain")
    author = Author(GAME, "web/m-1", "5f", AT)
    assert given.blobs == (Blob("range/game-7/5f/letters/one.txt", "ÄÖÜ".encode(), "text/plain", author),)
    assert address == f"{BASE}/range/game-7/5f/letters/one.txt"
    given.write_once("a", b"\xff\x00")
    *_, plain = given.blobs
    assert (plain.content, plain.type) == (b"\xff\x00", "application/octet-stream")


UNFIT = ("/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a.", "a./b", "-a", "_messages/a")
UNQUOTED = ("", "a b", "a?b", "a#b", "a%20b", "ä", "a\\b", "a\n", "a" * 201)


@pytest.mark.parametrize("name", UNFIT + UNQUOTED)
def test_a_name_that_an_address_would_have_to_quote_is_refused(name: str) -> None:
    given = writing()
    with pytest.raises(ValueError, match="The name of a blob"):
        given.write_once(name, b"")
    assert given.blobs == ()


@pytest.mark.parametrize("name", ["a", "9", "a" * 200, "a/b/c.tar.gz", "A-b_c/.hidden", "a..b"])
def test_other_names_are_taken(name: str) -> None:
    assert writing().write_once(name, b"") == f"{BASE}/range/game-7/5f/{name}"


@pytest.mark.parametrize("content_type", ["text/plain\r\nx-ms-lease: 1", "text/plän", "\t", "text/plain ", " "])
def test_an_invalid_media_type_is_refused(content_type: str) -> None:
    with pytest.raises(ValueError, match="media type"):
        writing().write_once("a", b"", content_type=content_type)


def test_two_blobs_of_a_message_have_two_names() -> None:
    given = writing()
    given.write_once("a", b"1")
    with pytest.raises(ValueError, match=r"range/game-7/5f/a"):
        given.write_once("a", b"2")
    given.write_once("a/b", b"3")
    assert [blob.content for blob in given.blobs] == [b"1", b"3"]


def test_the_blobs_of_a_message_have_a_size_limit_together() -> None:
    given = writing()
    given.write_once("half", bytes(MAX_BLOB_BYTES // 2))
    with pytest.raises(OutputTooLarge, match=f"{MAX_BLOB_BYTES + 1} bytes together"):
        given.write_once("more", bytes(MAX_BLOB_BYTES // 2 + 1))
    given.write_once("rest", bytes(MAX_BLOB_BYTES // 2))
    assert len(given.blobs) == 2


def test_without_a_container_there_are_no_blobs() -> None:
    with pytest.raises(UnknownDestination, match="EXACTLYONCE__blobContainer"):
        writing(blobs=None).write_once("a", b"")
    with pytest.raises(OutputTooLarge, match="EXACTLYONCE__blobContainer"):
        writing(blobs=None).send("post", Letter("x" * 2_000))


AWKWARD = (
    EntityRef("range", ("..", ".."), "other-container"),
    EntityRef("range", (".",), "."),
    EntityRef("range", ("a.",), "a."),
    EntityRef("range", ("a b?c#d&e=f",), "ж/\\%2F"),
    EntityRef("_messages", ("a",), "a"),
    EntityRef("range", ("x" * 255,), "y" * 255),
    EntityRef("range", ("",), "a"),
    EntityRef("ΑΒΓ", ("Δ" * 255,), "Δ" * 255),
)


@pytest.mark.parametrize("entity", AWKWARD, ids=range(len(AWKWARD)))
def test_an_awkward_entity_gets_a_plain_address_of_its_own(entity: EntityRef) -> None:
    given = writing(entity)
    address = given.write_once("a/b", b"")
    (blob,) = given.blobs
    assert blob.author is not None
    assert blob.author.entity == entity
    assert address == f"{BASE}/{blob.name}" == str(URL(address))
    assert urlsplit(address).path == f"/blobs/{blob.name}"
    assert blob.name == f"{folder_of(entity)}/5f/a/b"
    assert blob.name.startswith("~")
    assert len(blob.name) < 1024 - 200


def test_folders_are_the_sources_of_plain_keys_and_differ() -> None:
    plain = EntityRef("order", ("tenant_1", "7"), "2026-01.b")
    assert folder_of(plain) == plain.source == "order/tenant_1/7/2026-01.b"
    assert folder_of(EntityRef("order", ("tenant_1", 7), "2026-01.b")).startswith("~")
    assert len({folder_of(entity) for entity in AWKWARD}) == len(AWKWARD)


def test_a_message_at_its_queues_limit_travels_whole_and_one_byte_more_as_a_blob() -> None:
    probe = writing(limit=100_000)
    probe.send("post", Letter("x" * 2_000))
    size = probe.outputs[0].envelope.size
    whole, apart = writing(limit=size), writing(limit=size - 1)
    for given in (whole, apart):
        given.send("post", Letter("x" * 2_000))
    assert (whole.outputs, whole.blobs) == (probe.outputs, ())
    (output,), (blob,) = apart.outputs, apart.blobs
    assert output.id == probe.outputs[0].id
    assert blob.name == f"_messages/range/game-7/5f/{output.id}"
    assert (blob.type, json.loads(blob.content)) == ("application/json", {"text": "x" * 2_000})
    assert output.envelope.value["dataref"] == f"{BASE}/{blob.name}"
    assert "data" not in output.envelope.value


def test_a_message_by_reference_is_read_and_gets_its_data_back() -> None:
    whole, apart = writing(limit=100_000), writing(limit=1_000)
    for given in (whole, apart):
        given.send("post", Letter("ÄÖÜ" * 1_000))
    read = Envelope.read(apart.outputs[0].envelope.text)
    (blob,) = apart.blobs
    assert read.reference == f"{BASE}/{blob.name}"
    assert read.data == Json("null")
    assert read.to_json() == apart.outputs[0].envelope
    restored = read.with_data(Json(blob.content.decode()))
    assert restored == Envelope.read(whole.outputs[0].envelope.text)
    assert restored.reference is None


def test_azure_core_reads_a_message_that_refers_to_its_data() -> None:
    given = writing()
    given.send("post", Letter("x" * 2_000))
    event: AzureEvent[Any] = AzureEvent.from_json(given.outputs[0].envelope.text)
    assert (event.source, event.type, event.data) == ("range/game-7", "writing.letter", None)
    assert event.extensions == {"dataref": f"{BASE}/{given.blobs[0].name}"}


def test_a_large_message_that_cannot_be_sent_leaves_no_blob() -> None:
    given = writing(limit=50)
    for _ in range(2):
        with pytest.raises(OutputTooLarge):
            given.send("post", Letter("x" * 2_000))
    given = writing()
    with pytest.raises(UnknownDestination, match="nowhere"):
        given.send("nowhere", Letter("x" * 2_000))
    assert (given.outputs, given.blobs) == ((), ())


def test_a_message_too_large_for_a_blob_is_refused_and_a_smaller_one_sent() -> None:
    given = writing()
    given.write_once("half", bytes(MAX_BLOB_BYTES // 2))
    with pytest.raises(OutputTooLarge, match="together"):
        given.send("post", Letter("x" * (MAX_BLOB_BYTES // 2)))
    given.send("post", Letter("x" * 2_000))
    assert (len(given.outputs), len(given.blobs)) == (1, 2)
