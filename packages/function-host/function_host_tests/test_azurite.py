"""Azurite runs while it is needed, and tells what it lacks."""

import os
import socket
from pathlib import Path

import pytest
from azure.storage.queue import QueueServiceClient

from function_host.azurite import AzuriteError, _package_of, azurite


@pytest.mark.acceptance
def test_it_serves_queues_in_memory_and_is_gone_afterwards() -> None:
    with azurite() as storage:
        with QueueServiceClient.from_connection_string(storage.connection_string) as service:
            service.create_queue("orders").close()
        assert storage.queue_uri.startswith("http://127.0.0.1:")
        assert storage.blob_uri is None

    with pytest.raises(ProcessLookupError):
        os.kill(storage.pid, 0)


@pytest.mark.acceptance
def test_a_restart_on_the_same_directory_and_port_keeps_the_data(tmp_path: Path) -> None:
    with (
        azurite(data=tmp_path) as storage,
        QueueServiceClient.from_connection_string(storage.connection_string) as service,
        service.create_queue("orders") as queue,
    ):
        queue.send_message("hello")

    port = int(storage.queue_uri.split(":")[2].split("/")[0])
    with (
        azurite(data=tmp_path, queue_port=port) as again,
        QueueServiceClient.from_connection_string(again.connection_string) as service,
        service.get_queue_client("orders") as queue,
    ):
        assert [message.content for message in queue.receive_messages()] == ["hello"]
    assert again.queue_uri == storage.queue_uri


@pytest.mark.acceptance
def test_blobs_come_on_request() -> None:
    with azurite(blob=True) as storage:
        assert storage.blob_uri is not None
        assert f"BlobEndpoint={storage.blob_uri};" in storage.connection_string


@pytest.mark.acceptance
def test_a_taken_port_is_reported_with_what_azurite_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AzuriteError, match="EADDRINUSE"), azurite(queue_port=port):
            pass


def test_a_package_that_npm_installed_for_all_is_found_by_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "lib/node_modules/azurite/dist/src/azurite.js"
    program.parent.mkdir(parents=True)
    program.touch()
    command = tmp_path / "bin" / "azurite"
    command.parent.mkdir()
    command.symlink_to(program)
    assert _package_of(command) == tmp_path / "lib/node_modules/azurite"
    assert _package_of(tmp_path / "bin" / "another") is None


def test_a_missing_package_is_reported_with_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AzuriteError, match="'npm install azurite'"), azurite():
        pass


def test_a_missing_node_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AzuriteError, match=r"install version 20 or newer"), azurite():
        pass
