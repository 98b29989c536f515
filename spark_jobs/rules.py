"""Rules of an application's own, which full audits judge and report beside those of the library.

A rule is a function from frames of entities to a frame of findings, in a module that the job file names (`rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pyspark.sql import DataFrame

from exactlyonce.errors import ConfigurationError
from spark_jobs.report.contents import Severity


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A rule of an application: see `audit_rule` for its attributes."""

    judge: Callable[..., DataFrame]
    title: str
    advice: str
    reads: Mapping[str, str]
    severity: Severity

    @property
    def name(self) -> str:
        """Of the rule, as findings have it: the function's."""
        return self.judge.__name__


def audit_rule(
    title: str, *, reads: Mapping[str, str], advice: str, severity: Severity = Severity.WRONG
) -> Callable[[Callable[..., DataFrame]], OwnRule]:
    """Make a rule of a function.

    The function gets a frame for each entity type that the rule reads, in their order: `entity` (its key), `version`, and the
    properties of its state; entities that were deleted are left out. It returns a frame with `entity` (null for none),
    `detail` (a sentence), and perhaps `subject` (text that tells two findings about one entity apart).

    The audit reads everything once more for a rule that finds something, and reports what it finds again. One read sees two
    entities at two moments: a rule that compares entities has to allow for messages on their way between them.

    Args:
        title: what the rule finds, for people.
        reads: by entity type, properties at the top of its state with their types in Spark, such as "balance bigint".
        advice: what to do about a finding, in sentences.
        severity: what a finding means.
    """
    return lambda judge: OwnRule(judge, title, advice, reads, severity)


def rules_of(module: str | None) -> tuple[OwnRule, ...]:
    """The rules at the top level of a module; none without a module.

    Raises:
        ConfigurationError: the module cannot be imported, or has no rules.
    """
    if module is None:
        return ()
    try:
        values: dict[str, Any] = vars(import_module(module))
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"The module {module} of `rules` cannot be imported: {error}.") from None
    found = tuple(value for value in values.values() if isinstance(value, OwnRule))
    if not found:
        raise ConfigurationError(f"The module {module} of `rules` has no rules: make some with audit_rule.")
    return found
