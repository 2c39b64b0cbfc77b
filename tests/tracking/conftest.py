"""Fixtures of the tracking tests."""

from tracking.databases import captured_log, logs

__all__ = ["captured_log", "logs"]
