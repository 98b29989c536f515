"""Documents of requests in memory: they lie in the library's partition of their entity."""

from __future__ import annotations

from exactlyonce.effects.effect import BEHIND, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.effects.port import Busy, performs
from exactlyonce.effects.requests import (
    CLOSED,
    Closed,
    CloseRequest,
    DeleteRequests,
    FoundRequests,
    KeepAnswers,
    LoadRequests,
    OpenRequest,
)
from exactlyonce.records.library import library_document, read_request
from exactlyonce.stores.memory.partitions import MemoryPartitions, token_at
from exactlyonce.values.frozen_json import Json


class MemoryRequests(MemoryPartitions):
    """The effects on documents of requests."""

    @performs(OpenRequest)
    def open_request(self, effect: OpenRequest) -> Written | Conflict | Unknown | Busy:
        partition, id = self._library(effect.entity), f"request:{effect.document.request}"

        def create() -> Written | Conflict:
            if partition.newest(id):
                return Conflict(partition.token)
            self._append(partition, id, Json.of(library_document(effect.document)))
            return Written(partition.token)

        return self._write("open_request", create)

    @performs(LoadRequests)
    def load_requests(self, effect: LoadRequests) -> FoundRequests | NoAnswer | Busy:
        partition = self._library(effect.entity)
        position = self._view(partition, effect.token)
        if position is None:
            return BEHIND
        versions = (partition.newest(f"request:{request}", position) for request in effect.requests)
        documents = (one.document.value for one in versions if one is not None and one.document is not None)
        return FoundRequests(tuple(map(read_request, documents)), token_at(position))

    @performs(KeepAnswers)
    def keep_answers(self, effect: KeepAnswers) -> Written | Unknown | Busy:
        partition = self._library(effect.entity)

        def replace() -> Written:
            for document in effect.documents:
                if partition.newest(f"request:{document.request}"):
                    self._append(partition, f"request:{document.request}", Json.of(library_document(document)))
            return Written(partition.token)

        return self._write("keep_answers", replace)

    @performs(CloseRequest)
    def close_request(self, effect: CloseRequest) -> Closed | Unknown | Busy:
        partition, id = self._library(effect.entity), f"request:{effect.request}"

        def delete() -> Closed:
            if partition.newest(id):
                self._append(partition, id, None)
            return CLOSED

        return self._write("close_request", delete)

    @performs(DeleteRequests)
    def delete_requests(self, effect: DeleteRequests) -> None:
        partition = self._library(effect.entity)

        def delete() -> None:
            for request, etag in effect.requests:
                self._delete_unchanged(partition, f"request:{request}", etag)

        self._write("delete_requests", delete)
