"""Fixtures of the tracking tests."""

from observe.databases import logs, said

__all__ = ["logs", "said"]
