"""The change feed, latest version: every item that was written since, once, in the order of the last writes.

Documented behaviour: deleted and expired items do not appear, nor do versions in between; the items of one batch have the
same `_lsn`. The continuation is an ETag: the LSN up to which the reader has seen everything; 304 when nothing is new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from local_cosmos.semantics import charges
from local_cosmos.semantics.container import Container
from local_cosmos.semantics.coverage import Part, covered, page_size, seen
from local_cosmos.semantics.errors import bad_request
from local_cosmos.semantics.requests import Reply, Request
from local_cosmos.semantics.usage import resource_usage
from local_cosmos.storage.items import Item

_NOW = "*"


def read_changes(container: Container, request: Request) -> Reply:
    """One page of changes.

    Raises:
        RefusedError: 400; not a continuation, or a feed of another kind.
    """
    if not request.latest_versions:
        raise bad_request("Only the incremental change feed (latest version) is supported by this emulator.")
    parts = covered(container, request)
    if len(parts) != 1:
        raise bad_request("A change feed is read one partition key range at a time: name one.")
    (part,) = parts
    page, last = _page(_changes(container, request, part), page_size(request))
    etag = f'"{last or part.lsn}"'
    usage = resource_usage(container, part.low, part.high) if request.quota else None
    if not page:
        return seen(container, parts, Reply(304, charge=charges.query(0), etag=etag, resource_usage=usage))
    body = b'{"_rid":"%s","Documents":[' % container.rid.encode("ascii")
    body += b",".join(page) + b'],"_count":%d}' % len(page)
    charge = charges.query(sum(map(len, page)))
    return seen(container, parts, Reply(200, body, charge, etag=etag, item_count=len(page), resource_usage=usage))


def _changes(container: Container, request: Request, part: Part) -> Iterator[tuple[int, Item]]:
    after = _after(request, part)
    since = _since(request)
    for lsn, item in container.store.changes(part.low, part.high, after, part.lsn):
        if item.modified >= since and not container.is_expired(item):
            yield lsn, item


def _page(changes: Iterator[tuple[int, Item]], size: int) -> tuple[list[bytes], int | None]:
    """A page, and the LSN to continue after; None when nothing is left. The items of one commit stay together."""
    page: list[bytes] = []
    last: int | None = None
    for lsn, item in changes:
        if len(page) >= size and lsn != last:
            return page, last
        page.append(item.raw[:-1] + b',"_lsn":%d}' % lsn)
        last = lsn
    return page, None


def _after(request: Request, part: Part) -> int:
    """The LSN after which the feed begins: `*` is now, none the beginning."""
    continuation = request.if_none_match
    if continuation is None:
        return 0
    if continuation == _NOW:
        return part.lsn
    lsn = continuation.strip('"')
    if not re.fullmatch(r"[0-9]{1,18}", lsn):
        raise bad_request(f"The change feed continuation {continuation!r} is not one of this emulator's.")
    return int(lsn)


def _since(request: Request) -> float:
    """The time at which the feed begins, in seconds since 1970; only for a feed without continuation."""
    if request.if_modified_since is None or request.if_none_match is not None:
        return 0.0
    try:
        return parsedate_to_datetime(request.if_modified_since).timestamp()
    except ValueError as error:
        raise bad_request(f"If-Modified-Since {request.if_modified_since!r} is not a date.") from error
