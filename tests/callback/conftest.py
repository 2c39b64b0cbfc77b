"""Fixtures of the observers' tests."""

from callback.databases import logs, said

__all__ = ["logs", "said"]
