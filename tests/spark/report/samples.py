"""Reports to look at: one with findings, one without, and ids that want to be something else."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from spark_jobs.report.contents import Contents, Finding, Pictures, ReadResult, RuleResult
from spark_jobs.transforms.rules import ALL

AT = datetime(2026, 11, 21, 9, 30, tzinfo=timezone.utc)
RULES = (
    "at_most_one_state_change", "ledger_hole", "two_owners", "consistent_state_and_output", "owing_too_long", "output_lost",
    "orphan_staged", "staged_missing", "sequence_gap", "stuck_reader", "dedup_expired_early", "unreadable",
)  # fmt: skip
HOSTILE = (
    '<script>document.title="owned"</script>',
    '"><img src="https://example.invalid/x.png" onerror="alert(1)">',
    "$\\frac{1}{0}$ & {{ 7 * 7 }} {% raw %} ]]> --> </style></svg>",
    "日本語 \u202e evil \x07 " + "long" * 60,
)


def finding(rule: str, entity: str, number: int = 1) -> Finding:
    return Finding(
        rule,
        entity,
        f"web/m-{number}",
        (number, number + 3),
        f"output {number}",
        f"Message web/m-{number} changed {entity} at versions {number} and {number + 3}.",
        "Stop the app, find out which deployment wrote the later version, and take its change back by a correcting message.",
        AT - timedelta(hours=number),
    )


def contents() -> Contents:
    """A full audit with findings of several rules."""
    entities = [f'["range","game-{number}","game-{number}"]' for number in range(5)]
    many = {"at_most_one_state_change": 2, "ledger_hole": 1, "owing_too_long": 7, "sequence_gap": 1}
    findings = tuple(
        finding(rule, entities[(number * 3) % 5], number) for rule in many for number in range(1, many[rule] + 1)
    )
    numbers = {rule: sum(item.rule == rule for item in findings) for rule in RULES}
    hours = [AT - timedelta(hours=hour) for hour in range(72, 0, -1)]
    return Contents(
        account="shooting-range.documents.azure.com",
        database="shooting-range",
        mode="full",
        since=None,
        at=AT,
        seconds=84.2,
        entities=1204,
        messages=48_211,
        open=3,
        garbage=17,
        rules=tuple(
            RuleResult(
                rule.name,
                rule.title,
                rule.severity,
                "older than 5 minutes",
                None,
                numbers[rule.name] + (rule.name == "owing_too_long"),
                numbers[rule.name],
            )
            for rule in ALL
            if rule.name in RULES
        ),
        reads=(
            ReadResult("games", "first look", 1204, 312.4, 3.2),
            ReadResult("exactlyonce", "first look", 47_007, 3120.0, 9.8),
            ReadResult("games", "second look", 5, None, 0.4),
        ),
        pictures=Pictures(
            backlog=(("< 1 min", 12), ("1-10 min", 4), ("10-60 min", 5), ("1-24 h", 2), ("> 1 d", 0)),
            span=3600,
            commits=tuple((hour, 400 + (7919 * number) % 500) for number, hour in enumerate(hours)),
            growth={
                "marks in ledgers": tuple((hour, 20) for hour in hours[48:]),
                "marks in pages": tuple((hour, 380 + (7919 * number) % 480) for number, hour in enumerate(hours)),
                "stream entries": tuple((hour, 90) for hour in hours[::4]),
            },
            worst=tuple((entity, 7 - number) for number, entity in enumerate(entities)),
        ),
        total=len(findings),
        findings=findings,
        trend=tuple(
            (AT - timedelta(hours=hour), "incremental" if hour % 24 else "full", (7 * hour) % 12)
            for hour in range(48, -1, -1)
        ),
    )


def healthy() -> Contents:
    """An audit that found nothing, because there is nothing."""
    clean = tuple(replace(rule, suspects=0, findings=0) for rule in contents().rules)
    return replace(contents(), rules=clean, pictures=Pictures(), findings=(), trend=(), total=0, open=0, garbage=0)


def hostile() -> Contents:
    """A report in which every text that comes from documents tries to become something else."""
    found = tuple(
        replace(finding("unreadable", text, number), message=text, subject=text, detail=text, advice=text)
        for number, text in enumerate(HOSTILE, start=1)
    )
    worst = tuple((text, number) for number, text in enumerate(HOSTILE, start=1))
    return replace(
        contents(),
        account=HOSTILE[0],
        database=HOSTILE[1],
        findings=found,
        total=len(found),
        warnings=HOSTILE,
        pictures=replace(contents().pictures, worst=worst),
    )
