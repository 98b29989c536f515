"""The report as one page of HTML without script or network."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from itertools import groupby
from typing import Final

from jinja2 import Environment, StrictUndefined

from spark_jobs.report import charts
from spark_jobs.report.contents import Contents, urgency
from spark_jobs.report.words import command_after, entity_name, message_name

MOST_SHOWN: Final = 1000
"""Most findings on a page; the files beside it have all."""


def page(contents: Contents) -> str:
    """The page. Values from documents are escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "number": _number,
        "moment": _moment,
        "span": charts.span_name,
        "entity": entity_name,
        "message": message_name,
    }
    environment.globals["command"] = command_after
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    rules = {rule.name: rule for rule in contents.rules}
    shown = sorted(contents.findings[:MOST_SHOWN], key=lambda item: (*urgency(rules[item.rule]), item.entity))
    return template.render(
        contents=contents,
        groups=[(rules[rule], list(found)) for rule, found in groupby(shown, key=lambda finding: finding.rule)],
        shown=len(shown),
        most=max((number for _, number in contents.pictures.worst), default=1),
        kinds=charts.kinds_chart(contents.rules),
        backlog=charts.backlog_chart(contents.pictures),
        commits=charts.commits_chart(contents.pictures),
        growing=charts.growing_kinds(contents.pictures),
        growth=charts.growth_chart(contents.pictures),
        trend=charts.trend_chart(contents.trend),
    )


def _number(value: float | None) -> str:
    """A number for readers."""
    if value is None:
        return "not reported"
    return f"{value:,.1f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"  # noqa: PLR2004


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC"
