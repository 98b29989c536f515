"""The emulator inside a test's own process: a server in a thread of its own, on a free port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from local_cosmos.admin_client import AdminClient
from local_cosmos.protocol.admin import AdminEndpoints
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.protocol.certificates import OwnCertificate
from local_cosmos.protocol.server import CosmosServer
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.story import Recorder
from local_cosmos.storage.keeper import Keeper
from local_cosmos.values import JsonObject, serialise


class RunningEmulator(AdminClient):
    """A running emulator; its methods may be called from any thread (see `AdminClient`).

    Attributes:
        endpoint: `http://127.0.0.1:{port}/`, or https.
        key: The account's master key.
        certificate: Of the server over https, in PEM; None over http.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        emulator: Emulator,
        server: CosmosServer,
        endpoint: str,
        key: str,
        *,
        certificate: bytes | None,
    ) -> None:
        super().__init__(endpoint, key)
        self.certificate = certificate
        self._loop = loop
        self._admin = AdminEndpoints(emulator)
        self._server = server

    def _ask(self, verb: str, path: str, body: JsonObject | None = None) -> JsonObject:
        url = urlsplit(path)
        said = serialise(body) if body is not None else b""

        async def answer() -> JsonObject:
            try:
                return self._admin.answer(verb, url.path.split("/"), dict(parse_qsl(url.query)), said)
            finally:
                await self._server.release_hanging()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()


@contextmanager
def running_emulator(
    settings: AccountSettings | None = None,
    *,
    key: str = WELL_KNOWN_KEY,
    clock: Clock | None = None,
    port: int = 0,
    tls: bool = False,
    keeper: Keeper | None = None,
    story: Path | None = None,
    tokens: Collection[str] = (),
) -> Iterator[RunningEmulator]:
    """Run an emulator for the length of a `with` block.

    Args:
        settings: Settings of the account.
        key: The account's master key, in base64.
        clock: The account's time; the system's by default.
        port: 0 for a free one.
        tls: True for https, with a certificate of its own.
        keeper: Where everything is kept; in memory by default. Closing it is its owner's.
        story: Where all that happens is recorded (see `local_cosmos.replaying`); the account begins empty.
        tokens: Those of Entra ID that are accepted, over https, with the rights of a contributor to data.
    """
    with ExitStack() as stack:
        settings, clock, recorder = settings or AccountSettings(), clock or Clock(), None
        if story is not None:
            recorder = Recorder(stack.enter_context(story.open("w", encoding="utf-8")), settings, clock.now)
            clock = Clock(recorder.time)
        beginning = time.monotonic()
        emulator = Emulator(
            settings,
            clock,
            lambda: time.monotonic() - beginning,
            keeper=keeper or Keeper(),
            recorder=recorder,
        )
        with _served(emulator, key, port=port, tls=tls, tokens=tokens) as running:
            yield running


@contextmanager
def _served(
    emulator: Emulator, key: str, *, port: int, tls: bool, tokens: Collection[str]
) -> Iterator[RunningEmulator]:
    """An emulator, served by a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="cosmos-emulator", daemon=True)
    thread.start()
    try:
        certificate = OwnCertificate.make() if tls else None
        server = CosmosServer(
            emulator, key, admin=True, tls=certificate.context if certificate else None, tokens=tokens
        )
        endpoint = asyncio.run_coroutine_threadsafe(server.start(port), loop).result()
        try:
            pem = certificate.pem if certificate else None
            yield RunningEmulator(loop, emulator, server, endpoint, key, certificate=pem)
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
