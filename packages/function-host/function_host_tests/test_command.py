"""`python -m function_host` as a process: ready line, signals, crashes and what they leave behind."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.storage.queue import QueueClient, QueueServiceClient

from function_host.azurite import Azurite
from function_host_tests.fakes import encoded

pytestmark = pytest.mark.acceptance

PACKAGE = Path(__file__).resolve().parents[1]

APP = """
import asyncio
import os
import time
from pathlib import Path

import azure.functions as func

app = func.FunctionApp()
print("printed while loading")


def note(line: str) -> None:
    with Path(os.environ["DIARY"]).open("a") as diary:
        print(line, file=diary)


@app.queue_trigger(arg_name="message", queue_name="%QUEUE%", connection="AzureWebJobsStorage")
async def serve(message: func.QueueMessage) -> None:
    print("printed while serving")
    body = message.get_body().decode()
    note(f"{body} {message.dequeue_count}")
    if body == "slow at first" and message.dequeue_count == 1:
        await asyncio.sleep(3600)


@app.timer_trigger(arg_name="timer", schedule="0 0 0 1 1 *", run_on_startup=True)
def at_start(timer: func.TimerRequest) -> None:
    note("timer")


@app.route(route="hello/{name}")
def hello(req: func.HttpRequest) -> str:
    return "hello " + req.route_params["name"]


@app.route(route="stuck")
def stuck(req: func.HttpRequest) -> str:
    note("stuck")
    time.sleep(3600)
    return "never"
"""


class Project:
    """A function app in a directory of its own, with a queue of its own."""

    def __init__(self, directory: Path, queue: QueueClient, storage: Azurite) -> None:
        self.directory = directory
        self.queue = queue
        self._diary = directory / "diary.txt"
        values = {
            "AzureWebJobsStorage": storage.connection_string,
            "QUEUE": queue.queue_name,
            "DIARY": str(self._diary),
        }
        (directory / "function_app.py").write_text(APP)
        (directory / "host.json").write_text('{"version": "2.0"}')
        (directory / "local.settings.json").write_text(json.dumps({"Values": values}))

    @property
    def diary(self) -> list[str]:
        return self._diary.read_text().splitlines() if self._diary.exists() else []

    def deliveries(self) -> list[str]:
        return [line for line in self.diary if line not in {"timer", "stuck"}]

    def command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "function_host", "--app", str(self.directory), *more]

    def run(self, *more: str) -> "subprocess.CompletedProcess[str]":
        """A host that ends by itself."""
        return subprocess.run(self.command(*more), cwd=PACKAGE, capture_output=True, text=True, check=False)

    @contextmanager
    def host(self, *more: str) -> Iterator["subprocess.Popen[str]"]:
        """A host as a child process; killed at the end if it still runs."""
        with (self.directory / "stderr.txt").open("a") as log:
            process = subprocess.Popen(self.command(*more), cwd=PACKAGE, stdout=subprocess.PIPE, stderr=log, text=True)
        with process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def project(tmp_path: Path, storage: Azurite) -> Iterator[Project]:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        queue = service.create_queue(f"host-{os.getpid()}-{time.monotonic_ns()}")
        yield Project(tmp_path, queue, storage)


def ready(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def get(url: str) -> bytes:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc)) as connection:
        connection.request("GET", parts.path)
        return connection.getresponse().read()


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def messages_left(queue: QueueClient) -> int:
    return queue.get_queue_properties().approximate_message_count or 0


def test_the_host_says_when_it_is_ready_serves_all_triggers_and_ends_with_0_on_sigterm(project: Project) -> None:
    project.queue.send_message(encoded("hello"))
    with project.host() as process:
        line = ready(process)
        assert line["functions"] == ["at_start", "hello", "serve", "stuck"]
        assert get(f"{line['http']}/api/hello/you") == b"hello you"
        until(lambda: messages_left(project.queue) == 0 and len(project.diary) == 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""

    assert sorted(project.diary) == ["hello 1", "timer"]
    assert "printed while serving" in (project.directory / "stderr.txt").read_text()


def test_the_messages_of_a_killed_host_come_back_after_their_invisibility(project: Project) -> None:
    project.queue.send_message(encoded("slow at first"))
    with project.host("--invisible", "2") as process:
        until(lambda: project.deliveries() == ["slow at first 1"])
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL

    with project.host("--invisible", "2"):
        until(lambda: messages_left(project.queue) == 0)

    assert project.deliveries() == ["slow at first 1", "slow at first 2"]


def test_a_message_whose_host_dies_between_function_and_deletion_is_served_twice(project: Project) -> None:
    with project.host("--invisible", "2", "--kill", "handled") as process:
        ready(process)
        project.queue.send_message(encoded("hello"))
        assert process.wait() == -signal.SIGKILL

    with project.host("--invisible", "2"):
        until(lambda: messages_left(project.queue) == 0)

    assert project.deliveries() == ["hello 1", "hello 2"]


def test_a_host_killed_after_the_poison_copy_leaves_two_poison_messages(project: Project, storage: Azurite) -> None:
    project.queue.send_message("{not base64}")
    with project.host("--invisible", "2", "--kill", "copied") as process:
        assert process.wait() == -signal.SIGKILL
    with project.host("--invisible", "2"):
        until(lambda: messages_left(project.queue) == 0)

    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        poison = service.get_queue_client(f"{project.queue.queue_name}-poison")
        assert [message.content for message in poison.receive_messages()] == ["{not base64}"] * 2


def test_sigint_ends_the_host_even_when_a_thread_never_ends(project: Project) -> None:
    with (
        project.host("--grace", "0.2") as process,
        closing(http.client.HTTPConnection(urlsplit(ready(process)["http"]).netloc)) as connection,
    ):
        connection.request("GET", "/api/stuck")
        until(lambda: "stuck" in project.diary)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_the_environment_wins_over_local_settings(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = project.directory / "elsewhere.txt"
    monkeypatch.setenv("DIARY", str(elsewhere))
    with project.host() as process:
        ready(process)
        until(elsewhere.exists)

    assert project.diary == []


def test_an_app_that_cannot_be_hosted_is_refused_with_exit_code_2(project: Project) -> None:
    (project.directory / "local.settings.json").write_text('{"Values": {"QUEUE": "q"}}')
    outcome = project.run()

    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "Function 'serve': The connection 'AzureWebJobsStorage' is not set" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_help_names_the_options(project: Project) -> None:
    outcome = project.run("--help")

    assert {"--app", "--settings", "--http-port", "--invisible", "--grace", "--kill"} <= set(outcome.stdout.split())
