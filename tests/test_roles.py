"""Each option has one row, which states its effect, whether it identifies a run, and where it is shown."""

from pathlib import Path

import pytest

from case_loop import for_all
from comparison_harness import make_run
from config_options import CONFIGS, METHOD_GROUPS, load_yaml, to_dict
from fedcohort.record import folder
from fedcohort.results.matching.tracked_run import result_options
from fedcohort.roles import (
    COMPONENT_OPTION_ROLE,
    NEUTRAL_CHOICE_BY_LATER_GROUP,
    NEUTRAL_VALUE_BY_LATER_OPTION,
    ROLE_BY_OPTION,
    OptionEffect,
    RunIdentity,
    find_role,
    flatten_config,
    role_keys_of_option,
    select_options,
)
from fedcohort.startup import options
from run_harness import compose_overrides

GROUPS = sorted(path.name for path in CONFIGS.iterdir() if path.is_dir() and path.name != "hydra")
PRESET_GROUPS = {"experiment", "heterogeneity"}  # they stand for choices of other groups


def names(path: Path) -> list[str]:
    """The options in a yaml file, dotted."""
    return [name for name, _ in flatten_config(to_dict(load_yaml(path), resolve=False))]


def list_train_options() -> list[str]:
    """The options of configs/train.yaml."""
    return [name for name in names(CONFIGS / "train.yaml") if not name.startswith(("defaults", "hydra."))]


def list_group_options() -> list[str]:
    """Return the dotted names of the options of every choice of every group."""
    results: dict[str, None] = {}
    for path in (path for group in GROUPS for path in (CONFIGS / group).glob("*.yaml")):
        group = path.parent.name
        if group not in PRESET_GROUPS and "# @package _global_" not in path.read_text():
            results |= dict.fromkeys(f"{group}.{name}" for name in names(path) if not name.startswith("defaults"))
    return list(results)


@for_all("option", list_train_options())
def test_an_option_without_a_group_has_one_row(option: str) -> None:
    assert len(role_keys_of_option(option)) == 1


def test_an_option_of_a_group_has_one_row_or_belongs_to_a_component() -> None:
    rows = {option: role_keys_of_option(option) for option in [*GROUPS, *list_group_options()]}
    assert {option: result for option, result in rows.items() if len(result) > 1} == {}
    assert all(find_role(option) is COMPONENT_OPTION_ROLE for option in rows if option.split(".")[0] in METHOD_GROUPS)


def test_every_row_describes_an_existing_option() -> None:
    known_names = [*list_train_options(), *list_group_options(), *GROUPS]
    assert [
        row for row in ROLE_BY_OPTION if not any(row in role_keys_of_option(option) for option in known_names)
    ] == []
    assert {option for option in options.OPTION_CHECKS if len(role_keys_of_option(option)) != 1} <= {
        option for option in options.OPTION_CHECKS if option.startswith("engine.")
    }


def test_options_that_change_results_are_in_the_identity_or_extend_it() -> None:
    for name, role in {**ROLE_BY_OPTION, "selector": COMPONENT_OPTION_ROLE}.items():
        if role.effect is OptionEffect.RESULTS:
            assert role.identity in (RunIdentity.OTHER_RUN_BY_HASH, RunIdentity.OTHER_RUN_BY_SEED) or name in (
                "rounds",
                "until",
            )
        else:
            assert role.identity is (
                RunIdentity.SAME_RUN_WITH_FORCE if role.effect is OptionEffect.LAST_BITS else RunIdentity.SAME_RUN
            )


@pytest.mark.parametrize(
    ("overrides", "is_same"),
    [
        ("checkpoint.every=3 checkpoint.every_s=5 client_store.limit_gb=0 engine.slices=2 engine.force=true", True),
        ("rounds=7 seed=3 name=x resume=force trainer=cpu_all logger=none callback=none paths.logs=other", True),
        ("callback.figures=null trainer.threads=2 logger.every_s=9", True),
        ("client.lr=0.2", False),
        ("engine.precision=bf16", False),
        ("engine=sequential", False),
        ("data_seed=1", False),
        ("eval.every=2", False),
        ("update_limit=5", False),
    ],
)
def test_the_hash_covers_exactly_the_options_that_change_results(overrides: str, is_same: bool) -> None:
    assert (
        folder.config_hash(compose_overrides().config)
        == folder.config_hash(compose_overrides(*overrides.split()).config)
    ) == is_same


@pytest.mark.parametrize("group", NEUTRAL_CHOICE_BY_LATER_GROUP)
def test_a_new_group_does_not_change_the_hash_of_older_runs(group: str) -> None:
    """With the part that does nothing the hash is that of a config without the group; with another it isn't."""
    now = compose_overrides().config
    before = {key: value for key, value in now.items() if key != group}
    assert select_options(now, RunIdentity.OTHER_RUN_BY_HASH).keys() >= {"client.clip", "selector._target_"}
    assert folder.config_hash(now) == folder.config_hash(before)
    assert folder.config_hash({**now, group: {"_target_": "another"}}) != folder.config_hash(before)


@for_all("option", NEUTRAL_VALUE_BY_LATER_OPTION)
def test_a_new_option_does_not_change_the_hash_of_older_runs(option: str) -> None:
    """With the value that does nothing the hash is that of a config without it; with another it isn't."""
    group, _, name = option.partition(".")
    override = {
        "dataset": "dataset=folder",
        "deadline": "deadline=fixed",
        "eval": "seed=0",
        "device": "seed=0",
        "availability": "availability=diurnal",
        "selector": "selector=pisces",
    }[group]
    special = {"dataset.columns": "dataset=mnist", "deadline.wait_for_stale": "deadline=buffered"}
    now = compose_overrides(special.get(option, override)).config
    before = {**now, group: {key: value for key, value in now[group].items() if key != name}}
    second = {**now, group: {**now[group], name: {"image": "picture"}}}
    assert name in now[group]
    assert folder.config_hash(now) == folder.config_hash(before) != folder.config_hash(second)


def test_options_without_effect_do_not_distinguish_runs() -> None:
    second = {"checkpoint.every": "9", "engine.slices": "4", "trainer.threads": "2", "trainer": "cpu_all"}
    assert result_options(make_run("random", 0, 0.5)) == result_options(make_run("random", 1, 0.5, options=second))
    assert result_options(make_run("random", 0, 0.5)) != result_options(
        make_run("random", 0, 0.5, options={"client.lr": "0.2"})
    )
