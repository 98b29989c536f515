"""What is shown of exceptions: class and frames always, the texts of others' only where a setting says so."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable

import pytest
from azure.functions.queue import QueueMessage

from exactlyonce import Context, Destination, Entity, Envelope, Outbox
from exactlyonce.errors import ExactlyOnceError, HandlerFailed, MalformedMessage, TryAgainLater
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.testing.in_memory import Host
from exactlyonce.values.raised import causes_of, shown
from tests.samples import SENT, Account, Deposit, deposit

TARIFF = "no such " + "tariff"  # Not as it stands in a line of the source.


def fails() -> None:
    raise KeyError(TARIFF)


def failed(job: Callable[[], None] = fails) -> ExactlyOnceError:
    with pytest.raises(HandlerFailed) as raised:  # noqa: PT012
        try:
            job()
        except Exception as error:
            raise HandlerFailed("The handler raised KeyError.", kept="kept") from error
    return raised.value


def told(error: BaseException, *, text: bool = False) -> str:
    return "".join(traceback.format_exception(shown(error, text=text)))


def test_an_exception_without_its_text_shows_class_file_line_and_function() -> None:
    text = told(failed())
    line = fails.__code__.co_firstlineno + 1
    assert f'KeyError:   File "{__file__}", line' in text
    assert f'File "{__file__}", line {line}, in fails' in text
    assert "HandlerFailed: The handler raised KeyError." in text
    assert TARIFF not in text
    assert "raise KeyError" not in text  # A line of the source could have a text in it.


def test_an_exception_with_its_text_shows_lines_of_the_source_as_well() -> None:
    text = told(failed(), text=True)
    assert f"KeyError: '{TARIFF}'" in text
    assert "raise KeyError(TARIFF)" in text


def test_the_library_s_own_error_keeps_class_and_text_and_what_may_be_kept() -> None:
    error = shown(failed())
    assert isinstance(error, HandlerFailed)
    assert (str(error), error.kept) == ("The handler raised KeyError.", "kept")
    assert type(error.__cause__) is not KeyError


def test_a_subclass_of_the_application_s_is_no_error_of_the_library() -> None:
    class Ours(TryAgainLater):
        pass

    error = shown(Ours(TARIFF))
    assert type(error).__name__ == "Ours"
    assert str(error) == ""


def test_an_exception_that_was_being_handled_is_shown_as_the_cause() -> None:
    def again() -> None:
        try:
            fails()
        except KeyError:
            raise ValueError(TARIFF)  # noqa: B904  # The context is the point.

    def forgetting() -> None:
        try:
            fails()
        except KeyError:
            raise ValueError(TARIFF) from None

    assert "KeyError" in told(failed(again)).replace("raised KeyError", "")
    assert "KeyError" not in told(failed(forgetting)).replace("raised KeyError", "")


def test_causes_in_a_circle_come_once_each() -> None:
    first, second = KeyError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert list(causes_of(first)) == [first, second]
    assert told(first).count("ValueError") == 1


def test_a_chain_without_end_is_cut() -> None:
    error: BaseException = ValueError()
    for _ in range(5_000):
        outer = ValueError()
        outer.__cause__, error = error, outer
    assert told(error).count("ValueError") == 50


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Groups are new in Python 3.11.")
def test_a_group_shows_what_is_in_it() -> None:
    inner = failed().__cause__
    assert inner is not None
    group = BaseExceptionGroup(TARIFF, [inner, SystemExit(TARIFF)])  # noqa: F821  # Of Python 3.11.
    text = told(group)
    assert "BaseExceptionGroup" in text
    assert "in fails" in text
    assert "SystemExit" in text
    assert TARIFF not in text
    assert told(group, text=True).count(TARIFF) == 3


def _entity() -> Entity[Account]:
    entity = Entity("account", state=Account, container="accounts", partition_key="/owner", strategy=Outbox())

    @entity.handles(Deposit, key=lambda given: given.account)
    def paid(state: Account, given: Deposit, context: Context) -> Account:
        fails()
        return state

    return entity


def _delivered(entity: Entity[Account], *, texts: bool, times: int = 1) -> ExactlyOnceError:
    host = Host((entity,), (Destination("account"),), {}, {}, SENT, blobs=False)
    object.__setattr__(host.parts, "texts", texts)
    host.parts.__dict__["show"] = lambda error: shown(error, text=texts)
    message = QueueMessage(id="q-1", body=deposit("m-1").to_json().text.encode(), dequeue_count=times)  # type: ignore[no-untyped-call]
    with pytest.raises(HandlerFailed) as raised:
        host.loop.run(host.once.process(message, entity))
    return raised.value


def test_the_host_gets_an_error_without_the_text_of_what_the_handler_raised() -> None:
    error = _delivered(_entity(), texts=False)
    text = "".join(traceback.format_exception(error))
    assert "The handler raised KeyError" in text
    assert "in fails" in text
    assert TARIFF not in text
    assert error.__context__ is None or TARIFF not in repr(error.__context__)


def test_the_host_gets_what_the_handler_raised_where_the_setting_allows_its_text() -> None:
    error = _delivered(_entity(), texts=True)
    assert isinstance(error.__cause__, KeyError)
    assert TARIFF in "".join(traceback.format_exception(error))


def test_every_function_that_a_trigger_calls_tells_the_host_no_text() -> None:
    doors = (
        "process process_batch settle sweep answer ask open_request serve_request call settle_call".split()  # noqa: SIM905
    )
    assert all(hasattr(getattr(ExactlyOnce, name), "__wrapped__") for name in doors)


def test_a_batch_logs_the_trace_of_each_failure_that_it_does_not_raise(caplog: pytest.LogCaptureFixture) -> None:
    entity = _entity()
    host = Host((entity,), (Destination("account"),), {}, {}, SENT, blobs=False)
    bodies = [Envelope.to_json(deposit(f"m-{number}")).text.encode() for number in (1, 2, 3)]
    batch = [QueueMessage(id=f"q-{number}", body=body, dequeue_count=1) for number, body in enumerate(bodies)]  # type: ignore[no-untyped-call]
    with caplog.at_level(logging.WARNING), pytest.raises(HandlerFailed):
        host.loop.run(host.once.process_batch(batch, entity, queue="account"))
    traced = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage().split()[2] for record in traced] == ["q-1", "q-2"]
    assert caplog.text.count("in fails") == 2


def test_an_exception_of_an_adapter_is_logged_where_its_message_is_put_aside(caplog: pytest.LogCaptureFixture) -> None:
    def adapter(body: bytes) -> Envelope:
        fails()
        return Envelope.read(body)

    entity = _entity()
    host = Host((entity,), (Destination("account"),), {}, {}, SENT, blobs=False)
    message = QueueMessage(id="q-1", body=b"{}", dequeue_count=1)  # type: ignore[no-untyped-call]
    with pytest.raises(MalformedMessage, match="The adapter raised KeyError"):
        host.loop.run(host.once.process(message, entity, adapter=adapter))
    settled = host.loop.run(host.once.settle(message, entity, queue="account", adapter=adapter))
    assert settled == "parked"
    assert "in fails" in caplog.text
    (parked,) = host.loop.run(host.parked())
    assert TARIFF not in parked.reason


def test_an_adapter_that_returns_no_envelope_is_named() -> None:
    entity = _entity()
    host = Host((entity,), (Destination("account"),), {}, {}, SENT, blobs=False)
    message = QueueMessage(id="q-1", body=b"{}", dequeue_count=1)  # type: ignore[no-untyped-call]
    with pytest.raises(MalformedMessage, match="The adapter returned a dict"):
        host.loop.run(host.once.process(message, entity, adapter=lambda body: {}))  # type: ignore[arg-type]
