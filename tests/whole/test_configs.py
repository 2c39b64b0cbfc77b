"""Every config composes, has its constructor's options, shares its name with module and test, and enforces ranges."""

import copy
import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import get_class
from omegaconf import OmegaConf

from case_loop import for_all
from config_options import (
    CONFIGS,
    METHOD_GROUPS,
    ROOT,
    list_options,
    load_options,
    load_yaml,
    make_component,
    nested_components,
)
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.startup import check, components, compose, options
from fedcohort.startup.load import DATA_GROUPS
from run_harness import compose_by_hydra, compose_overrides

PARTS = [(group, choice) for group in METHOD_GROUPS for choice in list_options(group)]
GROUPS = sorted({path.parent.name for path in CONFIGS.glob("*/*.yaml")})
EXPERIMENTS = sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml"))


def list_overrides(group: str) -> list[str]:
    """Return `group=option` for all yaml files; aliases come last, without the groups that they set."""
    names = sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))
    overrides = [f"{group}={choice}" for choice in sorted(names, key=lambda choice: (group, choice) not in PARTS)]
    last = max(len(list(CONFIGS.glob(f"{data_group}/*.yaml"))) for data_group in DATA_GROUPS)
    return [""] * last + overrides if group == "heterogeneity" else overrides


COMPOSED_TOGETHER = [  # compose one option of each group together: Hydra takes equally long for one file and for all
    tuple(filter(None, row))
    for row in zip_longest(*(list_overrides(group) for group in GROUPS if group != "experiment"))
]


def test_every_option_is_composed() -> None:
    overrides = {override for row in COMPOSED_TOGETHER for override in row} | {
        f"experiment={name}" for name in EXPERIMENTS
    }
    assert overrides == {f"{path.parent.name}={path.stem}" for path in CONFIGS.glob("*/*.yaml")}


@pytest.mark.parametrize(
    "overrides", [*((f"experiment={choice}",) for choice in EXPERIMENTS), *COMPOSED_TOGETHER], ids=" ".join
)
def test_every_config_composes(overrides: tuple[str, ...]) -> None:
    needed = ("model.path=user_networks.Dense",) if "model=module" in overrides else ()
    cfg = compose_by_hydra((*overrides, *needed))
    composed = compose.compose_config(cfg, cfg.hydra.runtime.choices, ())
    options.check_all_options(composed.config)
    check.check_aliases(composed)
    for group in METHOD_GROUPS:
        assert components.make_component(composed, group) is not None
    if overrides[0].startswith("experiment="):
        check.check_before_data(composed)  # presets name components that can be combined


@for_all("group, choice", PARTS)
def test_yaml_keys_are_the_constructors_parameters(group: str, choice: str) -> None:
    target = load_options(group, choice)["_target_"]
    signature = inspect.signature(get_class(target))
    assert set(load_options(group, choice)) - {"_target_"} == set(signature.parameters)
    defaults = [p.name for p in signature.parameters.values() if p.default is not inspect.Parameter.empty]
    assert not defaults, "defaults live in yaml, once"


@for_all("group, choice", PARTS)
def test_an_option_has_the_same_name_in_config_source_and_test(group: str, choice: str) -> None:
    target = load_options(group, choice)["_target_"]
    assert target.rpartition(".")[0] == f"fedcohort.{group}.{choice}"
    assert (ROOT / "tests" / group / f"test_{choice}.py").exists()


RANGED = [*PARTS, ("logger", "mlflow")]


def _file(group: str, choice: str) -> Path:
    return CONFIGS / group / f"{choice}.yaml"


OPTION = re.compile(r"^ *(?P<name>\w+): *(?P<value>.*?) +# (?P<range>[^;]+)")


