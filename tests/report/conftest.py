"""Fixtures of the reports' tests."""

from tracking.databases import captured_log

__all__ = ["captured_log"]
