"""Signals that clients can be asked for or that the server measures: one module per signal."""
