"""Authorization: every request is signed with the master key by HMAC-SHA256, or brings a token of Entra ID.

Documented: the signed text is verb, resource type, resource link and date, one per line, all but the link in lower case. The
link is the path without its last segment where that names a type, percent-decoded, without slashes at the ends. A path
of resource ids instead of names is signed with the last of them alone, in lower case.

Documented: a token says who asks, and roles what they may do. Roles on data neither create nor change databases and containers.

The tests of Microsoft's clients make tokens for emulators themselves: what would be the signature is the account's key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from local_cosmos.semantics.errors import RefusedError

WELL_KNOWN_KEY: Final = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
"""The key of every Cosmos DB emulator, published by Microsoft for use on local machines. It is a constant, not a secret."""

_TOKEN: Final = "type=aad&ver=1.0&sig="  # noqa: S105  # What comes before a token.
_MANAGED: Final = frozenset({"dbs", "colls"})
_DELETE_OF_A_PARTITION_KEY: Final = ("operations", "partitionkeydelete")


class Authorization:
    """Checks signatures and tokens.

    Args:
        key: The account's key, in base64.
        tokens: Those of Entra ID that are accepted, with the rights of a contributor to data.
    """

    def __init__(self, key: str, tokens: Collection[str] = ()) -> None:
        self._key = base64.b64decode(key)
        self._end_of_tokens = b"." + base64.urlsafe_b64encode(key.encode()).rstrip(b"=")
        self._tokens = tokens

    def check(self, verb: str, path: Sequence[str], date: str, authorization: str | None) -> None:
        """Accept a request.

        Args:
            path: The path's segments, percent-decoded.

        Raises:
            RefusedError: 401; neither signed with this key nor a token that is accepted. 403; a token gives no such right.
        """
        kind, link = _signed_parts(path)
        if self._is_accepted(unquote(authorization or "")):
            if verb != "GET" and kind in _MANAGED:
                raise RefusedError(
                    403, "Request blocked by Auth: data-plane roles do not manage databases and containers."
                )
            return
        given = _given_signature(authorization or "")
        by_resource_id = link.rpartition("/")[2].lower()
        signatures = (self._signature(verb, kind, signed, date) for signed in (link, by_resource_id))
        if not any(hmac.compare_digest(signature, given) for signature in signatures):
            raise RefusedError(
                401,
                "The input authorization token can't serve the request. "
                "Check that the expected payload is built as per the protocol, and the key being used.",
            )

    def _is_accepted(self, authorization: str) -> bool:
        if not authorization.startswith(_TOKEN):
            return False
        token = authorization.removeprefix(_TOKEN).encode("utf-8", "surrogateescape")
        end = token[-len(self._end_of_tokens) :]
        known = any(hmac.compare_digest(token, item.encode()) for item in self._tokens)
        return known or hmac.compare_digest(end, self._end_of_tokens)

    def _signature(self, verb: str, kind: str, link: str, date: str) -> bytes:
        text = f"{verb.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        return hmac.digest(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)


def _signed_parts(path: Sequence[str]) -> tuple[str, str]:
    """Resource type and link of a path."""
    if not path:
        return "", ""
    if tuple(path[-2:]) == _DELETE_OF_A_PARTITION_KEY:
        return "colls", "/".join(path[:-2])
    if len(path) % 2:
        return path[-1].lower(), "/".join(path[:-1])
    return path[-2].lower(), "/".join(path)


def _given_signature(authorization: str) -> bytes:
    _, _, signature = unquote_to_bytes(authorization.encode("utf-8", "surrogateescape")).partition(b"sig=")
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return b""
