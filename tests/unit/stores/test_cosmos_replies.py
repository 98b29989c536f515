"""What the SDK raises for replies of Cosmos DB, and the reply that a strategy gets."""

from __future__ import annotations

from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from exactlyonce.stores.cosmos.replies import Operation, after_query, after_read, after_write

SECRET = "what stands in a document"
TOKEN = "0:-1#913"
HEADERS = {"x-ms-session-token": TOKEN, "x-ms-retry-after-ms": "1500"}

_CLASSES: dict[int, type[CosmosHttpResponseError]] = {
    404: CosmosResourceNotFoundError,
    409: CosmosResourceExistsError,
    412: CosmosAccessConditionFailedError,
}


def refusal(
    status: int, substatus: int | None = None, headers: dict[str, str] | None = None
) -> CosmosHttpResponseError:
    """What the SDK raises for a reply of the service."""
    error = _CLASSES.get(status, CosmosHttpResponseError)(status_code=status, message=SECRET)
    error.sub_status = substatus
    error.headers = HEADERS if headers is None else headers
    return error


def batch_refusal(status: int, headers: dict[str, str] | None = None, index: int = 0) -> CosmosBatchOperationError:
    """What the SDK raises for a batch one operation of which failed."""
    return CosmosBatchOperationError(  # type: ignore[no-untyped-call]
        error_index=index,
        headers=HEADERS if headers is None else headers,
        status_code=status,
        message=SECRET,
        operation_responses=[],
    )


def answer(error: Exception, operation: Operation) -> object:
    """The reply for an operation, whichever function is responsible."""
    if operation is Operation.READ:
        return after_read(error)
    if operation is Operation.QUERY:
        return after_query(error)
    return after_write(error, operation)
