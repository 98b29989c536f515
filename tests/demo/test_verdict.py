"""A demo that shows too little does not pass for one that shows that all is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo.__main__ import verdict
from demo.costs import Cost
from demo.disorder import Gap
from demo.display import Report
from demo.late import APPLIED, DROPPED, REFUSED, Late
from demo.options import Options, parse
from demo.oracle import Evidence, Finding
from demo.play import Progress
from demo.trouble import Counted

FINDING = Finding("lost", "g-1", "shot-1 has no outcome")
GOOD = Report(
    options=Options(shots=100),
    deliveries=125,
    progress=Progress(kills=4, gaps=(Gap("g-1", "range/g-1", 4, 2),)),
    injected=Counted(lost_after=20, lost_before=20),
    evidence=Evidence((), {}, {}, 0),
    findings=(),
    costs=(),
    requests=0,
    charge=0.0,
    seconds=0.0,
)


def test_a_demo_in_which_every_shot_took_place_once_passes() -> None:
    assert verdict(GOOD) is None


@pytest.mark.parametrize(
    "report",
    [
        replace(GOOD, injected=Counted(lost_after=9, lost_before=20)),
        replace(GOOD, injected=Counted(lost_after=20, lost_before=9)),
        replace(GOOD, progress=replace(GOOD.progress, kills=2)),
        replace(GOOD, progress=replace(GOOD.progress, gaps=())),
    ],
)
def test_one_without_enough_trouble_of_every_kind_does_not(report: Report) -> None:
    assert "Too little trouble" in (verdict(report) or "")


def test_on_service_bus_the_broker_has_to_make_trouble_too_and_batches_have_less_of_the_stores() -> None:
    bus = replace(GOOD, options=replace(GOOD.options, transport="servicebus"))
    assert "Too little trouble" in (verdict(bus) or "")
    assert verdict(replace(bus, injected=Counted(lost_after=20, lost_before=20, at_the_broker=1))) is None
    few = replace(bus, injected=Counted(lost_after=2, lost_before=2, at_the_broker=1))
    assert "Too little trouble" in (verdict(few) or "")
    assert verdict(replace(few, options=replace(few.options, batches=True))) is None


def test_the_naive_handler_is_not_played_on_service_bus(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--strategy", "naive", "--transport", "servicebus"])
    assert "written for storage queues" in capsys.readouterr().err
    given = parse(["--transport", "servicebus", "--sessions", "off", "--batches", "on"])
    assert (given.transport, given.sessions, given.batches) == ("servicebus", False, True)


def test_without_faults_no_trouble_is_needed() -> None:
    options = replace(GOOD.options, faults=False)
    assert verdict(replace(GOOD, options=options, injected=Counted(), progress=Progress())) is None


def test_violations_and_what_is_dear_are_reported() -> None:
    assert verdict(replace(GOOD, findings=(FINDING,))) == "1 violations of exactly-once processing."
    dear = Cost("foreign", "new", operations=3.2, limit=3.1, rounds=2, rounds_apart=3, charge=20.0)
    assert verdict(replace(GOOD, costs=(dear,))) == "foreign, new: 3.20 operations, 3.1 are allowed."


@pytest.mark.parametrize(
    ("late", "passes"),
    [
        (Late(DROPPED, REFUSED), True),
        (Late(REFUSED, REFUSED), False),
        (Late(DROPPED, DROPPED), True),
        (Late(APPLIED, REFUSED), False),
        (Late(DROPPED, APPLIED), False),
    ],
)
def test_a_copy_has_to_be_dropped_within_the_retention_and_must_not_be_applied_after_it(
    late: Late, passes: bool
) -> None:
    problem = verdict(replace(GOOD, late=late))
    assert (problem is None) is passes
    assert passes or (problem or "").startswith("After three weeks")


def test_the_naive_handler_has_to_break_and_its_board_need_not_wait_for_anything() -> None:
    naive = replace(GOOD, options=replace(GOOD.options, strategy="naive"), progress=Progress(kills=4))
    assert verdict(replace(naive, findings=(FINDING,))) is None
    assert "got away with it" in (verdict(naive) or "")
