"""The report in a browser: its charts are there, it asks the network for nothing, it fits a telephone, nothing in it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.report import page as report
from spark_jobs.report.contents import Contents
from tests.spark.report import browser, samples

DESK, TELEPHONE = 1280, 380
ADVICE = "Install it: apt-get install chromium"

Show = Callable[..., AbstractAsyncContextManager[browser.Page]]


@pytest.fixture
def show(tmp_path: Path) -> Show:
    """Shows a report, or any HTML, in a browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        assert "CI" not in os.environ, f"There is no Chromium, so nobody has looked at the report. {ADVICE}."
        pytest.skip(f"NOBODY HAS LOOKED AT THE REPORT: there is no Chromium. {ADVICE}.")

    @asynccontextmanager
    async def shown(content: Contents | str, *, width: int = DESK, dark: bool = False) -> AsyncIterator[browser.Page]:
        html = content if isinstance(content, str) else report.page(content)
        file = tmp_path / "report.html"
        file.write_text(html, encoding="utf-8")
        async with browser.page(chromium, tmp_path / "profile") as page:
            await page.open(file, width=width, dark=dark)
            yield page

    return shown


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
async def test_the_charts_are_there_and_their_text_is_readable_text(show: Show, width: int, dark: bool) -> None:
    async with show(samples.contents(), width=width, dark=dark) as page:
        charts = await page.evaluate(
            "[...document.querySelectorAll('figure svg')].map(svg => [svg.clientWidth, svg.clientHeight,"
            " Math.min(...[...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect().height)),"
            " svg.textContent])"
        )
        assert len(charts) == 5
        for across, down, letters, _ in charts:
            assert across > 250
            assert down > 80
            assert letters > 8
        texts = " ".join(text for *_, text in charts)
        for name in ("at_most_one_state_change", "< 1 min", "2026-Nov", "45,000"):
            assert name in texts
        ink, paper = await page.evaluate(
            "[getComputedStyle(document.querySelector('figure svg text')).fill,"
            " getComputedStyle(document.querySelector('figure')).backgroundColor]"
        )
        assert brightness(ink) > brightness(paper) + 100 if dark else brightness(ink) < brightness(paper) - 100
        assert (page.requested, page.complaints) == ([], [])


@pytest.mark.parametrize("content", [samples.contents, samples.healthy, samples.hostile])
async def test_nothing_is_wider_than_a_telephone(show: Show, content: Callable[[], Contents]) -> None:
    async with show(content(), width=TELEPHONE) as page:
        assert await page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE


async def test_hostile_ids_stay_text(show: Show) -> None:
    async with show(samples.hostile()) as page:
        assert (page.requested, page.complaints) == ([], [])
        text: Any = await page.evaluate("document.body.innerText")
        for hostile in samples.HOSTILE[:3]:
            assert hostile in text
        assert await page.evaluate("document.querySelectorAll('script, img, [onerror]').length") == 0
        assert "<img" in await page.evaluate("document.title")


async def test_a_page_that_asks_the_network_or_fails_would_be_noticed(show: Show) -> None:
    bad = "<!doctype html><img src='http://127.0.0.1:9/x.png'><script>throw new Error('broken')</script>"
    async with show(bad) as page:
        assert page.requested == ["http://127.0.0.1:9/x.png"]
        assert any("broken" in complaint for complaint in page.complaints)


def brightness(colour: str) -> float:
    """Of `rgb(1, 2, 3)`, from 0 to 255."""
    red, green, blue = (int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return 0.3 * red + 0.59 * green + 0.11 * blue
