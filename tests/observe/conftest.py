"""Fixtures of the observers' tests."""

from observe.databases import logs, said

__all__ = ["logs", "said"]
