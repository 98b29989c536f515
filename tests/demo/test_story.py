"""What a demo says while it runs."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from demo.auditing import Act
from demo.display import show_act
from demo.story import Story


def story_at(*times: float) -> tuple[Story, StringIO]:
    """A story whose clock shows these seconds, one at each look."""
    output = StringIO()
    clock = iter(times)
    return Story(Console(file=output, width=80), lambda: next(clock)), output


def test_acts_are_numbered_and_bear_the_time_since_the_beginning() -> None:
    story, output = story_at(100.0, 100.4, 171.0, 172.0)
    story.act("Shots are fired.")
    story.act("A year passes.")
    story.tell("The copy was dropped.")
    assert output.getvalue().splitlines() == [
        "",
        " 0:00  Act 1. Shots are fired.",
        "",
        " 1:11  Act 2. A year passes.",
        " 1:12  The copy was dropped.",
    ]


def test_an_act_of_spark_tells_its_counts_by_rule_and_where_its_report_is() -> None:
    story, output = story_at(0.0, 9.0)
    found = frozenset({("output_lost", "range/g-1"), ("output_lost", "range/g-2"), ("page_missing", "range/g-1")})
    rules = {"output_lost": 3, "page_missing": 1}  # Two of them about one entity.
    show_act(story, Act("Audit of a copy", found, found, Path("report.html"), rules, 8.6, "12 documents would go"))
    assert output.getvalue().splitlines() == [
        " 0:09  Audit of a copy: 4 findings, all 3 that were planted, in 9 s.",
        "       12 documents would go.",
        "       output_lost: 3",
        "       page_missing: 1",
        "       report.html",
    ]


def test_an_act_of_spark_says_whether_what_came_out_had_to() -> None:
    story, output = story_at(0.0, 9.0, 12.0)
    nothing: frozenset[tuple[str, str]] = frozenset()
    show_act(story, Act("Audit", nothing, nothing, Path("report.html"), {}, 8.6))
    surplus = frozenset({("output_lost", "range/g-1")})
    show_act(story, Act("Audit", nothing, surplus, Path("report.html"), {"output_lost": 1}, 3.0))
    assert [line for line in output.getvalue().splitlines() if "Audit" in line] == [
        " 0:09  Audit: 0 findings, in order, in 9 s.",
        " 0:12  Audit: 1 findings, not what had to come out, in 3 s.",
    ]


def test_steps_of_a_job_are_no_lines_where_there_is_no_terminal() -> None:
    story, output = story_at(0.0)
    with story.steps() as steps:
        steps.begin("Reading")
        steps.done("10 documents")
    assert output.getvalue() == ""
