"""A class in a config is checked against its contract before it is called; run folders name our classes only."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fedcohort.command import line
from fedcohort.errors import OptionError
from fedcohort.startup import components, compose
from fedcohort.startup.observers import make_observers
from run_harness import compose_overrides, run_training

PROGRAM = "subprocess.Popen"
CHAIN = "fedcohort.record.provenance.subprocess.Popen"  # begins with our name, and is none of ours


def make_touch_options(file: Path) -> dict[str, Any]:
    """Options with which `subprocess.Popen` makes `file`."""
    return {"_target_": PROGRAM, "args": ["touch", str(file)]}


@pytest.mark.parametrize("target", [PROGRAM, "webbrowser.subprocess.Popen", CHAIN])
@pytest.mark.parametrize("place", ["callback.x", "selector", "objective.base", "logger"])
def test_a_target_that_is_no_component_is_rejected_before_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, target: str
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(subprocess.Popen, "__init__", lambda self, *args, **options: calls.append(options))
    overrides = {"callback.x": (), "objective.base": ("objective=propfair",)}.get(place, ())
    composition = compose_overrides("logger=none", *overrides, f"paths.logs={tmp_path}")
    config: dict[str, Any] = json.loads(json.dumps(composition.config))
    node = {"_target_": target, "args": ["touch", "x"]}
    if place == "callback.x":
        config["callback"]["x"] = node
    elif place == "objective.base":
        config["objective"]["base"] = node
    else:
        config[place] = node
    composed = compose.Composition(config, composition.choices, ())
    make: Callable[[], object] = partial(components.make_component, composed, place.partition(".")[0])
    if place == "callback.x":
        make = partial(make_observers, composed)
    with pytest.raises(OptionError, match=rf"{place}._target_ must be a"):
        make()
    assert not calls


def test_a_network_as_a_model_gets_the_right_syntax() -> None:
    node = {"_target_": "user_networks.Dense", "width": 3}
    with pytest.raises(OptionError, match=r"type model=module model.path=user_networks.Dense$"):
        components.build_component(node, "model", "model=mlp")


def test_a_component_inside_another_is_checked_before_either_is_made() -> None:
    base = {"_target_": "fedcohort.label_noise.none.NoNoise"}
    node = {"_target_": "fedcohort.objective.propfair.PropFair", "base": base}
    with pytest.raises(OptionError, match=r"objective.base._target_ must be a class that inherits fedcohort.objective"):
        components.build_component(node, "objective", "objective=propfair")


@pytest.mark.parametrize(
    "target", [PROGRAM, "antigravity.x", "fedcohort.__main__.main", "fedcohort:x", "fedcohort.rng.new_generator", 3]
)
def test_a_received_config_may_only_name_components(target: object) -> None:
    with pytest.raises(OptionError, match=r"selector._target_ must be a class") as caught:
        components.import_class(target, "selector", "selector=x", is_from_run=True)
    assert "\n" not in str(caught.value)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("target", ["fedcohort.selector.nowhere.X", CHAIN])
def test_a_missing_class_of_a_received_config_is_named(target: str) -> None:
    with pytest.raises(OptionError, match=f"selector=x: _target_ '{target}' can't be used: No module named"):
        components.import_class(target, "selector", "selector=x", is_from_run=True)


@pytest.mark.usefixtures("rendered_figures")
def test_figures_of_a_received_folder_follow_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_training(
        tmp_path / "logs", "callback=default", "callback.figures=null", "callback.progress=null"
    ).folder
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine").write_text("mine")
    (folder / "figures").symlink_to(tmp_path / "elsewhere")
    assert line.main(["figures", str(folder)]) == 2
    assert "is a link" in capsys.readouterr().err
    (folder / "figures").unlink()
    (folder / "figures").mkdir()
    for name in ("report.html.partial", "figures/.accuracy.png.draft", "figures/accuracy.png"):
        (folder / name).symlink_to(tmp_path / "mine")
    assert line.main(["figures", str(folder)]) == 0
    assert (tmp_path / "mine").read_text() == "mine"
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("group", ["selector", "deadline"])
def test_replaying_a_run_folder_runs_no_program(tmp_path: Path, group: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_training(
        tmp_path / "logs", "callback=default", "callback.figures=null", "callback.progress=null"
    ).folder
    (folder / "manifest.json").unlink()
    card = json.loads((folder / "info.json").read_text())
    del card["digest"]  # a changed folder may lack digests, as those of older versions
    card["info"]["config"][group] = make_touch_options(tmp_path / "touched")
    (folder / "info.json").write_text(json.dumps(card))
    assert line.main(["replay", str(folder)]) == 2
    assert f"{group}._target_ must be a class of fedcohort, because the config comes from a run folder" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "touched").exists()
