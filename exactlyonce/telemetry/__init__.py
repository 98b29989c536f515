"""Telemetry: observers that report spans and metrics to OpenTelemetry, and the words of steps for people.

Protocols do not know telemetry.
"""
