"""What the service does with messages: no I/O, no AMQP, no clock of its own."""
