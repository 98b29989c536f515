"""Marks as columns: what ledgers and pages say that entities have received and sent.

A mark names a message by the hash of the key, and each output of the handler by place and destination. The id of an output
derives from the entity, the hash and the place, so the hash of the output can be computed, and joined with the marks of the
receiver. Built-in functions of Spark do all of this, but for the sources of entities with odd names: see `names`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from exactlyonce.records.ledger import DIGITS, KEPT, SEPARATOR, destination_digit
from exactlyonce.values.envelope import message_hash

_HASH: Final = len(message_hash(""))
_TIME: Final = 7
_CONTENT: Final = 4
_FIRST_MANY: Final = ord(destination_digit(len(DIGITS)))
"""Code point of the first destination that no digit names."""


def marks_in(text: Column | str) -> Column:
    """The single marks of a document: an array of texts, empty where there are none."""
    one = F.col(text) if isinstance(text, str) else text
    return F.when(F.length(one) > 0, F.split(one, f"[{SEPARATOR}]")).otherwise(F.array().cast("array<string>"))


def hash_in(mark: Column) -> Column:
    """The hash of the message."""
    return F.substring(mark, _TIME + 1, _HASH)


def time_in(mark: Column) -> Column:
    """When the message came about, as a text: those of later messages are greater. `written_time` makes such a text."""
    return F.substring(mark, 1, _TIME)


def instant_of(time: Column) -> Column:
    """The timestamp of such a text."""
    value = F.lit(0).cast("bigint")
    for place in range(1, _TIME + 1):
        value = value * len(DIGITS) + _digit(F.substring(time, place, 1))
    return F.timestamp_millis(value)


def kind_in(mark: Column) -> Column:
    """The kind of the message, in lower case."""
    return F.lower(F.substring(mark, _TIME + _HASH + 1, 1))


def is_timed(mark: Column) -> Column:
    """Whether all copies of the message have its time."""
    return kind_in(mark) == F.substring(mark, _TIME + _HASH + 1, 1)


def hash_of(key: Column) -> Column:
    """`message_hash` of a message's key."""
    return F.base64(F.substring(F.unhex(F.sha2(key, 256)), 1, 12))


def output_id(entity: Column, cause: Column, index: Column) -> Column:
    """`derived_id` of an output."""
    return F.substring(F.sha2(F.concat_ws("\n", entity, cause, index.cast("string")), 256), 1, 32)


def outputs_of(marks: DataFrame) -> DataFrame:
    """What the messages of marks caused: all columns, with `index` and `destination`, null for a message that is kept.

    Args:
        marks: with the columns `mark` and `to`.
    """
    sent = F.expr(f"substr(mark, {_TIME + _HASH + _CONTENT + 2})")
    digits = marks.withColumn("sent", sent).where(F.length("sent") > 0)
    each = digits.withColumn("index", F.explode(F.expr("sequence(0, length(sent) - 1)")))
    digit = F.expr("substr(sent, index + 1, 1)")
    many = F.ascii(digit)
    place = F.when(many < _FIRST_MANY, _digit(digit)).otherwise(many - _FIRST_MANY + len(DIGITS))
    destination = F.when(digit != KEPT, F.get("to", place.cast("int")))
    return each.withColumn("destination", destination).drop("sent")


def _digit(character: Column) -> Column:
    """The value of a digit; -1 of any other character."""
    return F.call_function("instr", F.lit(DIGITS), character).cast("bigint") - 1
