"""Azurite, Microsoft's storage emulator, as a child process on free loopback ports.

    with azurite() as storage:
        client = QueueServiceClient.from_connection_string(storage.connection_string)

It is the npm package `azurite`, found as Node finds packages: in `node_modules` of the working directory or of a folder above
it, else where `npm install --global` has put it. Node.js runs it, no container engine is needed.
Azurite chooses its ports itself and names them in its output, so that any number of them run side by side and no port
is lost between looking for it and using it.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACCOUNT = "devstoreaccount1"
# Not a secret: a constant of Microsoft's documentation ("Use the Azurite emulator", well-known storage account).
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_SERVICES = re.compile(r"^Azurite (\w+) service\b.* successfully listen\w* \w+ (http://\S+)$", re.MULTILINE)
_TIE = "data:text/javascript,process.stdin.resume().on('end', () => process.kill(process.pid))"
"""Node loads it first: Azurite ends with the process that started it, even if that was killed.
It is asked to, by SIGTERM, so that it still saves its data."""
_STOP_GRACE = 5.0
_POLL = 0.05


class AzuriteError(RuntimeError):
    """Azurite cannot be started; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running Azurite.

    Attributes:
        queue_uri: endpoint of the account's queue service; what `<connection>__queueServiceUri` would name.
        blob_uri: endpoint of its blob service, or None when only queues were asked for.
        pid: process id, for tests that freeze or kill the storage.
    """

    queue_uri: str
    blob_uri: str | None
    pid: int

    @property
    def connection_string(self) -> str:
        """Connection string with explicit endpoints, for any Azure SDK and for the Functions host."""
        parts = [
            "DefaultEndpointsProtocol=http",
            f"AccountName={ACCOUNT}",
            f"AccountKey={ACCOUNT_KEY}",
            f"QueueEndpoint={self.queue_uri}",
        ]
        if self.blob_uri:
            parts.append(f"BlobEndpoint={self.blob_uri}")
        return ";".join(parts) + ";"


@contextmanager
def azurite(
    *,
    blob: bool = False,
    data: Path | None = None,
    queue_port: int = 0,
    blob_port: int = 0,
    deadline: float = 120.0,
) -> Iterator[Azurite]:
    """Start Azurite, wait until it serves, and end exactly this process on exit.

    Args:
        blob: serve blobs too (some applications keep locks or packages in them).
        data: existing directory for the data; without it everything is in memory and gone at the end.
        queue_port: port of the queue service; 0 chooses a free one. A restart on the same `data` needs a fixed one.
        blob_port: the same of the blob service.
        deadline: seconds to wait for the services.

    Raises:
        AzuriteError: Node.js or the npm package is missing, or Azurite did not come up in time.
    """
    with tempfile.TemporaryDirectory(prefix="azurite-") as scratch:
        log = Path(scratch, "output.log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                _command(blob=blob, data=data, queue_port=queue_port, blob_port=blob_port),
                cwd=scratch,
                env=_environment(os.environ),
                stdin=subprocess.PIPE,  # Open until this process ends, however it ends.
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C in a terminal reaches the whole foreground group; storage must outlive
                # those who still settle their messages.
                start_new_session=True,
            )
        try:
            endpoints = _await_endpoints(process, log, {"Queue", "Blob"} if blob else {"Queue"}, deadline)
            yield Azurite(queue_uri=endpoints["Queue"], blob_uri=endpoints["Blob"] if blob else None, pid=process.pid)
        finally:
            _stop(process, _STOP_GRACE if data else 0)


def _command(*, blob: bool, data: Path | None, queue_port: int, blob_port: int) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise AzuriteError("Azurite needs Node.js: install version 20 or newer so that 'node' is on the PATH.")
    # The combined program serves blobs, queues and tables; the one for queues alone starts faster.
    program = _package() / "dist/src" / ("azurite.js" if blob else "queue/main.js")
    ports = ["--queuePort", str(queue_port)] + (["--blobPort", str(blob_port), "--tablePort", "0"] if blob else [])
    storage = ["--location", str(data.resolve())] if data else ["--inMemoryPersistence"]
    # SDKs are newer than the service versions Azurite knows, hence no version check.
    return [
        node,
        "--import",
        _TIE,
        str(program),
        *ports,
        *storage,
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]


def _package() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        package = folder / "node_modules/azurite"
        if package.is_dir():
            return package
    if (command := shutil.which("azurite")) is not None and (found := _package_of(Path(command))) is not None:
        return found
    raise AzuriteError(
        f"Azurite is not installed: no node_modules/azurite in {here} or above it. Run 'npm ci' where a package.json asks for "
        "it, or 'npm install azurite'."
    )


def _package_of(command: Path) -> Path | None:
    """The package whose command npm has linked; None if it is no link into one."""
    return next((folder for folder in command.resolve().parents if folder.name == "azurite"), None)


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment, without the variables by which Azurite takes other accounts than the well-known one."""
    return {name: value for name, value in environment.items() if not name.startswith("AZURITE_")}


def _await_endpoints(
    process: "subprocess.Popen[bytes]", log: Path, services: set[str], deadline: float
) -> dict[str, str]:
    """Account endpoints by service, from the lines that Azurite prints once it listens."""
    give_up = time.monotonic() + deadline
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        endpoints = {service: f"{address}/{ACCOUNT}" for service, address in _SERVICES.findall(text)}
        if services <= endpoints.keys():
            return endpoints
        if process.poll() is not None:
            raise AzuriteError(f"Azurite ended with exit code {process.returncode}:\n{text}")
        if time.monotonic() > give_up:
            raise AzuriteError(f"Azurite did not serve {', '.join(sorted(services))} within {deadline:g} s:\n{text}")
        time.sleep(_POLL)


def _stop(process: "subprocess.Popen[bytes]", grace: float) -> None:
    """End it. It waits for connections that clients keep open, and has only data on disk to write."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
