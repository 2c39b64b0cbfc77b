"""configs/callback and configs/logger: every key is an argument, every option states its range."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

from config_options import CONFIGS

OPTION = re.compile(
    r"^ *\w+: *\S+ +# ((integer|number) in [\[(]\d, inf\)|text( or null)?|true or false|a list of [\w, ]+);"
)


def nodes() -> list[tuple[str, dict[str, Any]]]:
    root = OmegaConf.create({"paths": {"logs": "/a/logs"}})
    root.callback = OmegaConf.load(CONFIGS / "callback" / "default.yaml")
    root.logger = OmegaConf.load(CONFIGS / "logger" / "mlflow.yaml")
    plain: Any = OmegaConf.to_container(root, resolve=True)
    return [*plain["callback"].items(), ("mlflow", plain["logger"])]


@pytest.mark.parametrize(("name", "node"), nodes())
def test_keys_are_arguments_without_defaults(name: str, node: dict[str, Any]) -> None:
    signature = inspect.signature(get_class(node["_target_"]))
    assert set(node) - {"_target_"} == set(signature.parameters)
    assert all(parameter.default is inspect.Parameter.empty for parameter in signature.parameters.values())
    assert instantiate(node, _convert_="all") is not None


@pytest.mark.parametrize("path", ["callback/default.yaml", "logger/mlflow.yaml"])
def test_every_option_states_its_range(path: str) -> None:
    text = (CONFIGS / path).read_text()
    options = [line for line in text.splitlines() if ":" in line.split("#")[0] and not line.rstrip().endswith(":")]
    for line in options:
        assert "_target_" in line or OPTION.match(line), line


def test_the_journal_comes_first() -> None:
    assert next(iter(nodes()))[0] == "journal"


def test_logger_none_has_no_observers() -> None:
    assert not OmegaConf.load(Path(CONFIGS / "logger" / "none.yaml"))
