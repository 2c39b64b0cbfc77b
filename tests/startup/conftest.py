"""Fixtures of the start's tests."""

from tracking.databases import said

__all__ = ["said"]
