"""AMQP 1.0 as the clients of the service speak it, on python-qpid-proton."""
