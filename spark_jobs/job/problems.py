"""Problems of a configuration, reported all at once, by the names in the file and without its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from exactlyonce.errors import ConfigurationError


def refusal(what: str, problems: Iterable[str]) -> ConfigurationError:
    """An error that names all problems, a line for each."""
    return ConfigurationError(f"{what}:\n" + "\n".join(f"- {problem}" for problem in problems))


def require_none(problems: Iterable[str]) -> None:
    """Raise `ValueError` with a line for each problem, if there is one."""
    if lines := "\n".join(problems):
        raise ValueError(lines)


def problems_of(error: ValidationError, known: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """The problems that pydantic found. Values are left out: one may be a key in the wrong place.

    Args:
        error: of a model.
        known: names of its fields under "", and of those of its parts under the part's name.
    """
    for item in error.errors(include_url=False, include_input=False):
        yield from _lines(item, known)


def _lines(mapping: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> list[str]:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mapping["loc"]).lstrip(".")
    match mapping["type"]:
        case "extra_forbidden":
            names = known[mapping["loc"][0] if len(mapping["loc"]) > 1 else ""]
            return [f"{where} is not known here; known are: {', '.join(names)}"]
        case "missing":
            return [f"{where} is missing"]
        case "value_error":
            return [f"{where} {line}" for line in str(mapping["ctx"]["error"]).splitlines()]
        case _:
            return [f"{where}: {mapping['msg']}"]
