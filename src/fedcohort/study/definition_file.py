"""Read a study's definition from `studies/<name>/study.yaml`.

    title, question   texts
    baseline          the method to which differences are taken: a selector, or `name: [overrides]`
    selectors         methods: `flash`, or `flash_wide: [selector=flash, selector.gamma=2]`
    cells             settings by name. Each has `words`, its overrides.
                      Optional are label, axis, bounds, target, rows (its methods), family and oracle.
                      They are described in `definition.Setting`.
    seeds             list of seeds

`defaults.yaml` describes the other options.

Overrides of a method replace those of its setting, and these replace the common ones. A bound is run with the
overrides of the baseline, and its own overrides replace those of the setting.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import lower_is_better
from fedcohort.results.run import RESULT_KINDS
from fedcohort.results.target import LEVEL, Target
from fedcohort.startup.compose import read_yaml
from fedcohort.study import checks
from fedcohort.study.definition import (
    BASELINE,
    METHOD,
    ORACLE,
    REFERENCE,
    STUDY_FILE,
    Overrides,
    SameCost,
    Setting,
    Study,
    option_name,
)
from fedcohort.study.same_cost import read_same_cost
from fedcohort.study.search_space import load_tuned, read_search_space

REQUIRED = ("title", "question", "baseline", "selectors", "cells", "seeds")
DEFAULTS = read_yaml(Path(__file__).with_name("defaults.yaml"))  # of the other options
SETTING_OPTIONS = ("label", "axis", "words", "bounds", "target", "rows", "family", "oracle")
ReadTarget = Callable[[str, object], Target | None]
METHOD_LIST = "a list of selectors, or of `name: [overrides]`"
CLIENTS_EVERY = "eval.clients_every="  # the rounds that evaluate all clients


def load(folder: Path) -> Study:
    """Read `study.yaml` in `folder`. Raises `OptionError` that names the file and the option."""
    path = folder / STUDY_FILE
    if not path.is_file():
        names = ", ".join(sorted(file.parent.name for file in folder.parent.glob(f"*/{STUDY_FILE}")))
        raise OptionError(f"there is no study {folder.name!r}; there are {names or 'none'} in {folder.parent}")
    with checks.name_file_in_errors(path, REQUIRED):
        return _read(folder, read_yaml(path))


def _read(folder: Path, options: Mapping[str, Any]) -> Study:
    checks.check_option_names("", options, (*REQUIRED, *DEFAULTS), REQUIRED)
    node = {**DEFAULTS, **options}
    for key in ("title", "question", "metric"):
        ranges.text(key, node[key])
    ranges.texts("notes", node["notes"])
    ranges.choice("result", node["result"], *RESULT_KINDS)
    ranges.integer("horizon", node["horizon"], "[1, inf)", allow_null=True)
    common_overrides = checks.read_overrides("common", node["common"])
    _check_metric(node["metric"], common_overrides)
    overrides, roles = _read_methods(node)
    settings, seeds = _read_settings(node), checks.read_seeds("seeds", node["seeds"])
    tuned = load_tuned(folder)
    for name, result in tuned.items():
        tuned_overrides = overrides.get(result.row, (f"selector={result.row}",))
        overrides[name], roles[name] = (*tuned_overrides, *result.words), METHOD
    few = checks.read_few(node["few"], [method for method in overrides if roles[method] != BASELINE], len(seeds))
    same_cost = _read_same_cost(node, overrides, settings)
    overrides |= {name: reference.overrides for name, reference in same_cost.items()}
    roles |= dict.fromkeys(same_cost, REFERENCE)
    non_baseline = [method for method in overrides if roles[method] != BASELINE]
    _check_methods(settings, non_baseline, [method for method in non_baseline if roles[method] == ORACLE])
    _check_effects(settings, overrides.values())
    return Study(
        folder,
        common=common_overrides,
        baseline=next(iter(overrides)),
        overrides=overrides,
        roles=roles,
        settings=settings,
        seeds=seeds,
        rules=checks.read_rules(node["win"]),
        search_space=None if node["tune"] is None else read_search_space(node["tune"], settings, seeds),
        tuned=tuned,
        few=few,
        same_cost=same_cost,
        variants=checks.read_variants(node["variants"], [method for method in non_baseline if roles[method] == METHOD]),
        **{key: node[key] for key in ("title", "question", "metric", "result", "horizon")},
        notes=tuple(node["notes"]),
    )


def _check_metric(metric: str, common_overrides: Overrides) -> None:
    if lower_is_better(metric):
        raise ranges.range_error("metric", "a metric whose larger values are better", metric)
    if metric.startswith("clients/") and not any(override.startswith(CLIENTS_EVERY) for override in common_overrides):
        raise OptionError(
            f"metric={metric} is measured in no round, as {CLIENTS_EVERY}0 in studies: add {CLIENTS_EVERY}1 to common"
        )


def _check_methods(settings: Mapping[str, Setting], methods: Sequence[str], oracles: Sequence[str]) -> None:
    for name, setting in settings.items():
        if setting.methods is not None:
            ranges.words(f"cells.{name}.rows", setting.methods, *methods)
        if setting.oracle is not None:
            ranges.choice(f"cells.{name}.oracle", setting.oracle, *oracles)


def _read_same_cost(
    node: Mapping[str, Any], overrides: Mapping[str, Overrides], settings: Mapping[str, Setting]
) -> dict[str, SameCost]:
    """Return the references of equal cost by name; overrides: of the other methods, the baseline first."""
    same_cost, horizon = read_same_cost(node["same_cost"], overrides, next(iter(overrides))), node["horizon"]
    if same_cost and horizon is not None:
        raise OptionError(
            f"horizon={horizon} ignores rounds that runs of same_cost may have: leave out horizon or same_cost"
        )
    for name, setting in settings.items():
        for reference, method in ((reference, item.method) for reference, item in same_cost.items()):
            if setting.methods is not None and reference in setting.methods and method not in setting.methods:
                raise OptionError(f"cells.{name}.rows: {reference} repeats the cost of {method}: add {method}")
    return same_cost


def _check_effects(settings: Mapping[str, Setting], overrides_by_method: Iterable[Overrides]) -> None:
    """Check that each override of a setting has an effect, on one method at least."""
    replaced = set.intersection(*({option_name(text) for text in overrides} for overrides in overrides_by_method))
    for name, setting in settings.items():
        for override in setting.overrides:
            if option_name(override) in replaced:
                raise OptionError(f"cells.{name}.words: {override} has no effect on any method: leave it out")


def _read_methods(node: Mapping[str, Any]) -> tuple[dict[str, Overrides], dict[str, str]]:
    """Return the overrides and the role of each method; the baseline is the first."""
    name, baseline_overrides = _read_method("baseline", node["baseline"], "a selector, or `name: [overrides]`")
    overrides, roles = {name: baseline_overrides}, {name: BASELINE}
    for key, role in (("selectors", METHOD), ("yardsticks", ORACLE), ("beside", REFERENCE)):
        methods = node[key]
        if not isinstance(methods, Sequence) or isinstance(methods, str):
            raise ranges.range_error(key, METHOD_LIST, methods)
        for method in methods:
            name, method_overrides = _read_method(key, method, METHOD_LIST)
            if name in overrides:
                raise OptionError(f"{key}: {name} is listed twice")
            overrides[name], roles[name] = method_overrides, role
    return overrides, roles


def _read_method(key: str, value: object, allowed_text: str) -> tuple[str, Overrides]:
    if isinstance(value, str) and value:
        value = {value: [f"selector={value}"]}
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ranges.range_error(key, allowed_text, value)
    ((name, overrides),) = checks.read_named_mapping(key, value).items()
    return name, checks.read_overrides(f"{key}.{name}", overrides)


def _read_settings(node: Mapping[str, Any]) -> dict[str, Setting]:
    baseline_target = Target(level=LEVEL if node["level"] is None else node["level"], crossing=node["crossing"])
    read_target = partial(checks.read_target, metric=node["metric"], baseline_target=baseline_target)
    target, setting_nodes = read_target("target", node["target"]), checks.read_named_mapping("cells", node["cells"])
    settings = {name: _read_setting(name, value, target, read_target) for name, value in setting_nodes.items()}
    if not settings:
        raise ranges.range_error("cells", "one cell or more", setting_nodes)
    if node["level"] is not None and not any(setting.target == baseline_target for setting in settings.values()):
        raise OptionError(f"level={node['level']} has no effect without target: baseline. Set it, or leave level out")
    labels = Counter(setting.label for setting in settings.values())
    for name, setting in settings.items():
        if labels[setting.label] > 1:
            raise ranges.range_error(f"cells.{name}.label", "a label that differs from all others", setting.label)
    return settings


def _read_setting(name: str, value: object, target: Target | None, read_target: ReadTarget) -> Setting:
    yaml_path, node = f"cells.{name}", checks.read_mapping(f"cells.{name}", value)
    checks.check_option_names(yaml_path, node, SETTING_OPTIONS, ("words",))
    for key in ("label", "axis", "family"):
        ranges.text(f"{yaml_path}.{key}", node.get(key), allow_null=True)
    bounds = checks.read_named_mapping(f"{yaml_path}.bounds", node.get("bounds") or {})
    return Setting(
        name,
        node.get("label") or name,
        node.get("axis") or "",
        checks.read_overrides(f"{yaml_path}.words", node["words"]),
        {bound: checks.read_overrides(f"{yaml_path}.bounds.{bound}", overrides) for bound, overrides in bounds.items()},
        read_target(f"{yaml_path}.target", node["target"]) if "target" in node else target,
        node.get("rows"),
        node.get("family") or name,
        node.get("oracle"),
    )
