"""The index of the pages, with what requests and replies mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from devtools.modelcheck.specification.contents import CHAPTERS
from devtools.modelcheck.specification.pages import NOTICE
from devtools.modelcheck.specification.text import paragraph
from devtools.modelcheck.specification.vocabulary import NO_ANSWER_TO_READS, REPLIES, REQUESTS, UNKNOWN_WRITE

INTRO: Final = """
The protocols step by step, found by driving the code of the strategies through every reply that a request may get: steps, what
follows them, what a crash leaves and who finishes it. A test keeps pages and code the same. Written by hand are the titles and
reasons of the steps, and the words below. What is guaranteed, against which faults, is in [guarantees](../guarantees.md); the
words are those of the [glossary](../glossary.md).
"""
REPLIES_INTRO: Final = """
A reply tells less than what happened. This is what each may mean in reality; the protocols are right whichever it was.
"""
OTHERS: Final = (("published-algorithm.md", "the algorithm as it was published, and what is different here"),)


def index() -> str:
    """The page."""
    lines = [NOTICE, "", "# Protocols", "", *paragraph(INTRO), "", "| page | tells of |", "| --- | --- |"]
    lines += [f"| [{chapter.name}]({chapter.name}) | {chapter.summary} |" for chapter in CHAPTERS]
    lines += [f"| [{name}]({name}) | {summary} |" for name, summary in OTHERS]
    lines += ["", "## Requests and replies", "", *paragraph(REPLIES_INTRO), "", *_replies()]
    return "\n".join(lines) + "\n"


def _replies() -> Iterator[str]:
    yield from ("| request | reply | what it may mean |", "| --- | --- | --- |")
    for reply, meaning in NO_ANSWER_TO_READS.items():
        yield f"| any read | {reply} | {meaning} |"
    yield f"| any write | unknown | {UNKNOWN_WRITE} |"
    common = {*NO_ANSWER_TO_READS.values(), UNKNOWN_WRITE}
    for request, replies in REPLIES.items():
        named = f"`{request}`: {REQUESTS[request]}"
        for reply, meaning in replies.items():
            if meaning not in common:
                yield f"| {named} | {reply} | {meaning} |"
                named = ""
