"""Names of entities as columns: their keys, their sources, and how the keys of their messages begin.

Most names are plain: without a character to escape or encode, and built by Spark. The library's own code builds the rest, row
by row in Python, ten times slower. So callers with many rows check first whether all names are plain.
"""

from __future__ import annotations

import json
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.
from pyspark.sql.types import StringType

from exactlyonce.values.envelope import LONGEST_READABLE, EntityRef
from spark_jobs.spark.frames import by_row

_WRITTEN_AS_IT_IS: Final = r'[^"\\\p{Cntrl}]*'
"""Text that JSON does not escape."""
_PLAIN_PARTITION: Final = rf'\A\["{_WRITTEN_AS_IT_IS}"(,"{_WRITTEN_AS_IT_IS}")*\]\z'
_PLAIN_KEY: Final = r'\A\["[\w.~-]+"(,"[\w.~-]+")+\]\z'
"""A key whose parts are strings that no source has to encode."""


def plain_key(type: Column, partition: Column, id: Column) -> Column:
    """`EntityRef.key` where all parts are strings that JSON writes as they are; else null.

    Args:
        partition: the values of its partition key, as a JSON array.
    """
    plain = partition.rlike(_PLAIN_PARTITION) & F.concat(type, id).rlike(rf"\A{_WRITTEN_AS_IT_IS}\z")
    values = partition.substr(F.lit(2), F.length(partition) - 2)
    return F.when(plain, F.concat(F.lit('["'), type, F.lit('",'), values, F.lit(',"'), id, F.lit('"]')))


@by_row(StringType())
def entity_key(type: str | None, partition: str | None, id: str | None) -> str | None:
    """`EntityRef.key`: JSON text has more than one form, and this is the library's own. Arguments as of `plain_key`."""
    if type is None or partition is None or id is None:
        return None
    return EntityRef(type, tuple(json.loads(partition)), id).key


def plain_source(key: Column | str) -> Column:
    """`EntityRef.source` of an entity with this key, if nothing in it has to be encoded and it is not too long; else null."""
    key = F.col(key) if isinstance(key, str) else key
    parts = F.split(key.substr(F.lit(3), F.length(key) - 4), '","')
    by_id = (F.size(parts) == 3) & (parts[1] == parts[2])  # noqa: PLR2004  # Type, partition, id.
    source = F.array_join(F.when(by_id, F.slice(parts, 1, 2)).otherwise(parts), "/")
    return F.when(key.rlike(_PLAIN_KEY) & (F.length(source) <= LONGEST_READABLE), source)


@by_row(StringType())
def source_of(key: str | None) -> str | None:
    """The source of what an entity sends; None if this is no key of an entity."""
    try:
        type, *partition, id = json.loads(key or "")
        return EntityRef(type, tuple(partition), id).source
    except (ValueError, TypeError):
        return None


def prefix(source: Column | str) -> Column:
    """The beginning of the keys of a source's messages, as `message_key` writes it."""
    encoded = F.replace(F.replace(source, F.lit("%"), F.lit("%25")), F.lit("/"), F.lit("%2F"))
    return F.concat(encoded, F.lit("/"))
