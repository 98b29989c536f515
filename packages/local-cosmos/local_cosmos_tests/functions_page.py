"""Writes the page `docs/functions.md` from the examples that tests run: `python -m local_cosmos_tests.functions_page`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from local_cosmos.values import UNDEFINED, serialise
from local_cosmos_tests.documented_functions import SUBJECTS

PAGE: Final = Path(__file__).parents[1] / "docs" / "functions.md"

_REFUSED: Final = """
    FULLTEXTCONTAINS FULLTEXTCONTAINSALL FULLTEXTCONTAINSANY FULLTEXTSCORE RRF
    ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID ST_ISVALIDDETAILED ST_WITHIN VECTORDISTANCE
    """
_HERE: Final = """
    ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN ARRAY_MIN
    ARRAY_SLICE ARRAY_SUM CHOOSE OBJECTTOARRAY SETDIFFERENCE SETEQUAL SETINTERSECT SETUNION
    IIF DOCUMENTID
    AGO DATETIMEADD DATETIMEBIN DATETIMEDIFF DATETIMEFORMAT DATETIMEFROMPARTS DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP
    DAY GETCURRENTDATETIME GETCURRENTDATETIMESTATIC GETCURRENTTICKS GETCURRENTTICKSSTATIC GETCURRENTTIMESTAMP
    GETCURRENTTIMESTAMPSTATIC MONTH NOW TICKSTODATETIME TIMESTAMPTODATETIME YEAR
    ABS ACOS ASIN ATAN ATN2 CEILING COS COT DEGREES EXP FLOOR INTADD INTBITAND INTBITLEFTSHIFT INTBITNOT INTBITOR
    INTBITRIGHTSHIFT INTBITXOR INTDIV INTMOD INTMUL INTSUB LOG LOG10 NUMBERBIN PI POWER RADIANS RAND ROUND SIGN SIN SQRT
    SQUARE TAN TRUNC
    CONCAT CONTAINS CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI CONTAINS_ANY_CS ENDSWITH INDEX_OF LASTINDEXOF
    LASTSUBSTRINGAFTER LASTSUBSTRINGBEFORE LEFT LENGTH LOWER LTRIM REGEXEXTRACT REGEXEXTRACTALL REGEXMATCH REPLACE REPLICATE
    REVERSE RIGHT RTRIM STARTSWITH STRINGEQUALS STRINGJOIN STRINGSPLIT STRINGTOARRAY STRINGTOBOOLEAN STRINGTONULL
    STRINGTONUMBER STRINGTOOBJECT SUBSTRING SUBSTRINGAFTER SUBSTRINGBEFORE TOSTRING TRIM UPPER
    IS_ARRAY IS_BOOL IS_DATETIME IS_DEFINED IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING
    """
REFUSED: Final = frozenset(_REFUSED.split())
"""Documented functions that are not here."""
DOCUMENTED: Final = REFUSED.union(_HERE.split())
"""Scalar functions in Microsoft's reference of the query language, as of November 2026."""

_HEAD: Final = """# Functions

All scalar functions that Microsoft's reference of the query language has, and operators, with examples of the documentation and
of its remarks. Tests run each of them; `python -m local_cosmos_tests.functions_page` writes this page from theirs. For the
functions of the present it is 23:19:54.25 on 13 August 2020 (UTC); `@list` is `[1, 2]`, `@name` is `"a"` and `@place` is 1.
What is *undefined* has no value, and is left out of a result.
"""


def page() -> str:
    """The text of the page."""
    lines = [_HEAD]
    for subject, examples in SUBJECTS.items():
        lines += [f"## {subject}", "", "| expression | result |", "| --- | --- |"]
        lines += [f"| {_code(expression)} | {_result(result)} |" for expression, result in examples]
        lines += [""]
    lines += ["## Refused by name", "", *(f"- `{name}`" for name in sorted(REFUSED))]
    return "\n".join(lines) + "\n"


def examples_of(name: str) -> list[str]:
    """The expressions that call a function; its name is in capitals."""
    call = re.compile(rf"\b{name}\(", re.IGNORECASE)
    return [expression for examples in SUBJECTS.values() for expression, _ in examples if call.search(expression)]


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`"


def _result(value: Any) -> str:
    return "*undefined*" if value is UNDEFINED else _code(serialise(value).decode())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
