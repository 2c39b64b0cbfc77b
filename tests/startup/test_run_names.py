"""Names of runs: an experiment has another name than a run with its selector."""

from pathlib import Path

import pytest

from run_harness import compose_overrides, run_training


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (("selector=flash",), "flash-fedavg-digits-"),
        (("experiment=flash",), "exp_flash-fedavg-digits-"),
        (("experiment=flash", "name=mine"), "mine-"),
    ],
)
def test_the_name_of_a_run_lists_its_choices(tmp_path: Path, overrides: tuple[str, ...], name: str) -> None:
    run = run_training(tmp_path, *overrides, "rounds=1")
    assert run.folder.name.startswith(name)
    assert run.info.choices.get("experiment") == ("flash" if "experiment=flash" in overrides else None)


def test_a_preset_is_one_choice() -> None:
    """The choices that an alias sets are in their groups already; a nested component has a dotted path."""
    choices = compose_overrides("heterogeneity=noniid30", "objective=propfair").choices
    assert choices["heterogeneity"] == "noniid30"
    assert [name for name in choices if "." in name] == ["objective.base"]