def _list_values_outside(text: str) -> list[Any]:
    """Return values outside the range that a comment states."""
    if text.startswith(("list of numbers in ", "list of integers in ")):
        low, high = (float(end) for end in text.split(" in ")[1].strip()[1:-1].split(","))
        fractions = [[low + 0.5]] if "integers" in text else []
        return ["text", 3, [float("nan")], [low - 1] if low > -float("inf") else [high + 1], *fractions]
    if text.startswith(("number in ", "integer in ")):
        null = text.endswith(" or null")
        kind, interval = text.removesuffix(" or null").removesuffix(" or auto").split(" in ")
        low, high = (float(end) for end in interval[1:-1].split(","))
        values: list[Any] = ["text", float("nan"), True] + ([] if null else [None])
        too_small = low - 1 if low - 1 < low else 2 * low  # -1e30 - 1 is -1e30
        values += [too_small, low] if interval[0] == "(" else [too_small]
        too_large = 2 * abs(high) + 1  # 1e30 + 1 is 1e30
        values += [too_large, high] if interval[-1] == ")" else [too_large]
        values += [0.5] if kind == "integer" else []
        finite = [v for v in values if not isinstance(v, float) or abs(v) != float("inf")]
        return [int(v) if kind == "integer" and isinstance(v, float) and v == v and v == int(v) else v for v in finite]
    if text.startswith("one of "):
        return ["no-such-choice", 3, *([] if text.endswith(" or null") else [None])]
    if text == "true or false":
        return ["maybe", 3, None]
    if text == "mapping of texts or null":
        return ["text", 3, {}, {"no such name": "a"}, ["image"]]
    if text == "mapping or null":
        return ["text", 3, ["width"]]
    if text == "integer or text or null":
        return [0.5, True, [0]]
    if text in ("text", "text or null") or text.startswith("list of"):
        return []
    raise ValueError(f"an unknown form of a range comment: {text!r}")


def _list_unclear_ranges(path: Path) -> list[str]:
    """Return file:line and text of each range comment that cannot be parsed."""
    misunderstood = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := OPTION.match(line):
            try:
                _list_values_outside(match["range"].strip())
            except ValueError as error:
                misunderstood.append(f"{path.parent.name}/{path.name}:{number}: {error}")
    return misunderstood


def _list_ranges(path: Path) -> dict[str, str]:
    """Return the range comment of each option of a yaml file by its dotted path."""
    ranges, section = {}, ""
    for line in path.read_text().splitlines():
        if heading := re.match(r"(\w+):\s*$", line):
            section = heading[1]
        if match := OPTION.match(line):
            ranges[f"{section}.{match['name']}" if line.startswith(" ") else match["name"]] = match["range"].strip()
    return ranges


def _parts_inside(group: str, choice: str) -> set[str]:
    return set(nested_components(group, choice)) if group in METHOD_GROUPS else set()


def test_every_range_comment_is_understood(tmp_path: Path) -> None:
    assert [line for group, choice in RANGED for line in _list_unclear_ranges(_file(group, choice))] == []
    (tmp_path / "mine.yaml").write_text(
        "_target_: x\nlr: 0.1   # number in (0, 1); fine\npower: 2    # between 1 and 3; not\n"
    )
    (line,) = _list_unclear_ranges(tmp_path / "mine.yaml")
    assert line.endswith("/mine.yaml:3: an unknown form of a range comment: 'between 1 and 3'")


@for_all("group, choice", RANGED)
def test_every_option_states_its_range(group: str, choice: str) -> None:
    names_with_range = {name.split(".")[-1] for name in _list_ranges(_file(group, choice))}
    assert set(load_options(group, choice)) - {"_target_", *_parts_inside(group, choice)} <= names_with_range


TRAINERS = [f"trainer/{path.stem}.yaml" for path in (CONFIGS / "trainer").glob("*.yaml")]
OTHER_CONFIGS = {"train.yaml": "", "engine/auto.yaml": "engine.", **dict.fromkeys(TRAINERS, "trainer.")}


def test_options_outside_of_the_groups_state_their_ranges() -> None:
    names_with_range = {
        prefix + name for path, prefix in OTHER_CONFIGS.items() for name in _list_ranges(CONFIGS / path)
    }
    assert names_with_range == set(options.OPTION_CHECKS)
    for path in TRAINERS:
        assert set(_list_ranges(CONFIGS / path)) == set(OmegaConf.load(CONFIGS / path))
    for choice in ("sequential", "vectorised", "debug"):
        assert _list_ranges(_file("engine", choice)) == {"kind": _list_ranges(_file("engine", "auto"))["kind"]}
    default = OmegaConf.load(_file("callback", "default"))
    keys = {f"{name!s}.{key}" for name, node in default.items() for key in node if key != "_target_"}
    assert set(_list_ranges(_file("callback", "default"))) == keys


def _refusal(call: Callable[[], object], value: str) -> str:
    """Return the message of a call that must reject `value`."""
    try:
        call()
    except OptionError as error:
        return str(error)
    raise AssertionError(f"{value} is taken")


