"""A headless Chromium that reports what a page asks the network for, what it complains about, and how it is laid out."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

SECONDS = 1800
_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip


class Page:
    """A tab, spoken to over the DevTools protocol.

    Attributes:
        requested: addresses that the page asked for, itself left out.
        complaints: what its console or its security policy said.
    """

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = count(1)
        self._loaded = False

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and await its answer; what happens meanwhile is noted."""
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        while (reply := await self._next()).get("id") != number:
            pass
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    async def open(self, page: Path | str, *, width: int, dark: bool = False) -> None:
        """Load a file, or an address, in a window of this width."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.ask(f"{domain}.enable")
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        await self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._loaded = False
        await self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not self._loaded:
            await self._next()

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        reply = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen as a PNG; the whole page, or what the window shows."""
        reply = await self.ask("Page.captureScreenshot", captureBeyondViewport=whole, optimizeForSpeed=False)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(reply["data"]))

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(SECONDS):
            reply: dict[str, Any] = await self._socket.receive_json()
        match reply.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent" if reply["params"]["type"] != "Document":
                self.requested.append(reply["params"]["request"]["url"])
            case "Log.entryAdded":
                entry = reply["params"]["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}".rstrip())
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(reply["params"]))
        return reply


@asynccontextmanager
async def page(chromium: str, profile: Path) -> AsyncIterator[Page]:
    """Start a browser with one tab; it ends with the block."""
    command = [chromium, *_ARGUMENTS, f"--user-data-dir={profile}", "about:blank"]
    # What it leaves when it ends goes with the folder, whose path is short enough for its socket.
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": folder}
        )
        assert process.stderr is not None
        try:
            port = await _port(process.stderr)
            draining = asyncio.create_task(process.stderr.read())  # A full pipe would stop the browser.
            async with ClientSession(f"http://127.0.0.1:{port}") as session:
                async with session.get("/json/list") as reply:
                    tab = next(item for item in await reply.json() if item["type"] == "page")
                async with session.ws_connect(f"/devtools/page/{tab['id']}", max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            process.terminate()
            await process.wait()
        await draining


async def _port(errors: asyncio.StreamReader) -> int:
    """The port of DevTools, which the browser prints at its start."""
    said = ""
    async with asyncio.timeout(SECONDS):
        while line := (await errors.readline()).decode():
            said += line
            if reply := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
                return int(reply[1])
    raise RuntimeError(f"Chromium did not start: {said[-2000:]}")
