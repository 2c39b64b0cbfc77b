"""Read a study's definition from `studies/<name>/study.yaml`.

    title, question   texts
    baseline          the method to which differences are taken: a selector, or `name: [overrides]`
    methods           list of selectors, as `flash`, and of `flash_wide: [selector=flash, selector.gamma=2]`
    settings          settings by name. Each has `overrides`.
                      Optional are label, heterogeneity_kind, bounds, target, methods, family and oracle.
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
from fedcohort.results.run import RESULT_KINDS
from fedcohort.results.target import DEFAULT_TARGET_LEVEL, Target
from fedcohort.startup.compose import read_yaml
from fedcohort.study import checks, definition
from fedcohort.study.definition import BASELINE, METHOD, ORACLE, REFERENCE, STUDY_FILE, Overrides, Setting, Study
from fedcohort.study.same_cost import read_cost_references
from fedcohort.study.search_space import load_tuning_results, read_search_space

REQUIRED_OPTIONS = ("title", "question", "baseline", "methods", "settings", "seeds")
DEFAULT_OPTIONS = read_yaml(Path(__file__).with_name("defaults.yaml"))  # of the other options
SETTING_OPTIONS = ("label", "heterogeneity_kind", "overrides", "bounds", "target", "methods", "family", "oracle")
TargetReader = Callable[[str, object], Target | None]
METHOD_LIST_FORMAT = "a list of selectors, or of `name: [overrides]`"
EVAL_OVERRIDE = "eval.clients_every="  # the rounds that evaluate all clients


def load_study(folder: Path) -> Study:
    """Read `study.yaml` in `folder`. Raises `OptionError` that names the file and the option."""
    study_path = folder / STUDY_FILE
    if not study_path.is_file():
        study_names = ", ".join(sorted(study_file.parent.name for study_file in folder.parent.glob(f"*/{STUDY_FILE}")))
        raise OptionError(f"{folder.parent} has no study {folder.name!r}: type one of {study_names or '(none)'}")
    with checks.name_file_in_errors(study_path, REQUIRED_OPTIONS):
        return _read_study(folder, read_yaml(study_path))


def _read_study(folder: Path, study_options: Mapping[str, Any]) -> Study:
    checks.check_option_names("", study_options, (*REQUIRED_OPTIONS, *DEFAULT_OPTIONS), REQUIRED_OPTIONS)
    options = {**DEFAULT_OPTIONS, **study_options}
    for option_name in ("title", "question", "metric"):
        ranges.text(option_name, options[option_name])
    ranges.texts("notes", options["notes"])
    ranges.choice("result", options["result"], *RESULT_KINDS)
    ranges.integer("horizon", options["horizon"], "[1, inf)", allow_null=True)
    common_overrides = checks.read_overrides("common", options["common"])
    _check_metric(options["metric"], common_overrides)
    overrides, roles = _read_methods(options)
    settings, seeds = _read_settings(options), checks.read_seeds("seeds", options["seeds"])
    tuning_results = load_tuning_results(folder)
    for method_name, tuning_result in tuning_results.items():
        tuned_overrides = overrides.get(tuning_result.method, (f"selector={tuning_result.method}",))
        overrides[method_name], roles[method_name] = (*tuned_overrides, *tuning_result.overrides), METHOD
    seed_counts = checks.read_seed_counts(options["seed_counts"], list(overrides)[1:], len(seeds))  # no baseline
    same_cost = read_cost_references(options, overrides, settings)
    overrides |= {method_name: reference.overrides for method_name, reference in same_cost.items()}
    roles |= dict.fromkeys(same_cost, REFERENCE)
    methods = [method for method in overrides if roles[method] != BASELINE]
    _check_method_names(settings, methods, [method for method in methods if roles[method] == ORACLE])
    _check_override_effects(settings, overrides.values())
    return Study(
        folder,
        common_overrides=common_overrides,
        baseline=next(iter(overrides)),
        overrides=overrides,
        role_by_method=roles,
        settings=settings,
        seeds=seeds,
        rules=checks.read_verdict_rules(options["verdict"]),
        search_space=None if options["tune"] is None else read_search_space(options["tune"], settings, seeds),
        tunings=tuning_results,
        seed_counts=seed_counts,
        same_cost=same_cost,
        variants=checks.read_variants(options["variants"], [method for method in methods if roles[method] == METHOD]),
        **{option_name: options[option_name] for option_name in ("title", "question", "metric", "result", "horizon")},
        notes=tuple(options["notes"]),
    )


def _check_metric(metric: str, common_overrides: Overrides) -> None:
    if metric.startswith("clients/") and not any(override.startswith(EVAL_OVERRIDE) for override in common_overrides):
        raise OptionError(
            f"metric={metric} is measured in no round, as studies have {EVAL_OVERRIDE}0: add {EVAL_OVERRIDE}1 to common"
        )


def _check_method_names(settings: Mapping[str, Setting], methods: Sequence[str], oracles: Sequence[str]) -> None:
    for setting_name, setting in settings.items():
        if setting.methods is not None:
            ranges.words(f"settings.{setting_name}.methods", setting.methods, *methods)
        if setting.oracle is not None:
            ranges.choice(f"settings.{setting_name}.oracle", setting.oracle, *oracles)


def _check_override_effects(settings: Mapping[str, Setting], override_lists: Iterable[Overrides]) -> None:
    """Raise `OptionError` for an override of a setting that every method replaces.

    Args:
        settings: the settings by name.
        override_lists: overrides of each method.
    """
    replaced_options = set.intersection(*(set(map(definition.find_option, overrides)) for overrides in override_lists))
    for setting_name, setting in settings.items():
        for override in setting.overrides:
            if definition.find_option(override) in replaced_options:
                remedy_text = "has no effect: all methods set this option. Leave it out"
                raise OptionError(f"settings.{setting_name}.overrides: {override} {remedy_text}")


def _read_methods(options: Mapping[str, Any]) -> tuple[dict[str, Overrides], dict[str, str]]:
    """Return the overrides and the roles by method from the `options` of `study.yaml`; the baseline is the first."""
    name, baseline_overrides = _read_method("baseline", options["baseline"], "a selector, or `name: [overrides]`")
    overrides, roles = {name: baseline_overrides}, {name: BASELINE}
    for option_name, role in (("methods", METHOD), ("oracles", ORACLE), ("references", REFERENCE)):
        methods = options[option_name]
        if not isinstance(methods, Sequence) or isinstance(methods, str):
            raise ranges.range_error(option_name, METHOD_LIST_FORMAT, methods)
        for method in methods:
            name, method_overrides = _read_method(option_name, method, METHOD_LIST_FORMAT)
            if name in overrides:
                raise OptionError(f"{option_name}: {name} is listed twice: remove one of the two")
            overrides[name], roles[name] = method_overrides, role
    return overrides, roles


def _read_method(option_path: str, yaml_value: object, allowed_text: str) -> tuple[str, Overrides]:
    if isinstance(yaml_value, str) and yaml_value:
        yaml_value = {yaml_value: [f"selector={yaml_value}"]}
    if not isinstance(yaml_value, Mapping) or len(yaml_value) != 1:
        raise ranges.range_error(option_path, allowed_text, yaml_value)
    ((method_name, overrides),) = checks.read_named_mapping(option_path, yaml_value).items()
    return method_name, checks.read_overrides(f"{option_path}.{method_name}", overrides)


def _read_settings(node: Mapping[str, Any]) -> dict[str, Setting]:
    baseline_target = Target(
        level=DEFAULT_TARGET_LEVEL if node["level"] is None else node["level"], crossing=node["crossing"]
    )
    read_target_option = partial(checks.read_target_option, metric=node["metric"], baseline_target=baseline_target)
    target = read_target_option("target", node["target"])
    setting_values = checks.read_named_mapping("settings", node["settings"])
    settings = {name: _read_setting(name, value, target, read_target_option) for name, value in setting_values.items()}
    if not settings:
        raise ranges.range_error("settings", "one setting or more, such as {a: {overrides: []}}", setting_values)
    if node["level"] is not None and not any(setting.target == baseline_target for setting in settings.values()):
        raise OptionError(f"level={node['level']} has no effect without target: baseline. Set it, or leave level out")
    setting_label_counts = Counter(setting.label for setting in settings.values())
    for name, setting in settings.items():
        if setting_label_counts[setting.label] > 1:
            raise ranges.range_error(f"settings.{name}.label", "a label that differs from all others", setting.label)
    return settings


def _read_setting(name: str, yaml_value: object, target: Target | None, read_target_option: TargetReader) -> Setting:
    option_path, options = f"settings.{name}", checks.read_mapping(f"settings.{name}", yaml_value)
    checks.check_option_names(option_path, options, SETTING_OPTIONS, ("overrides",))
    for option_name in ("label", "heterogeneity_kind", "family"):
        ranges.text(f"{option_path}.{option_name}", options.get(option_name), allow_null=True)
    bound_values = checks.read_named_mapping(f"{option_path}.bounds", options.get("bounds") or {})
    return Setting(
        name,
        options.get("label") or name,
        options.get("heterogeneity_kind") or "",
        checks.read_overrides(f"{option_path}.overrides", options["overrides"]),
        {
            bound_name: checks.read_overrides(f"{option_path}.bounds.{bound_name}", overrides)
            for bound_name, overrides in bound_values.items()
        },
        read_target_option(f"{option_path}.target", options["target"]) if "target" in options else target,
        options.get("methods"),
        options.get("family") or name,
        options.get("oracle"),
    )