@cache
def _load_remaining_options() -> dict[str, Any]:
    paths = {"": CONFIGS / "train.yaml", "engine": _file("engine", "auto"), "trainer": _file("trainer", "cpu")}
    plain: dict[str, Any] = {name: OmegaConf.to_container(OmegaConf.load(path)) for name, path in paths.items()}
    return {**plain.pop(""), **plain, "clients": 50}  # its default depends on the data


REMAINING_OPTIONS = {
    (prefix + name, text)
    for path, prefix in OTHER_CONFIGS.items()
    for name, text in _list_ranges(CONFIGS / path).items()
}


@for_all("option, text", sorted(REMAINING_OPTIONS))
def test_a_value_out_of_range_is_rejected_by_name_outside_of_the_groups(option: str, text: str) -> None:
    section, _, last = option.rpartition(".")
    for value in _list_values_outside(text):
        config = copy.deepcopy(_load_remaining_options())
        (config[section] if section else config)[last] = value
        message = _refusal(partial(options.check_all_options, config), f"{option}={value!r}")
        assert re.search(rf"^{re.escape(option)} must be .*got", message), f"{value!r}: {message}"


@for_all("group, choice", RANGED)
def test_a_value_out_of_range_is_rejected_by_name(group: str, choice: str) -> None:
    defaults = load_options(group, choice)
    for name, text in _list_ranges(_file(group, choice)).items():
        option = name.split(".")[-1]
        for value in _list_values_outside(text):
            composed = compose.Composition({group: {**defaults, option: value}}, {group: choice}, ())
            message = _refusal(partial(components.make_component, composed, group), f"{option}={value!r}")
            assert re.search(rf"\b{option} must be .*got", message), f"{option}={value!r}: {message}"
            assert f"{group}." in message


def test_a_cohort_larger_than_the_population_is_rejected() -> None:
    with pytest.raises(IncompatibleConfig, match="cohort=60 exceeds clients=50"):
        options.check_all_options(compose_overrides("cohort=60").config)


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        (["agg=fedavgm"], ""),
        (["agg=fedavgm", "server=sgd"], "agg=fedavgm stands for server=momentum, but server=sgd was requested"),
        (["agg=fedprox"], ""),
        (["agg=fedprox", "regulariser=none"], "agg=fedprox stands for regulariser=prox"),
        (["agg=fedprox", "deadline=fixed"], ""),
        (["agg=fedprox", "deadline.partial_work=false"], "agg=fedprox stands for deadline.partial_work=true, but"),
    ],
)
def test_a_changed_alias_is_not_accepted_silently(overrides: list[str], refused: str) -> None:
    composed = compose_overrides(*overrides)
    if refused:
        with pytest.raises(Exception, match=re.escape(refused)):
            check.check_aliases(composed)
        return
    check.check_aliases(composed)
    assert composed.config["agg"]["_target_"] == "fedcohort.agg.fedavg.FedAvg"
    if "agg=fedavgm" in overrides:
        assert composed.config["server"]["_target_"] == "fedcohort.server.momentum.Momentum"
    else:
        assert composed.config["regulariser"]["mu"] > 0
        assert composed.config["deadline"]["partial_work"] is True


def test_an_unknown_option_is_reported_with_the_existing_ones() -> None:
    composed = compose.Composition({"server": {**load_options("server", "sgd"), "speed": 1}}, {"server": "sgd"}, ())
    with pytest.raises(OptionError, match=r"server=sgd: has no option 'speed'; its only option is lr"):
        components.make_component(composed, "server")


def test_a_missing_target_is_named() -> None:
    composed = compose.Composition({"server": {"_target_": "fedcohort.server.nowhere.X"}}, {"server": "x"}, ())
    with pytest.raises(OptionError, match=r"server=x: _target_ 'fedcohort.server.nowhere.X' can't be used"):
        components.make_component(composed, "server")


def test_every_component_can_be_constructed() -> None:
    for group, choice in PARTS:
        assert make_component(group, choice) is not None


@for_all("choice", EXPERIMENTS)
def test_an_experiment_changes_every_value_that_it_states(choice: str) -> None:
    """Include the options of train.yaml, which must be composed before the experiment."""
    composed = compose_by_hydra((f"experiment={choice}",))
    cfg = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    experiment = load_yaml(CONFIGS / "experiment" / f"{choice}.yaml")
    experiment.pop("defaults", None)
    assert OmegaConf.merge(cfg, experiment) == cfg
