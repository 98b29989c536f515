"""An app is loaded as the Functions worker loads it, and refused with a sentence that says what to do."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, List  # noqa: UP035  # The worker takes no list[...].

import azure.functions as func
import pytest

from function_host import AppError, SettingsError
from function_host.app_settings import AppSettings
from function_host.functions import HttpTrigger, QueueTrigger, ServiceBusTrigger, TimerTrigger
from function_host.loading import describe_functions, find_app, load_app
from function_host.service_bus.receiver import Entity

SETTINGS = AppSettings({"AzureWebJobsStorage": "UseDevelopmentStorage=true", "QUEUE": "Orders"})


@pytest.fixture
def import_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the app and its directory afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("function_app", None)
    yield
    sys.modules.pop("function_app", None)


@pytest.mark.usefixtures("import_state")
def test_an_app_is_imported_from_its_directory_with_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_the_app.py").write_text("import azure.functions as func\nmade = func.FunctionApp()\n")
    (tmp_path / "function_app.py").write_text("from neighbour_of_the_app import made as app\nalias = app\n")

    assert isinstance(load_app(tmp_path), func.FunctionApp)


def test_a_directory_without_an_app_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AppError, match=r"function_app\.py is missing"):
        load_app(tmp_path)


def test_a_module_needs_exactly_one_app() -> None:
    module = ModuleType("function_app")
    with pytest.raises(AppError, match="has no app: add"):
        find_app(module)

    vars(module).update(one=func.FunctionApp(), other=func.FunctionApp())
    with pytest.raises(AppError, match="2 apps: keep one"):
        find_app(module)


def test_all_three_kinds_of_functions_are_described() -> None:
    app = func.FunctionApp()

    @app.queue_trigger(arg_name="message", queue_name="%QUEUE%", connection="")
    async def serve(message: func.QueueMessage) -> None: ...

    @app.timer_trigger(arg_name="timer", schedule="0 0 0 * * *", run_on_startup=True)
    def clean(timer: func.TimerRequest, context: func.Context) -> None: ...

    @app.route(route="games/{id}", methods=["get", "POST"])
    def answer(req: func.HttpRequest) -> str:
        return ""

    found = {function.name: function for function in describe_functions(app, SETTINGS)}

    assert list(found) == ["answer", "clean", "serve"]
    assert isinstance(found["serve"].trigger, QueueTrigger)
    assert found["serve"].trigger.queue == "orders"
    assert (found["serve"].is_async, found["serve"].takes_context) == (True, False)
    assert isinstance(found["clean"].trigger, TimerTrigger)
    assert found["clean"].trigger.run_on_startup
    assert (found["clean"].is_async, found["clean"].takes_context) == (False, True)
    assert isinstance(found["answer"].trigger, HttpTrigger)
    assert found["answer"].trigger.methods == {"GET", "POST"}


def test_triggers_of_service_bus_are_described() -> None:
    app = func.FunctionApp()

    @app.service_bus_queue_trigger(
        arg_name="messages",
        queue_name="%QUEUE%/$DeadLetterQueue",
        connection="Bus",
        is_sessions_enabled=True,
        cardinality=func.Cardinality.MANY,
        data_type=func.DataType.BINARY,
        auto_complete_messages=False,
    )
    async def many(messages: List[func.ServiceBusMessage]) -> None: ...  # noqa: UP006

    @app.service_bus_topic_trigger(arg_name="message", topic_name="T", subscription_name="S", connection="Bus")
    async def one(message: func.ServiceBusMessage) -> None: ...

    settings = AppSettings({"QUEUE": "Orders", "Bus__fullyQualifiedNamespace": "a.servicebus.windows.net"})
    first, second = (function.trigger for function in describe_functions(app, settings))

    assert isinstance(first, ServiceBusTrigger)
    assert first.entity == Entity("Orders/$DeadLetterQueue", sessions=True)
    assert (first.many, first.binary, first.auto_complete) == (True, True, False)
    assert isinstance(second, ServiceBusTrigger)
    assert second.entity == Entity("T", "S")
    assert (second.many, second.binary, second.auto_complete) == (False, False, None)
    assert second.connection.address == "a.servicebus.windows.net"


def serve(message: func.QueueMessage) -> None: ...


def misread(message: dict[str, int]) -> None: ...


def misplaced(message: func.QueueMessage, context: dict[str, int]) -> None: ...


def relay(req: func.HttpRequest, outgoing: func.Out[str]) -> str:
    return ""


def watch(event: func.EventGridEvent) -> None: ...


def clean(timer: func.TimerRequest) -> None: ...


def too_little() -> str:
    return ""


def too_much(req: func.HttpRequest, mystery: str) -> str:
    return ""


STORAGE = {"arg_name": "message", "queue_name": "q", "connection": "AzureWebJobsStorage"}


@pytest.mark.parametrize(
    ("function", "bindings", "told"),
    [
        (serve, {"service_bus_queue_trigger": STORAGE}, "'serve': .*write func.ServiceBusMessage, or typing.List"),
        (misread, {"queue_trigger": STORAGE}, "'misread': .*write func.QueueMessage"),
        (misplaced, {"queue_trigger": STORAGE}, "'misplaced': .*write func.Context"),
        (
            relay,
            {"route": {}, "queue_output": STORAGE | {"arg_name": "outgoing"}},
            "'relay': the binding 'outgoing' of type 'queue' is not supported",
        ),
        (
            watch,
            {"event_grid_trigger": {"arg_name": "event"}},
            "'watch': the trigger 'eventGridTrigger' is not supported",
        ),
        (serve, {"queue_trigger": STORAGE | {"connection": "Games"}}, "'serve': The connection 'Games' is not set"),
        (clean, {"timer_trigger": {"arg_name": "timer", "schedule": "hourly"}}, "'clean': 'hourly' is no NCRONTAB"),
        (too_little, {"route": {"trigger_arg_name": "req"}}, "'req', which is not among its parameters"),
        (too_much, {"route": {"trigger_arg_name": "req"}}, "no binding provides its parameters mystery"),
    ],
)
def test_a_function_that_the_worker_or_the_host_cannot_serve_is_refused_by_name(
    function: Callable[..., Any], bindings: dict[str, dict[str, str]], told: str
) -> None:
    app, decorated = func.FunctionApp(), function
    for binding, settings in bindings.items():
        decorated = getattr(app, binding)(**settings)(decorated)
    with pytest.raises((AppError, SettingsError), match=f"Function .*{told}"):
        describe_functions(app, SETTINGS)


@pytest.mark.parametrize("annotation", [None, int, bytes, dict[str, int], Any])
def test_a_return_annotation_that_the_worker_does_not_take_is_refused(annotation: object) -> None:
    app = func.FunctionApp()

    def answer(req: func.HttpRequest) -> Any: ...

    answer.__annotations__["return"] = annotation
    app.route(route="answer")(answer)
    with pytest.raises(AppError, match=r"Function 'answer': .*write '-> func.HttpResponse' or '-> str'"):
        describe_functions(app, SETTINGS)


def test_functions_of_blueprints_belong_to_the_app() -> None:
    app = func.FunctionApp()
    blueprint = func.Blueprint()  # type: ignore[no-untyped-call]

    @blueprint.route(route="hello")
    def hello(req: func.HttpRequest) -> str:
        return ""

    app.register_functions(blueprint)

    assert [function.name for function in describe_functions(app, SETTINGS)] == ["hello"]


def test_functions_that_settings_disable_are_left_out() -> None:
    app = func.FunctionApp()

    @app.route(route="one")
    def one(req: func.HttpRequest) -> str:
        return ""

    @app.queue_trigger(arg_name="message", queue_name="q", connection="NotSet")
    def two(message: func.QueueMessage) -> None: ...

    settings = AppSettings({"AzureWebJobs.two.Disabled": "True", "AzureWebJobs.one.Disabled": "false"})

    assert [function.name for function in describe_functions(app, settings)] == ["one"]


def test_an_app_can_be_described_only_once() -> None:
    app = func.FunctionApp()

    @app.route()
    def hello(req: func.HttpRequest) -> str:
        return ""

    describe_functions(app, SETTINGS)
    with pytest.raises(AppError, match="a new app to each host"):
        describe_functions(app, SETTINGS)


def test_an_app_without_functions_is_refused() -> None:
    with pytest.raises(AppError, match="no functions"):
        describe_functions(func.FunctionApp(), SETTINGS)


@pytest.mark.usefixtures("import_state")
def test_an_app_that_cannot_be_imported_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "function_app.py").write_text("import azure.functions\nimport nothing_like_it\n")
    with pytest.raises(
        AppError, match=r"^function_app\.py cannot be imported: ModuleNotFoundError: .* at function_app\.py:2$"
    ):
        load_app(tmp_path)
