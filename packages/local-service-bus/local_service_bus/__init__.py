"""A local Azure Service Bus for development and tests.

The unmodified `azure-servicebus` client talks to it with `UseDevelopmentEmulator=true`. It locks, settles, counts,
expires and orders as the service does, and misbehaves on request: lost replies, lost locks, throttling.

    topology    which queues, topics and subscriptions there are
    broker      what the service does: synchronous, single-threaded, clock and ids injected
    amqp        the wire: connections, links, `$cbs`, `$management`, on python-qpid-proton
    faults      what is to go wrong, when and how
"""

__version__ = "0.1.0"
