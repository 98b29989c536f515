"""Bodies that are no good messages: valid ones with something wrong, by seed. Each holds the secret in its data."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import isfinite
from random import Random
from typing import Any, Final

SECRET: Final = "hunter2-what-the-body-says"
ATTRIBUTES: Final = ("specversion", "id", "source", "type", "time", "datacontenttype", "data")
DEEP: Final = 20_000
"""Brackets in brackets: more than a recursive parser bears."""
DIGITS: Final = 5_000
"""Of an integer: more than Python converts."""

Document = dict[str, Any]
Wrong = Callable[[Random, Document], bytes]


def text(value: object) -> bytes:
    """A value as JSON, `NaN` and lone surrogates included."""
    return json.dumps(value).encode()


def odd(random: Random) -> Any:
    """A value that belongs nowhere; it may hold the secret."""
    return random.choice(
        (
            None,
            True,
            -1,
            10**40,
            1e308 * 10,
            float("nan"),
            "",
            " ",
            "\x00",
            "\ud800",
            "a\r\nb",
            "\u202e",
            "x" * 2_000,
            [],
            {},
            [SECRET],
            {"secret": SECRET},
            {"data": {"data": SECRET}},
            [[[[SECRET]]]],
            "2026-02-30T00:00:00Z",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
        )
    )


def cut(random: Random, document: Document) -> bytes:
    whole = text(document)
    return whole[: random.randrange(len(whole))]


def flipped(random: Random, document: Document) -> bytes:
    body = bytearray(text(document))
    for _ in range(random.randint(1, 4)):
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body)


def with_noise(random: Random, document: Document) -> bytes:
    whole, place = text(document), random.randrange(len(text(document)))
    return whole[:place] + random.randbytes(random.randint(1, 9)) + whole[place:]


def without_an_attribute(random: Random, document: Document) -> bytes:
    left_out = random.choice(ATTRIBUTES)
    return text({name: value for name, value in document.items() if name != left_out} | {"note": SECRET})


def with_an_odd_attribute(random: Random, document: Document) -> bytes:
    name = random.choice((*ATTRIBUTES, "channel", "sequence", "dataref", "requeued", "Extra-", "data_base64"))
    return text({**document, name: odd(random)})


def with_odd_data(random: Random, document: Document) -> bytes:
    data = dict(document["data"])
    data[random.choice((*data, "extra"))] = odd(random)
    return text({**document, "data": data})


def without_data_of_the_type(random: Random, document: Document) -> bytes:
    return text({**document, "data": random.choice((odd(random), {}, {"note": SECRET}))})


def wrapped(random: Random, document: Document) -> bytes:
    return text(random.choice(([document], text(document).decode(), {"body": document}, [[SECRET]], SECRET)))


def nested(random: Random, document: Document) -> bytes:
    deep = random.choice((b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP))
    return text(document).replace(b'"data": {', b'"data": {"deep": ' + deep + b", ")


def with_a_huge_number(random: Random, document: Document) -> bytes:
    number = random.choice((b"9" * DIGITS, b"1e999", b"-1e999", b"1" + b"0" * 400, b"0.1e-999"))
    return text(document).replace(b'"amount": 1', b'"amount": ' + number)


def encoded(random: Random, document: Document) -> bytes:
    whole = json.dumps({**document, "note": "ä"}, ensure_ascii=False)
    return whole.encode(random.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-16-be")))


def with_an_attribute_twice(random: Random, document: Document) -> bytes:
    name = random.choice(ATTRIBUTES)
    return b'{"%s": %s, %s' % (name.encode(), text(odd(random)), text(document)[1:])


def nothing(random: Random, document: Document) -> bytes:
    return random.choice((b"", b" ", b"\x00", b"null", b"0", b'""', b"[]", b"{}", text(document)[::-1]))


WRONGS: Final[Sequence[Wrong]] = (
    cut,
    flipped,
    with_noise,
    without_an_attribute,
    with_an_odd_attribute,
    with_odd_data,
    without_data_of_the_type,
    wrapped,
    nested,
    with_a_huge_number,
    encoded,
    with_an_attribute_twice,
    nothing,
)


def malformed(document: Document, seed: int) -> bytes:
    """A document with something wrong; by chance it may still be a good one.

    Args:
        document: an envelope, or another object with `data`.
        seed: of the chance; what is wrong goes by turns.
    """
    return WRONGS[seed % len(WRONGS)](Random(seed), document)


def damaged(document: Document, random: Random) -> Document:
    """A document of which one value, somewhere, is another, or gone, or is joined by one that nobody knows."""
    copy: Document = json.loads(json.dumps(document))
    place: Any = copy
    while (
        isinstance(inner := place[name := _some_name(random, place)], dict | list) and inner and random.random() < 0.8
    ):
        place = inner
    match random.randrange(3):
        case 0:
            del place[name]
        case 1:
            place[name] = json.loads(text(_storable(random)))
        case _ if isinstance(place, dict):
            place[f"another-{name}"] = SECRET
        case _:
            place.append(SECRET)
    return copy


def _some_name(random: Random, place: Any) -> Any:
    return random.choice([*place] if isinstance(place, dict) else range(len(place)))


def _storable(random: Random) -> Any:
    """An odd value that a document may hold: no NaN, no half a surrogate pair."""
    while True:
        value = odd(random)
        if value != "\ud800" and not (isinstance(value, float) and not isfinite(value)):
            return value
