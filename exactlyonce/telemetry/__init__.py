"""Telemetry: observers of the protocols, which report spans and metrics to OpenTelemetry, and the words of steps for people.

Protocols do not know it.
"""
