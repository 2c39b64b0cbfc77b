"""What `make new-selector` writes is a selector."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from fedcohort.new_selector import files, main
from selector_harness import context


def write(root: Path, name: str) -> None:
    for path in files(name):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    main(name, root)


def test_it_runs_as_it_stands(tmp_path: Path) -> None:
    write(tmp_path, "my_method")
    spec = importlib.util.spec_from_file_location("my_method", tmp_path / "src/fedcohort/selector/my_method.py")
    assert spec is not None
    module = sys.modules["my_method"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    node = OmegaConf.load(tmp_path / "configs/selector/my_method.yaml")
    assert node["_target_"] == "fedcohort.selector.my_method.MyMethod"
    selector = module.MyMethod(power=node["power"])
    ctx = context(n_clients=3, cohort=2, signals={"n_train": np.array([10, 30, 20])})
    selection, state = selector.select(selector.init(None), ctx, {})
    assert selection.clients.tolist() == [1, 2]
    assert not len(state.rests.clients)
    assert "my_method" in (tmp_path / "tests/selector/test_my_method.py").read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path, "mine")
    with pytest.raises(SystemExit, match="is there already"):
        main("mine", tmp_path)


@pytest.mark.parametrize("name", ["My", "a-b", "class", "1st"])
def test_names_that_are_no_modules(name: str) -> None:
    with pytest.raises(SystemExit, match="NAME must be"):
        files(name)
