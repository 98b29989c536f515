"""Tests of yieldcheck."""
