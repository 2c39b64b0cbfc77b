"""A run of the vectorised engine that is resumed; `test_engines_agree.py` compares its updates with other engines'."""

from pathlib import Path

from run_harness import run_training, same_bits


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    overrides = ("engine=vectorised", "model=mlp", "agg=scaffold")
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=4")
    run_training(tmp_path / "parts", *overrides, "rounds=2")
    assert same_bits(uninterrupted, run_training(tmp_path / "parts", *overrides, "rounds=4", "resume=true"))
