"""Tests of the function host."""
