"""Telemetry: the observer that reports to OpenTelemetry as spans and metrics. Protocols know nothing of it."""
