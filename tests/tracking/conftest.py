"""Fixtures of the tracking tests."""

from tracking.databases import logs, said

__all__ = ["logs", "said"]
