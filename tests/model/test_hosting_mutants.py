"""The order of the host's steps has a reason: a unit test fails where two are swapped, or one is left out."""

from __future__ import annotations

import pytest

from verification.mutants.hosting import Reviewed, hosting_mutants
from verification.mutants.outside import fails, file_and_name

REVIEWED = Reviewed.read()
AGAIN = "Correct tests/model/mutants/hosting.json, and try it: python -m verification.mutants.hosting"


def test_every_mutant_of_the_host_is_listed_once_and_its_function_is_as_it_was() -> None:
    assert {mutant.name: mutant.key for mutant in hosting_mutants()} == REVIEWED.keys, AGAIN
    assert len(REVIEWED.keys) == len(REVIEWED.killed) + len(REVIEWED.harmless)


@pytest.mark.parametrize("test", dict.fromkeys(REVIEWED.killed.values()))
def test_every_unit_test_that_fails_with_mutants_exists(test: str) -> None:
    file, name = file_and_name(test)
    assert f"def {name}(" in file.read_text(encoding="utf-8")


def test_lateness_is_judged_after_credentials_were_had() -> None:
    swapped = "Caller._tried: 'if self.now() > api.last_start(taken.made, timedelta(seconds=taken.call…' before "
    (mutant,) = (item for item in hosting_mutants() if item.name.startswith(swapped) and "_prepared" in item.name)
    assert fails(REVIEWED.killed[mutant.name], mutant)


def test_every_reason_why_a_mutant_of_the_host_is_harmless_is_a_sentence() -> None:
    assert all(reason.endswith(".") and len(reason) > 20 for reason in REVIEWED.harmless.values())
