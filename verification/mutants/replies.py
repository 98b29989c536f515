"""What takes the place of an effect that is removed, and of the guards that effects and helpers carry."""

from __future__ import annotations

import ast
from typing import Final

_NO_COMPANIONS: Final = "effects.FoundCompanions(())"
_NO_REQUESTS: Final = "effects.FoundRequests((), None)"
_WRITTEN: Final = 'effects.Written("0:-1#0")'

_REPLIES: Final[dict[str, str | None]] = {
    "LoadEntity": "effects.Loaded(None, None, 0, None)",
    "request": "effects.Loaded(None, None, 0, None)",
    "HasPages": "False",
    "HasCompanions": "False",
    "SaveEntity": 'effects.Saved("1", None)',
    "SaveBatch": 'effects.Saved("1", None)',
    "Publish": "effects.PUBLISHED",
    "OpenNumbers": None,
    "CloseNumbers": "None",
    "paid_of": "frozenset()",
    "first_look": _NO_REQUESTS,
    "KeepAnswers": _WRITTEN,
    "_keep_answers": "{2}",
    "pay": "committed",
    "FindPages": "effects.FoundPages(())",
    "FindPagesAbove": "effects.FoundAbove(())",
    "FindBlobs": "frozenset()",
    "WritePage": _WRITTEN,
    "DeletePages": "None",
    "Stage": _WRITTEN,
    "LoadStaged": "effects.FoundStaged(())",
    "DeleteStaged": "None",
    "LoadCompanions": _NO_COMPANIONS,
    "FindEntries": _NO_COMPANIONS,
    "FindOwing": _NO_COMPANIONS,
    "FindNumbered": "effects.FoundNumbered(())",
    "ReplaceCompanions": "None",
    "DeleteCompanions": "None",
    "WriteOnce": "KEPT",
    "DeleteBlobs": "None",
    "Park": _WRITTEN,
    "park": 'Settled("parked", view.memory)',
    "LoadParked": "effects.FoundParked(None, None, None)",
    "Unpark": "None",
    "_known": "{{}}",
    "_pay": "view",
    "_require_no_pages": "None",
    "_written_before": "view.ledger.token",
    "_copies_paid": "(view.memory, frozenset())",
    "_make_room": 'Again(view.memory, "")',
    "_due": "()",
    "fresh_token": '"0:-1#0"',
    "take_back": None,
    "write_blobs": "None",
    "fence": "view.memory",
    "load": None,
    "load_with_companions": None,
    "admitted": None,
    "clean_companions": None,
    "finish": "None",
    "self.tend": None,
    "strategy.committed": "frozenset()",
    "publish_owed": "view.memory",
    "publish_records": "None",
    "handled_again": "()",
    "_never_had_a_ledger": "True",
    "skip": "None",
    "ask_again": "None",
    "self.attempt": "Finished(view.memory)",
    "self.load_state": None,
    "self.proof": "None",
    "self._loaded": None,
    "self._process": None,
    "self._handle": None,
    "look_apart": "view",
    "self._commit": None,
    "_commit": None,
    "commit": None,
    "release": "()",
    "_received": None,
    "Begin": None,
}
"""What a removed effect is taken to have answered: as if nothing could go wrong. None: nothing is left without it.

A number in braces stands for an argument of the call.
"""

ARGUMENTS: Final = {
    ("LoadEntity", 1): "None",
    ("FindPages", 3): "0",
    ("FindPages", 4): "None",
    ("FindPagesAbove", 2): "None",
    ("FindBlobs", 2): "None",
    ("FindPaid", 1): "0",
    ("FindPaid", 4): "()",
    ("LoadStaged", 2): "None",
    ("LoadRequests", 2): "None",
    ("LoadCompanions", 2): "None",
    ("FindEntries", 2): "None",
    ("FindNumbered", 3): "None",
    ("SaveEntity", 2): "'*'",
    ("SaveBatch", 2): "'*'",
    ("SaveBatch", 3): "()",
    ("SaveBatch", 4): "()",
    ("LoadParked", 2): "None",
    ("Unpark", 2): "'*'",
    ("Begin", 0): "(), len({})",
    ("OpenNumbers", 1): "0",
    ("OpenNumbers", 2): "(), len({})",
}
"""Arguments of effects that carry a guard, and what is there without. Braces stand for the argument."""

UNDONE: Final = {"remembering": "{0}", "view.remembering": "view.memory"}
"""Helpers, and what there is without them. Braces stand for the first argument."""


def reply_to(call: ast.expr) -> str | None:
    """Source of what an effect, or a function that asks for some, answers when it is removed; None if nothing is left.

    Raises:
        LookupError: nobody has said so yet.
    """
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ast.unparse(call)
    if name == "Together" and isinstance(call, ast.Call):  # The first of the two is asked all the same.
        first, second = call.args
        return f"((yield from {ast.unparse(first)}), {reply_to(second)})"
    if name in _REPLIES:
        reply = _REPLIES[name]
        arguments = call.args if isinstance(call, ast.Call) else ()
        return reply and reply.format(*map(ast.unparse, arguments))
    raise LookupError(f"What does the reply to {name!r} look like when nothing goes wrong? `_REPLIES` has to say it.")
