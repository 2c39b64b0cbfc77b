"""Numeric cases of the statistics: `cases.json` was computed by an independent reference."""

import json
from pathlib import Path
from typing import Any

import pytest

CASES = {load_case["id"]: load_case for load_case in json.loads(Path(__file__).with_name("cases.json").read_text())}


def load_case(number: int) -> tuple[dict[str, Any], Any]:
    """Return the input and the expected value of a case."""
    return CASES[number]["input"], CASES[number]["expected"]


def approx_nested(expected: Any) -> Any:
    """Return what equals `expected` to the tolerance of the cases."""
    return pytest.approx(expected, abs=1e-4, nan_ok=True)
