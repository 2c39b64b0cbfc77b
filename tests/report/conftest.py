"""Fixtures of the reports' tests."""

from tracking.databases import said

__all__ = ["said"]
