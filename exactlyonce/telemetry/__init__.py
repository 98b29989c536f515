"""Telemetry: the observer that reports spans and metrics to OpenTelemetry. Protocols do not know it."""
