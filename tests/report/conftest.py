"""Fixtures of the reports' tests."""

from observe.databases import said

__all__ = ["said"]
