"""Fixtures of the start's tests."""

from tracking.databases import captured_log

__all__ = ["captured_log"]
