"""A walk through the console in Chromium: a running app is looked at, broken, and healed by clicks."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from exactlyonce_dev_tests import naive
from exactlyonce_dev_tests.apps import Running, club_app, dev, new_app, put
from tests.acceptance.hosting import SECONDS
from tests.spark.report import browser

pytestmark = pytest.mark.acceptance
DESK, TELEPHONE = 1280, 380
STATUS = "document.querySelector('header').textContent"


def console_of(running: Running) -> str:
    found = re.search(r"console (http://127\.0\.0\.1:\d+/)", running.log)
    assert found is not None, running.log
    return found[1]


@pytest.fixture
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        assert "CI" not in os.environ, "There is no Chromium, so nobody has walked through the console."
        pytest.skip("There is no Chromium: apt-get install chromium")
    return found


class Walk:
    """Somebody who reads and clicks."""

    def __init__(self, page: browser.Page) -> None:
        self._page = page

    async def sees(self, place: str, text: str) -> None:
        """Wait until a part of the page has a text."""
        end = time.monotonic() + SECONDS
        while text not in (found := await self._page.evaluate(f"document.getElementById({place!r}).textContent")):
            assert time.monotonic() < end, f"no {text!r} in {found!r}; {await self._page.evaluate(STATUS)}"
            await asyncio.sleep(0.1)  # The browser sets no event.

    async def until(self, place: str, row: str, *texts: str) -> None:
        """Wait until a row that has a text has one of others."""
        rows = f"[...document.querySelectorAll('#{place} tr')].filter((one) => one.textContent.includes({row!r}))"
        end, found = time.monotonic() + SECONDS, ""
        while not any(text in found for text in texts):
            assert time.monotonic() < end, f"none of {texts} beside {row!r}: {found}"
            await asyncio.sleep(0.2)  # As above.
            found = await self._page.evaluate(f"{rows}.map((one) => one.textContent).join()")

    async def clicks(self, selector: str) -> None:
        """Click a button that has to be there."""
        await self._page.evaluate(f"document.querySelector({selector!r}).click()")

    async def presses(self, key: str, code: int, text: str = "") -> None:
        """Press a key, and let it go."""
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self._page.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        await self._page.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    async def has_focus(self) -> str:
        """The id of what has the focus, or else its class."""
        focus: str = await self._page.evaluate("document.activeElement.id || document.activeElement.className")
        return focus

    async def opens(self, message: str) -> None:
        """Open the latest delivery of a message, once it is listed."""
        await self.sees("messages-list", message)
        chosen = (
            f"[...document.querySelectorAll('#messages-list button')].find((one) => one.textContent === {message!r})"
        )
        await self._page.evaluate(f"{chosen}.click()")
        await self.sees("message", message)

    async def copies_as_test(self, message: str) -> str:
        """The story of a message as a test, which was run."""
        await self.opens(message)
        await self.clicks("[id^=test-][aria-label^='Copy as test']")
        await self.sees("test", "def test_what_happened_to_")
        await self.sees("test-result", " here")
        said = await self._page.evaluate("document.getElementById('test').textContent")
        assert "It passes here in " in said, said
        text: str = await self._page.evaluate("document.getElementById('test-text').textContent")
        return text


def passes(app: Path, text: str, *, is_naive: bool = False) -> bool:
    """Whether a test passes that is saved in an app; with its own strategy, or with the naive one."""
    copy = app.parent / ("naive" if is_naive else "own")
    shutil.copytree(app, copy, ignore=shutil.ignore_patterns("node_modules", "__pycache__"), dirs_exist_ok=True)
    (copy / "tests" / "test_story.py").write_text(text)
    if is_naive:
        shutil.copy(naive.__file__, copy / "naive.py")
        source = copy / "orders.py"
        source.write_text(f"from naive import Naive\n{source.read_text().replace('Outbox()', 'Naive()')}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_story.py"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    assert ran.returncode == 0 or "AssertionError" in ran.stdout, ran.stdout
    return ran.returncode == 0


async def test_an_app_is_looked_at_broken_and_counts_once(chromium: str, tmp_path: Path) -> None:
    line, folder = {"item": "tea", "quantity": 2}, new_app(tmp_path)
    with dev(folder) as running:
        address = await asyncio.to_thread(running.ready)
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(console_of(running), width=DESK)
            walk = Walk(page)
            await walk.sees("messages-list", "No message has come yet")
            await walk.sees("container", "orders")
            await walk.clicks("[data-trouble=lost-applied]")
            await walk.sees("trouble-list", "0 of 1")
            assert await asyncio.to_thread(put, address, "orders/o-1/lines/l-1", line) == 202
            await walk.sees("trouble-list", "1 of 1")
            await walk.sees("messages-list", "stock/tea")
            await walk.opens("http/l-1")
            await walk.sees("message", "Commit: save the entity if it is unchanged")
            await walk.sees("message", "A failed save is not undone: it may still land.")
            await walk.sees("message", "on purpose: it was applied, and the reply was lost")
            await walk.sees("message", "→ stocks")
            await pictured(page, "light")
            lost = await walk.copies_as_test("http/l-1")
            await pictured(page, "test")
            assert 'app.lose("reply", of=' in lost
            assert passes(folder, lost)
            assert not passes(folder, lost, is_naive=True)

            await walk.clicks("[id^=again-][aria-label$='http/l-1']")
            await walk.sees("messages-list", "duplicate dropped")
            await walk.clicks("[id^=entity-of-]")
            await walk.sees("entity", '"tea": 2')
            await walk.sees("entity", "Version 1, by the protocol outbox.")
            await walk.clicks("#calm")
            await walk.sees("trouble-list", "none")

            await in_all_other_trouble(page, walk, address)
            await killed_at_a_step(page, walk, running, address, folder)

            await walk.clicks("#kill")
            await asyncio.to_thread(running.ready)
            await fits(page, walk, running)
            assert [
                complaint for complaint in page.complaints if "503" not in complaint
            ] == []  # While it was killed, or replicas lagged.
        assert running.end() == 0
    assert running.log.count("the app was killed, and starts again") == 2
    assert "Traceback" not in running.log


class Payments(BaseHTTPRequestHandler):
    """A service that loses the answer to its first request, has no time for its second one, and then charges."""

    times = 0

    def do_POST(self) -> None:
        Payments.times += 1
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if Payments.times == 1:
            return  # The connection is closed without an answer.
        body = b"" if Payments.times == 2 else json.dumps({"points": content["points"]}).encode()
        self.send_response(503 if Payments.times == 2 else 201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def ask(address: str, path: str, body: object, key: str) -> int:
    """The status of the answer to a request with a key."""
    data, headers = json.dumps(body).encode(), {"Idempotency-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/api/{path}", data, headers, method="PUT")  # noqa: S310
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


async def test_a_story_of_each_kind_is_copied_as_a_test_that_passes(chromium: str, tmp_path: Path) -> None:
    Payments.times = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Payments)
    Thread(target=server.serve_forever, daemon=True).start()
    folder = club_app(tmp_path, f"http://127.0.0.1:{server.server_port}")
    with dev(folder, "--no-reload") as running:
        address = await asyncio.to_thread(running.ready)
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(console_of(running), width=DESK)
            walk = Walk(page)
            await walk.sees("app", "The app runs.")
            await of_requests(walk, address, folder)
            # The sweeper of the app comes every minute: reminders that it sends later would be a part of other stories.
            for member in ("ann", "bob"):
                await walk.until("messages-list", f"club.expiremember/{member}", "processed")
            row = "[...document.querySelectorAll('#messages-list tr')].find((one) => one.textContent.includes('club.expire'))"
            reminder = await walk.copies_as_test(await page.evaluate(f"{row}.querySelector('button').textContent"))
            assert "# Until the sweeper publishes what is due." in reminder
            assert passes(folder, reminder)
            await of_calls(walk, address, folder)
            await of_queues(walk, address, folder)
            await pictured(page, "test")
        assert running.end() == 0
    server.shutdown()
    server.server_close()
    assert "Traceback" not in running.log


async def of_requests(walk: Walk, address: str, folder: Path) -> None:
    """Requests that are answered, come again, and are refused; a time in the state, and a reminder that is kept."""
    statuses = [
        await asyncio.to_thread(ask, address, "ask/join", {"member": member, "name": name}, key)
        for member, name, key in (("ann", "Ann", "a"), ("ann", "Ann", "a"), ("bob", "Bob", "b"), ("ann", "Eve", "a"))
    ]
    assert statuses == [201, 201, 201, 422]
    await walk.sees("kept-count", "2")
    await walk.sees("unfinished-list", "Unfinished entities: none.")
    refused = await walk.copies_as_test("http/a")
    assert "with raises(KeyReused):" in refused
    assert "until=datetime.fromisoformat(" in refused
    assert passes(folder, refused)


async def of_calls(walk: Walk, address: str, folder: Path) -> None:
    """A call that is lost, refused and answered; then a gift to another entity, and a board of both."""
    assert await asyncio.to_thread(ask, address, "ask/recharge", {"member": "ann", "points": 50}, "r") == 202
    await walk.until("messages-list", "board/all", "processed")
    call = await walk.copies_as_test("http/r")
    assert 'apis={payments: lambda _: Response(201, {"points": 50})}' in call
    assert 'app.trouble(payments, "lost", Response(503))' in call
    assert call.count("app.ask(") == 1
    assert passes(folder, call)
    gift = {"member": "ann", "to": "bob", "points": 7}
    assert await asyncio.to_thread(ask, address, "ask/gift", gift, "g") == 200
    await walk.until("messages-list", "member/bob/", "club.pointsboard/allprocessed")  # The last message of the story.
    copied = await walk.copies_as_test("http/g")
    assert copied.count("app.given(") == 2
    assert passes(folder, copied)


async def of_queues(walk: Walk, address: str, folder: Path) -> None:
    """A message whose handler raises, and one that comes twice to an entity of events."""
    assert await asyncio.to_thread(put, address, "leave/l", {"member": "ann"}) == 202
    await walk.sees("parked-count", "1")
    leave = await walk.copies_as_test("web/l")
    assert 'assert [one.id for one in app.parked()] == ["web/l"]' in leave
    assert passes(folder, leave)
    for outcome in ("processed", "duplicate dropped"):
        assert await asyncio.to_thread(put, address, "visit/v", {"member": "ann"}) == 202
        await walk.until("messages-list", "door/v", outcome)
    visit = await walk.copies_as_test("door/v")
    assert visit.count("app.send(") == 2
    assert passes(folder, visit)


async def in_all_other_trouble(page: browser.Page, walk: Walk, address: str) -> None:
    """A request is lost, others are throttled, and replicas lag; each line counts once."""
    for trouble in ("lost-not-applied", "throttle", "lag"):
        await walk.clicks(f"[data-trouble={trouble}]")
        await walk.sees("trouble-count", "1")
        order = f"o-{trouble}"
        for line in ("l-1", "l-2"):
            path = f"orders/{order}/lines/{order}-{line}"
            assert await asyncio.to_thread(put, address, path, {"item": "milk", "quantity": 1}) == 202
            await walk.until("messages-list", f"http/{order}-{line}", "processed")
        await pictured(page, f"trouble-{trouble}", place="trouble")
        await walk.clicks("#calm")
        await walk.sees("trouble-list", "none")
        # A replica that lags has the latest write only after others, and none follows.
        await walk.until("entities-list", f"order/{order}", '"milk":2')


async def killed_at_a_step(page: browser.Page, walk: Walk, running: Running, address: str, folder: Path) -> None:
    """The app is killed between its commit and the reply; its message comes again, and the story is a test."""
    line = {"item": "tea", "quantity": 2}
    step = "order: Commit: save the entity if it is unchanged"
    await walk.sees("step", step)
    chosen = f"[...at.options].find((one) => one.text === {step!r}).value"
    await page.evaluate(f"(() => {{ const at = document.getElementById('step'); at.value = {chosen}; }})()")
    await walk.clicks("#kill-after")
    await walk.sees("status", "killed after “Commit: save the entity if it is unchanged” of the next order.")
    assert await asyncio.to_thread(put, address, "orders/o-2/lines/l-2", line) == 202
    await asyncio.to_thread(running.ready)
    await walk.sees("messages-list", "lost with the process")
    await walk.until("unfinished-list", "order/o-2", "→ stocks")
    await pictured(page, "unfinished", place="unfinished")
    await walk.until("messages-list", "order/o-2", "processed", "duplicate dropped")
    killed = await walk.copies_as_test("http/l-2")
    assert 'app.kill("after", "SaveEntity", of=orders)' in killed
    assert passes(folder, killed)
    assert not passes(folder, killed, is_naive=True)


async def fits(page: browser.Page, walk: Walk, running: Running) -> None:
    """Every width and colour has room for the page."""
    for width in (DESK, TELEPHONE):
        for dark in (False, True):
            await page.open(console_of(running), width=width, dark=dark)
            await walk.sees("entities-list", "order/o-1")
            await walk.opens("http/l-1")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await everything_has_a_name(page)
            await pictured(page, f"{'dark' if dark else 'light'}-{width}", whole=True)


async def everything_has_a_name(page: browser.Page) -> None:
    """A screen reader has a name for each thing that can be used, and for each table."""
    nodes = (await page.ask("Accessibility.getFullAXTree"))["nodes"]
    used = [
        node
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in ("button", "link", "combobox", "textbox", "table")
    ]
    assert len(used) > 10
    assert [item["role"]["value"] for item in used if not item["name"]["value"]] == []


async def test_the_keyboard_is_enough(chromium: str, tmp_path: Path) -> None:
    with dev(new_app(tmp_path), "--no-reload") as running:
        address = await asyncio.to_thread(running.ready)
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(console_of(running), width=DESK)
            walk = Walk(page)
            await walk.presses("Tab", 9)
            assert await walk.has_focus() == "skip"
            await walk.presses("Enter", 13, "\r")
            assert await walk.has_focus() == "main"
            assert await asyncio.to_thread(put, address, "orders/o-1/lines/l-1", {"item": "tea", "quantity": 2}) == 202
            await walk.sees("messages-list", "stock/tea")
            await page.evaluate(
                "[...document.querySelectorAll('[id^=show-]')].find((one) => one.textContent === 'http/l-1').focus()"
            )
            opener = await walk.has_focus()
            await walk.presses("Enter", 13, "\r")
            assert await walk.has_focus() == "message"
            await walk.presses("Tab", 9)
            assert await walk.has_focus() == "message-close"
            await walk.presses("Enter", 13, "\r")
            assert await walk.has_focus() == opener
        assert running.end() == 0


async def test_parked_messages_are_requeued_and_discarded_one_or_all(chromium: str, tmp_path: Path) -> None:
    folder = new_app(tmp_path)
    source, host = folder / "orders.py", folder / "host.json"
    right = source.read_text()
    source.write_text(right.replace("    context.send(", "    1 / 0\n    context.send("))
    settings = json.loads(host.read_text())
    settings["extensions"]["queues"] |= {"maxDequeueCount": 1, "visibilityTimeout": "00:00:00"}
    host.write_text(json.dumps(settings))
    with dev(folder) as running:
        address = await asyncio.to_thread(running.ready)
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(console_of(running), width=DESK)
            walk = Walk(page)
            for number in range(4):
                line = f"orders/o-{number}/lines/l-{number}"
                assert await asyncio.to_thread(put, address, line, {"item": "tea", "quantity": 2}) == 202
            await walk.sees("parked-count", "4")
            await walk.sees("parked-list", "HandlerFailed (ZeroDivisionError)")
            await walk.opens("http/l-0")
            await walk.sees("message", "ZeroDivisionError")
            await pictured(page, "parked", place="parked")
            source.write_text(right)
            await asyncio.to_thread(running.ready)
            await walk.clicks("[aria-label='Requeue: message http/l-0']")
            await walk.sees("parked-count", "3")
            await walk.until("messages-list", "order/o-0", "processed")
            await page.evaluate("window.confirm = () => true")
            await walk.clicks("[aria-label='Discard: message http/l-1']")
            await walk.sees("parked-count", "2")
            await walk.clicks("[aria-label='Requeue: all 2 of order']")
            await walk.sees("parked-list", "Parked messages: none.")
            await page.evaluate("document.getElementById('key').value = 'o-3'")
            await walk.until("messages-list", "order/o-3", "processed")
            await walk.clicks("#find button")
            await walk.sees("entity", '"tea": 2')
            await pictured(page, "entities", place="entities")
        assert running.end() == 0


async def pictured(page: browser.Page, name: str, *, place: str | None = None, whole: bool = False) -> None:
    """Keep a picture of the page, or of what is seen from a place on it, where a folder for pictures is given."""
    if folder := os.environ.get("EXACTLYONCE_PICTURES"):
        if place is not None:
            await page.evaluate(f"document.getElementById({place!r}).scrollIntoView({{behavior: 'instant'}})")
        await page.picture(Path(folder, f"console-{name}.png"), whole=whole)
