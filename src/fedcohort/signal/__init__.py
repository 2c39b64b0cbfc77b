"""Signals, which clients report or the server measures: one module per signal."""
