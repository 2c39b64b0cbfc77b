"""Every config composes, its keys are its constructor's, its word is its file three times, its ranges are enforced."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from omegaconf import OmegaConf

from fedcohort import assemble
from fedcohort.errors import OptionError
from yaml_words import CONFIGS, OURS, ROOT, make, node, words

PARTS = [(group, word) for group in OURS for word in words(group)]
FILES = sorted(path.relative_to(CONFIGS) for path in CONFIGS.rglob("*.yaml") if path.parent.parent == CONFIGS)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_config_composes(path: Path) -> None:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = compose("train", overrides=[f"{path.parent}={path.stem}"], return_hydra_config=True)
    made = assemble.composed(cfg, cfg.hydra.runtime.choices, ())
    assemble.check_numbers(made.config)
    assemble.check_aliases(made)
    for group in OURS:
        assert assemble.part(made, group) is not None


@pytest.mark.parametrize(("group", "word"), PARTS)
def test_yaml_keys_are_the_constructors_arguments(group: str, word: str) -> None:
    target = node(group, word)["_target_"]
    signature = inspect.signature(get_class(target))
    assert set(node(group, word)) - {"_target_"} == set(signature.parameters)
    with_default = [p.name for p in signature.parameters.values() if p.default is not inspect.Parameter.empty]
    assert not with_default, "defaults live in yaml, once"


@pytest.mark.parametrize(("group", "word"), PARTS)
def test_a_word_is_its_path_three_times(group: str, word: str) -> None:
    target = node(group, word)["_target_"]
    assert target.rpartition(".")[0] == f"fedcohort.{group}.{word}"
    assert (ROOT / "tests" / group / f"test_{word}.py").exists()


OPTION = re.compile(r"^ *(?P<name>\w+): *(?P<value>.*?) +# (?P<range>[^;]+)")


def _outside(text: str) -> list[Any]:
    """Values that a range comment excludes."""
    if text.startswith(("list of numbers in ", "list of integers in ")):
        low, high = (float(end) for end in text.split(" in ")[1].strip()[1:-1].split(","))
        halves = [[low + 0.5]] if "integers" in text else []
        return ["word", 3, [float("nan")], [low - 1] if low > -float("inf") else [high + 1], *halves]
    if text.startswith(("number in ", "integer in ")):
        null = text.endswith(" or null")
        kind, interval = text.removesuffix(" or null").split(" in ")
        low, high = (float(end) for end in interval[1:-1].split(","))
        values: list[Any] = ["word", float("nan"), True] + ([] if null else [None])
        values += [low - 1, low] if interval[0] == "(" else [low - 1]
        values += [high + 1, high] if interval[-1] == ")" else [high + 1]
        values += [0.5] if kind == "integer" else []
        finite = [v for v in values if not isinstance(v, float) or abs(v) != float("inf")]
        return [int(v) if kind == "integer" and isinstance(v, float) and v == v and v == int(v) else v for v in finite]
    if text.startswith("one of "):
        return ["no-such-word", 3, None]
    if text == "true or false":
        return ["maybe", 3, None]
    if text in ("text", "text or null") or text.startswith("list of"):
        return []
    raise AssertionError(f"a range comment that nobody understands: {text!r}")


def _options() -> list[tuple[str, str, str, Any]]:
    found = []
    for group, word in PARTS:
        for line in (CONFIGS / group / f"{word}.yaml").read_text().splitlines():
            match = OPTION.match(line)
            if match and match["name"] != "_target_":
                values = _outside(match["range"].strip())
                found += [(group, word, match["name"], value) for value in values]
    return found


@pytest.mark.parametrize(("group", "word"), PARTS)
def test_every_option_states_its_range(group: str, word: str) -> None:
    text = (CONFIGS / group / f"{word}.yaml").read_text()
    stated = {match["name"] for line in text.splitlines() if (match := OPTION.match(line))}
    assert set(node(group, word)) - {"_target_"} <= stated


@pytest.mark.parametrize(("group", "word", "option", "value"), _options())
def test_out_of_range_is_refused_by_name(group: str, word: str, option: str, value: Any) -> None:
    made = assemble.Composed({group: {**node(group, word), option: value}}, {group: word}, ())
    with pytest.raises(OptionError, match=rf"\b{option} must be .*got") as caught:
        assemble.part(made, group)
    assert f"{group}." in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=-1", "seed must be an integer in"),
        ("cohort=0", "cohort must be an integer in"),
        ("cohort=60", "cohort=60 exceeds clients=50"),
        ("rounds=0", "rounds must be"),
        ("clients=0", "clients must be"),
        ("split.client_val=0.9", "split.client_val must be"),
        ("split.server_val=0", "split.server_val must be"),
        ("eval.every=0", "eval.every must be"),
        ("engine.slices=0", "engine.slices must be"),
        ("engine.bn_var=none", "engine.bn_var must be one of"),
        ("checkpoint.every=0", "checkpoint.every must be"),
        ("trainer.threads=0", "trainer.threads must be"),
        ("resume=maybe", "resume must be true or false"),
    ],
)
def test_options_that_belong_to_no_part(override: str, message: str) -> None:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = compose("train", overrides=[override])
    with pytest.raises(Exception, match=re.escape(message)):
        assemble.check_numbers(OmegaConf.to_container(cfg, resolve=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        (["agg=fedavgm"], ""),
        (["agg=fedavgm", "server=sgd"], "agg=fedavgm stands for server=momentum, but server=sgd was asked for"),
        (["agg=fedprox"], ""),
        (["agg=fedprox", "regulariser=none"], "agg=fedprox stands for regulariser=prox"),
    ],
)
def test_an_alias_is_never_silently_something_else(overrides: list[str], refused: str) -> None:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = compose("train", overrides=overrides, return_hydra_config=True)
    made = assemble.composed(cfg, cfg.hydra.runtime.choices, tuple(overrides))
    if refused:
        with pytest.raises(Exception, match=re.escape(refused)):
            assemble.check_aliases(made)
        return
    assemble.check_aliases(made)
    assert made.config["agg"]["_target_"] == "fedcohort.agg.fedavg.FedAvg"
    if "agg=fedavgm" in overrides:
        assert made.config["server"]["_target_"] == "fedcohort.server.momentum.Momentum"
    else:
        assert made.config["regulariser"]["mu"] > 0
        assert made.config["deadline"]["partial_work"] is True


def test_an_unknown_option_is_named_with_those_there_are() -> None:
    made = assemble.Composed({"server": {**node("server", "sgd"), "speed": 1}}, {"server": "sgd"}, ())
    with pytest.raises(OptionError, match=r"server=sgd: has no option 'speed'; its options are lr"):
        assemble.part(made, "server")


def test_a_target_that_is_not_there_is_named() -> None:
    made = assemble.Composed({"server": {"_target_": "fedcohort.server.nowhere.X"}}, {"server": "x"}, ())
    with pytest.raises(OptionError, match=r"server=x: _target_ 'fedcohort.server.nowhere.X' can't be used"):
        assemble.part(made, "server")


def test_every_part_can_be_made() -> None:
    for group, word in PARTS:
        assert make(group, word) is not None
