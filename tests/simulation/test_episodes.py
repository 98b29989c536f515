"""Whole episodes: nothing is lost or done twice, every fault takes place, and one seed is one history."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from devtools.simulation.episode import Report, run_episode
from devtools.simulation.protocols import COLOCATED, SHIPPED, STREAM, shipped
from devtools.simulation.twins import NAMES, protocols_of
from devtools.simulation.weather import FAULTS, WITNESSES

MESSAGES = 250
TELLING = (30, 36, 34, 1, 3)
"""Seeds that together show everything; should the library ask the world other questions one day, later ones will."""
MOST_SEEDS = 40
FALLS = dict.fromkeys(NAMES, 1) | {"clean-up without a fence": 60}
"""The seed in which to look first for each twin's fall."""
DIGESTS = "[run_episode(seed, 60).digest for seed in (3, 4)]"


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    """Episodes until everything was seen."""
    reports: list[Report] = []
    for seed in (*TELLING, *range(100, 100 + MOST_SEEDS)):
        reports.append(run_episode(seed, MESSAGES))
        if not unseen(reports):
            break
    return reports


def unseen(reports: list[Report]) -> list[str]:
    return [kind for kind in (*FAULTS, *WITNESSES) if not any(report.counted[kind] for report in reports)]


def test_nothing_is_lost_or_done_twice(reports: list[Report]) -> None:
    assert [report.violations for report in reports] == [[]] * len(reports)


def test_every_fault_and_every_witness_occurs(reports: list[Report]) -> None:
    assert unseen(reports) == []


def test_every_protocol_has_its_turn() -> None:
    assert {shipped(seed).beside for seed in TELLING} == {SHIPPED.beside, COLOCATED.beside, STREAM.beside}
    assert run_episode(1, MESSAGES).counted["entity swept"]
    assert run_episode(3, MESSAGES).counted["duplicate handled again"]


def test_nothing_is_counted_under_a_name_that_no_table_shows(reports: list[Report]) -> None:
    assert {kind for report in reports for kind in report.counted} <= {*FAULTS, *WITNESSES}


def test_one_seed_is_one_history_whatever_sets_and_dicts_hash_to() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", f"from devtools.simulation.episode import run_episode; print({DIGESTS})"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "4711")
    }
    assert digests == {str(eval(DIGESTS))}  # noqa: S307


def test_another_seed_is_another_history(reports: list[Report]) -> None:
    assert len({report.digest for report in reports}) == len(reports)


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_twin_is_convicted(name: str) -> None:
    protocols = protocols_of(name)
    seeds = (FALLS[name], *range(100, 100 + MOST_SEEDS))
    report = next((one for one in (run_episode(seed, 200, protocols) for seed in seeds) if one.violations), None)
    assert report is not None
    assert report.story


def test_there_is_no_twin_of_a_name_that_is_not_listed() -> None:
    with pytest.raises(KeyError):
        protocols_of("none such")
