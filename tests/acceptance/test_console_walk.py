"""A walk through the console in Chromium: a running app is looked at, broken, and healed by clicks."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from exactlyonce_dev_tests.apps import Running, dev, new_app, put
from tests.spark.report import browser

pytestmark = pytest.mark.acceptance
DESK, TELEPHONE = 1280, 380
SECONDS = 20
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

    async def clicks(self, selector: str) -> None:
        """Click a button that has to be there."""
        await self._page.evaluate(f"document.querySelector({selector!r}).click()")


async def test_an_app_is_looked_at_broken_and_counts_once(chromium: str, tmp_path: Path) -> None:
    line = {"item": "tea", "quantity": 2}
    with dev(new_app(tmp_path)) as running:
        address = await asyncio.to_thread(running.ready)
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(console_of(running), width=DESK)
            walk = Walk(page)
            await walk.sees("container", "orders")
            await walk.clicks("[data-trouble=lost-applied]")
            await walk.sees("trouble-list", "0 of 1")
            assert await asyncio.to_thread(put, address, "orders/o-1/lines/l-1", line) == 202
            await walk.sees("trouble-list", "1 of 1")
            await walk.sees("messages-list", "stock/tea")
            await walk.sees("messages-list", "steps")
            await walk.clicks("[id^=again-][aria-label$='http/l-1']")
            await walk.sees("messages-list", "duplicate dropped")
            await walk.clicks("[aria-label='Show: order/o-1']")
            await walk.sees("entity", '"tea": 2')
            await walk.sees("entity", "Version 1, by the protocol outbox.")
            await walk.clicks("#calm")
            await walk.sees("trouble-list", "none")
            await walk.clicks("#kill")
            await asyncio.to_thread(running.ready)
            await walk.clicks("[id^=again-][aria-label$='http/l-1']")
            await walk.sees("status", "Sent again to orders.")
            for width in (DESK, TELEPHONE):
                await page.open(console_of(running), width=width, dark=width == TELEPHONE)
                await walk.sees("entities-list", "order/o-1")
                assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert [one for one in page.complaints if "503" not in one] == []  # What it asked while the app was killed.
        assert running.end() == 0
    assert "the app was killed, and starts again" in running.log
    assert "Traceback" not in running.log
