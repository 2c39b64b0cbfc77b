"""Signals that the server derives from the updates."""

from types import SimpleNamespace
from typing import Any

from agg_harness import collect_updates, make_update
from config_options import make_component
from fedcohort.round.round_signals import compute_update_signals


def test_derived_signals_are_computed_from_the_updates() -> None:
    """Inner products of (1, 0) and (1, 2), where the matrix is kept and a component reads them."""
    rows = [make_update(0, [1.0, 0.0]), make_update(1, [1.0, 2.0])]
    stacked_updates, without_matrix = (
        collect_updates(make_component("agg", "fedavg"), rows, keep_matrix=stacked) for stacked in (True, False)
    )
    parts: Any = SimpleNamespace(needed_signals=lambda plain: set() if plain else {"update_gram", "steps"})
    lab: Any = None
    signals = compute_update_signals(parts, lab, stacked_updates, is_fedavg=False)
    assert {name: values.tolist() for name, values in signals.items()} == {"update_gram": [[1, 1], [1, 5]]}
    assert (
        compute_update_signals(parts, lab, stacked_updates, is_fedavg=True)
        == compute_update_signals(parts, lab, without_matrix, is_fedavg=False)
        == {}
    )
