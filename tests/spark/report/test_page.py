"""The report has everything that has to be known, and only what is so."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from html import escape
from html.parser import HTMLParser

import pytest

from spark_jobs.report.charts import growing_kinds, growth_chart, trend_chart
from spark_jobs.report.contents import Pictures, urgency
from spark_jobs.report.page import MOST_SHOWN, page
from spark_jobs.report.words import command_after, entity_name, message_name
from tests.spark.report import samples
from tests.spark.report.samples import AT, HOSTILE, RULES, contents, finding, healthy, hostile


def test_every_rule_read_and_finding_is_on_the_page() -> None:
    shown = page(contents())
    for rule in RULES:
        assert rule in shown
    for name in ("games", "exactlyonce", "first look", "second look", "47,007", "3,432", "not reported"):
        assert name in shown
    for item in contents().findings:
        assert escape(item.entity, quote=False).replace('"', "&#34;") in shown
        assert escape(item.detail, quote=False).replace('"', "&#34;") in shown
    assert contents().findings[0].advice in shown


def test_a_report_without_findings_says_so_and_shows_no_empty_chart() -> None:
    shown = page(healthy())
    assert "Nothing found" in shown
    assert "Nothing is owed." in shown
    assert "Worst entities" not in shown
    assert "<svg" not in shown


def test_an_incremental_report_says_since_when_and_which_rules_did_not_run() -> None:
    rules = tuple(
        replace(rule, skipped="it needs a full audit") if "lost" in rule.name else rule
        for rule in samples.contents().rules
    )
    shown = page(replace(healthy(), mode="incremental", since=AT - timedelta(hours=1), rules=rules))
    assert "what changed since 2026-11-21 08:30:00 UTC" in shown
    assert "no: it needs a full audit" in shown
    assert "everything that is stored" not in shown


def test_findings_beyond_what_a_page_can_show_are_counted_and_their_files_named() -> None:
    many = tuple(finding("owing_too_long", f"e-{number}", number) for number in range(MOST_SHOWN))
    shown = page(replace(contents(), findings=many, total=MOST_SHOWN + 1))
    assert "1,000 of 1,001 findings are shown" in shown
    assert "findings.jsonl" in shown


class Elements(HTMLParser):
    """Collects elements and their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("hostile_text", HOSTILE, ids=["script", "image", "templates", "letters"])
def test_whatever_a_document_says_is_text(hostile_text: str) -> None:
    plain, elements = Elements(page(contents())), Elements(page(hostile()))
    assert elements.names <= plain.names | {"p"}
    assert elements.attributes <= plain.attributes
    assert "script" not in elements.names
    assert hostile_text not in page(hostile()) or not set("<>&\"'") & set(hostile_text)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    shown = page(contents())
    assert "Content-Security-Policy" in shown
    assert "default-src 'none'" in shown
    outside = shown.replace("http://www.w3.org/", "")
    assert "http://" not in outside
    assert "https://" not in outside


def test_growth_adds_up_and_its_kinds_have_the_colours_of_the_legend() -> None:
    growth = {"none": (), "records": ((AT, 3), (AT + timedelta(hours=2), 4)), "staged": ((AT + timedelta(hours=1), 1),)}
    pictures = Pictures(span=3600, growth=growth)
    assert list(growing_kinds(pictures)) == ["records", "staged"]
    chart = growth_chart(pictures) or ""
    assert "var(--series-1)" in chart
    assert "var(--series-2)" in chart
    assert "var(--series-3)" not in chart
    assert "#0000" not in chart


def test_the_summary_is_json_that_counts_what_each_rule_that_ran_found() -> None:
    shown = json.loads(json.dumps(contents().summary(), default=str))
    assert shown["total"] == 11
    assert shown["found"]["owing_too_long"] == 7
    assert set(shown["found"]) == set(RULES)
    assert shown["rows"] == 48_216
    assert "findings" not in shown
    rules = (replace(contents().rules[0], skipped="it needs a full audit"), *contents().rules[1:])
    assert RULES[0] not in replace(contents(), rules=rules).summary()["found"]


def test_the_worst_comes_first_in_words_and_what_happened_before_what_to_do() -> None:
    shown = page(contents())
    titles = [rule.title for rule in sorted(contents().rules, key=urgency) if rule.findings]
    places = [shown.index(f"</span>{title} ") for title in titles]
    assert places == sorted(places)
    assert "data wrong" in shown
    one = contents().findings[0]
    assert shown.index(escape(one.detail).replace("&quot;", "&#34;")) < shown.index(one.advice)


def test_entities_and_messages_are_named_as_people_do_and_a_command_follows() -> None:
    shown = page(contents())
    assert ">range game-3</code>" in shown
    assert ">m-1 from web</code>" in shown
    assert ">python -m exactlyonce.cli inspect range game-3</code>" in shown
    assert ">python -m exactlyonce.cli sweep --type range --older-than 0</code>" in shown


def test_names_of_odd_keys_reach_a_shell_as_they_are() -> None:
    key = json.dumps(["order", "eu'; rm", 7, "o 1"])
    assert entity_name(key) == "order o 1 in eu'; rm, 7"
    _, command = (command_after("two_owners", key) or "").split("inspect ")
    assert shlex.split(command) == ["order", '["eu\'; rm", 7, "o 1"]']


@pytest.mark.parametrize("key", ["", "null", "[", '["range"]', '[1,"a","a"]', '["range","a",1]', "of no known entity"])
def test_text_that_is_no_key_is_shown_unchanged_and_has_no_command(key: str) -> None:
    assert entity_name(key) == key
    assert command_after("two_owners", key) is None
    assert message_name("no-source") == "no-source"


@pytest.mark.parametrize(
    "span", [timedelta(seconds=170), timedelta(minutes=170), timedelta(hours=70), timedelta(days=80)]
)
def test_a_span_of_nearly_three_of_the_next_larger_unit_has_ticks_and_no_warning(span: timedelta) -> None:
    chart = trend_chart(((AT, "full", 0), (AT + span, "full", 3)))
    assert chart is not None
    assert "<svg" in chart
