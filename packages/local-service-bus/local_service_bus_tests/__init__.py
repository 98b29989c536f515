"""Tests of the local Service Bus; clients in JavaScript have a folder."""
