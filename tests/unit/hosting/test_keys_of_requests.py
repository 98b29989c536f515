"""Keys of requests: what clients send as `Idempotency-Key`, and the time that some carry."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope
from exactlyonce.errors import InvalidKey
from exactlyonce.hosting.requests.asker import AHEAD, read_key, time_of
from exactlyonce.values import envelope as envelopes
from exactlyonce.values.frozen_json import Json

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255)


def quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def uuid7(time: datetime) -> str:
    milliseconds = round(time.timestamp() * 1000)
    return str(UUID(int=milliseconds << 80 | 7 << 76 | 0b10 << 62 | 42))


@given(PRINTABLE)
def test_every_key_can_be_sent_as_a_structured_field(key: str) -> None:
    assert read_key(quoted(key)) == key


@given(PRINTABLE.filter(lambda key: key == key.strip() and not key.startswith('"')))
def test_a_bare_key_is_the_same_as_a_quoted_one(key: str) -> None:
    assert read_key(key) == read_key(f" {key}\t") == read_key(quoted(key))


@pytest.mark.parametrize("header", [None, "", " ", "\t"])
def test_a_missing_key_is_refused(header: str | None) -> None:
    with pytest.raises(InvalidKey, match="missing"):
        read_key(header)


@pytest.mark.parametrize(
    "header",
    [
        '""',
        '"a',
        '"a"b',
        '"a";b=1',
        '"a\\b"',
        '"',
        "a" * 256,
        quoted("a" * 256),
        "a\u00e9",
        "a\x7f",
        "a\x1fb",
        '"\u00e9"',
    ],
)
def test_a_header_that_is_no_key_is_refused(header: str) -> None:
    with pytest.raises(InvalidKey, match="is no key"):
        read_key(header)


def test_the_longest_key_has_255_characters() -> None:
    assert read_key("a" * 255) == read_key(quoted("a" * 255)) == "a" * 255


@given(st.integers(1, 1_767_000_000_000))
def test_a_timed_key_carries_its_time(milliseconds: int) -> None:
    time = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    assert abs(time_of(uuid7(time), NOW) - time) < timedelta(milliseconds=1)
    assert time_of(uuid7(time).upper(), NOW) == time_of(uuid7(time), NOW)


@given(st.integers(0, 2**48 - 1))
def test_a_message_is_timed_by_the_time_that_its_key_carries(milliseconds: int) -> None:
    key = uuid7(datetime.fromtimestamp(milliseconds % (2 * 10**12) / 1000, timezone.utc))
    since = Envelope("http", key, "t", Json("null"), NOW).since
    try:
        said = time_of(key, NOW)
    except InvalidKey:
        assert since is not None, "a key that is too far ahead"
        return
    # A key of before the version existed carries no time for its message, and is refused as too old.
    assert said == envelopes.time_of(since) if since is not None else NOW - said > timedelta(days=365)


def test_the_time_of_a_key_may_be_five_minutes_ahead_and_no_more() -> None:
    assert time_of(uuid7(NOW + AHEAD), NOW) == NOW + timedelta(minutes=5)
    with pytest.raises(InvalidKey, match="clock of the client"):
        time_of(uuid7(NOW + AHEAD + timedelta(milliseconds=1)), NOW)
    with pytest.raises(InvalidKey, match="clock of the client"):
        time_of("ffffffff-ffff-7fff-bfff-ffffffffffff", NOW)


@pytest.mark.parametrize(
    "key",
    [
        "k-1",
        "8e03978e-40d5-43e8-bc93-6894a57f9324",
        uuid7(NOW).replace("-", ""),
        "{" + uuid7(NOW) + "}",
        "019b76da-a800-7000-0000-00000000002a",
    ],
)
def test_a_key_without_a_time_is_refused_where_keys_carry_theirs(key: str) -> None:
    with pytest.raises(InvalidKey, match="version 7"):
        time_of(key, NOW)
