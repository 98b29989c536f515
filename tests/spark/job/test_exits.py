"""Exit codes, which schedulers rely on."""

from __future__ import annotations

import io

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.errors import DamagedDocument
from spark_jobs.job.exits import AccountError, Exit, UnsafeError, ending, raised_by_a_task

TRACE = """An error occurred while calling o42.collectToPython.
: org.apache.spark.SparkException: Job aborted: Task 0 failed 4 times, most recent failure: Traceback (most recent call last):
  File "worker.py", line 1247, in main
    process()
{kind}: {sentence}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
"""


def raising(error: Exception) -> Exit:
    raise error


def test_the_codes_are_as_documented() -> None:
    assert {code.name: code.value for code in Exit} == {
        "DONE": 0,
        "FINDINGS": 1,
        "CONFIGURATION": 2,
        "ACCOUNT": 3,
        "UNSAFE": 4,
        "INTERNAL": 70,
    }


@pytest.mark.parametrize("code", list(Exit))
def test_a_job_that_ends_by_itself_says_how(code: Exit) -> None:
    errors = io.StringIO()
    assert ending(lambda: code, errors) is code
    assert errors.getvalue() == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("No file."), Exit.CONFIGURATION),
        (AccountError("No answer."), Exit.ACCOUNT),
        (UnsafeError("Too short."), Exit.UNSAFE),
    ],
)
def test_an_error_of_ours_is_reported_in_one_sentence(error: Exception, code: Exit) -> None:
    errors = io.StringIO()
    assert ending(lambda: raising(error), errors) is code
    assert errors.getvalue() == f"{error}\n"


@pytest.mark.parametrize("error", [KeyError("x"), DamagedDocument("It is damaged.")])
def test_a_bug_shows_its_trace_and_does_not_look_like_a_finding(error: Exception) -> None:
    errors = io.StringIO()
    assert ending(lambda: raising(error), errors) is Exit.INTERNAL
    assert "Traceback" in errors.getvalue()


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("spark_jobs.job.exits.AccountError", Exit.ACCOUNT),
        ("spark_jobs.source.feed_ranges.RangeSplit", Exit.ACCOUNT),
        ("exactlyonce.errors.ConfigurationError", Exit.CONFIGURATION),
        ("spark_jobs.job.exits.UnsafeError", Exit.UNSAFE),
    ],
)
def test_the_error_of_a_task_is_found_in_the_trace_of_spark(kind: str, code: Exit) -> None:
    errors = io.StringIO()
    trace = RuntimeError(TRACE.format(kind=kind, sentence="The account answered 429/0."))
    assert ending(lambda: raising(trace), errors) is code
    assert errors.getvalue() == "The account answered 429/0.\n"


def test_a_trace_that_only_quotes_such_an_error_is_none() -> None:
    assert raised_by_a_task(RuntimeError("It raised AccountError: twice")) is None
