"""A local Cosmos DB (NoSQL API) for development and tests.

The unmodified Azure SDK talks to it over plain http. It is atomic where the service is atomic, checks every condition
the service checks, and misbehaves on request: lost replies, lagging replicas, throttling, delayed writes.

    protocol    HTTP: server, parsing, authorization, faults on the wire, admin endpoints
    semantics   what the service does: synchronous, single-threaded, clock and chance injected
    query       the query language: grammar, tree, evaluator
    storage     versions of items
"""

__version__ = "0.1.0"
