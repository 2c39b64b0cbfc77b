"""The file of every method cites its paper and names each departure from it, or says that it has no paper."""

import importlib

import pytest

from config_options import list_options, load_options
from failure_hints import failure_hint

GROUPS = (
    *("selector", "agg", "objective", "regulariser", "server", "client"),
    *("codec", "samples", "deadline", "device", "availability", "attack"),
)
NO_PAPER = "Not from a paper"
METHODS = [f"{group}={choice}" for group in GROUPS for choice in list_options(group)]


def docstring(method: str) -> str:
    return importlib.import_module(load_options(*method.split("="))["_target_"].rpartition(".")[0]).__doc__ or ""


@pytest.mark.parametrize("method", METHODS)
@failure_hint('Add a paragraph "Departures from the paper:", one line each, or "none"; or state "Not from a paper".')
def test_departures_are_named(method: str) -> None:
    text = docstring(method)
    assert "Departures from the paper" in text or NO_PAPER in text


@pytest.mark.parametrize("method", [name for name in METHODS if name.split("=")[0] in ("selector", "agg")])
@failure_hint('Cite the paper with title, venue, year and arXiv number or DOI; or state "Not from a paper".')
def test_papers_are_cited(method: str) -> None:
    text = docstring(method)
    assert "arXiv" in text or "DOI" in text or NO_PAPER in text
