"""The definition of a study: settings, methods, seeds, and the runs that follow from them.

A setting is a federation, and a method is anything that is run in it: a selector, the baseline, an oracle, a reference
or a bound. A condition is a method in a setting. `definition_file.py` reads a definition from
`studies/<name>/study.yaml`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.results.compare import Options
from fedcohort.results.metric import find_metric_sign
from fedcohort.results.run import ResultKind
from fedcohort.results.target import Target
from fedcohort.results.verdict import Rules
from fedcohort.study.search_space import SearchSpace, TuningResult

STUDY_FILE = "study.yaml"
# Roles of methods, named as in `tables/numbers.csv`. An ORACLE reads what no server can know. A REFERENCE belongs
# to no family of tests. A BOUND is the baseline in the same federation without its heterogeneity.
METHOD, ORACLE, REFERENCE, BASELINE, BOUND = "method", "oracle", "reference", "baseline", "bound"
BOUND_PREFIX, SAME_BYTES_PREFIX = "bound:", "same_bytes:"  # of names of bounds, and of baselines at a method's bytes
CLOCK_LIMIT_OPTION = "until.virtual_s"  # option that ends runs by the virtual clock
RUN_OVERRIDES = (  # of all runs of a study: no figures, no tracker and no evaluation of all clients
    *("logger=none", "callback.figures=null", "callback.summary=null", "callback.progress=null"),
    *("eval.clients_every=0", "checkpoint.every_s=30"),
)
Overrides = tuple[str, ...]  # typed as `name=value` behind `python train.py`
ConditionKey = tuple[str, str]  # setting, method
RunKey = tuple[str, str, int]  # setting, method, seed


@dataclass(frozen=True)
class Setting:
    """A federation in which methods are compared.

    Attributes:
        name: key in `study.yaml`, and column `cell` of the results.
        label: name in tables and figures.
        heterogeneity_kind: kind of heterogeneity, a text such as "label noise"; it groups the columns of tables.
        overrides: Hydra overrides of the runs in this setting.
        bounds: overrides of its bounds (runs without the heterogeneity) by name, which replace `overrides`.
        target: value of the metric to which costs are measured; None for no target.
        methods: methods that are run in it besides the baseline, the bounds and a user's own methods; None for all.
        family: name that settings share if they differ only in cohort size or in the level of heterogeneity.
        oracle: the oracle whose gain is the headroom; None to take, for each seed, the best on the other seeds.
    """

    name: str
    label: str
    heterogeneity_kind: str
    overrides: Overrides
    bounds: Mapping[str, Overrides]
    target: Target | None
    methods: Sequence[str] | None
    family: str
    oracle: str | None = None

    def rename_for_joint_study(self, study_name: str, label: str) -> "Setting":
        """Return this setting, of the study `study_name`, as `<study>/<setting>` of joined studies, with `label`."""
        return replace(self, name=f"{study_name}/{self.name}", family=f"{study_name}/{self.family}", label=label)


@dataclass(frozen=True)
class CostReference:
    """A reference method whose runs end at the cost of another method's run with the same seed (`same_cost.py`).

    Attributes:
        method: the other method, option `of`.
        cost_name: the option of `until` that ends the runs, and the column of the results: `bytes` or `client_flops`.
        overrides: overrides of the reference's runs, without the option that limits their cost.
    """

    method: str
    cost_name: str
    overrides: Overrides


@dataclass(frozen=True)
class Study:
    """A study, as `study.yaml` defines it.

    Attributes:
        folder: folder of `study.yaml`, whose name is the study's name.
        title: title of the page.
        question: what the study is to answer, a text for the page.
        common_overrides: overrides of all runs.
        baseline: the method to which differences are taken.
        overrides: overrides of each method, by name. Those of the bounds are in their settings.
        role_by_method: role of each method that `study.yaml` names.
        settings: the settings by name, in the order of `study.yaml`.
        seeds: seeds on which methods are run.
        metric: name of the compared metric; positive differences are better, also if smaller values are.
        rules: what counts as a difference, in the metric's own unit.
        result: definition of a run's result: `late`, `last` or `best` (`results.compare.Options`).
        horizon: last round whose evaluations count; None for the end of each run.
        search_space: options to tune with their ranges; None for no tuning.
        tunings: result of the tuning, by the name of the tuned method, `<method>_tuned`.
        seed_counts: number of seeds, by name, of the methods that are run on the first of the study's seeds only.
        same_cost: reference methods whose runs end at the cost of another method's run, by name.
        variants: groups of methods that are variants of one idea, by name; their p-values are corrected together.
        notes: remarks for the page.
    """

    folder: Path
    title: str
    question: str
    common_overrides: Overrides
    baseline: str
    overrides: Mapping[str, Overrides]
    role_by_method: Mapping[str, str]
    settings: Mapping[str, Setting]
    seeds: Sequence[int]
    metric: str
    rules: Rules
    result: ResultKind = "late"
    horizon: int | None = None
    search_space: SearchSpace | None = None
    tunings: Mapping[str, TuningResult] = field(default_factory=dict)
    seed_counts: Mapping[str, int] = field(default_factory=dict)
    same_cost: Mapping[str, CostReference] = field(default_factory=dict)
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def comparison_options(self) -> Options:
        """The options with which `results.compare` gives the results and verdicts of the study."""
        return Options(self.metric, self.baseline, find_metric_sign(self.metric), self.result, self.horizon, self.rules)

    def find_cost_source(self, method: str) -> str:
        """Return the method whose cost limits the runs of `method`, if it is in `same_cost`; else `method` itself."""
        return self.same_cost[method].method if method in self.same_cost else method

    def list_seeds(self, method: str) -> Sequence[int]:
        """Return the seeds on which the study runs the method."""
        return self.seeds[: self.seed_counts.get(self.find_cost_source(method), len(self.seeds))]

    def requests_method(self, setting: str, method: str) -> bool:
        """Return whether the study runs `method` in `setting`; the baseline and user's methods run in all settings."""
        methods = self.settings[setting].methods
        if method in self.same_cost and not self.requests_method(setting, self.find_cost_source(method)):
            return False
        return methods is None or method in methods or method == self.baseline or method not in self.role_by_method

    def list_overrides(self, setting: str, *overrides: Iterable[str]) -> Overrides:
        """Return the overrides of runs in `setting`; each list in `overrides` replaces earlier ones of its options."""
        return merge_overrides(RUN_OVERRIDES, self.common_overrides, self.settings[setting].overrides, *overrides)

    def find_role(self, method: str) -> str:
        """Return the role of the method; a user's own method, which `study.yaml` does not name, is a METHOD."""
        if method.startswith(SAME_BYTES_PREFIX):
            return REFERENCE
        return BOUND if method.startswith(BOUND_PREFIX) else self.role_by_method.get(method, METHOD)

    def is_user_method(self, method: str) -> bool:
        """Return whether `method` was added by a user: `study.yaml` does not name it, and it is no bound."""
        return self.find_role(method) != BOUND and method not in self.role_by_method


def format_method(method: str) -> str:
    """Return the name of `method` for texts: `bound iid` for `bound:iid`, and other names unchanged."""
    return method.replace(BOUND_PREFIX, "bound ")


@dataclass(frozen=True)
class Condition:
    """A method in a setting, which is run with several seeds.

    Attributes:
        setting: name of the setting.
        method: name of the method.
        overrides: Hydra overrides of the runs, without the seed.
        seeds: the only seeds on which it is run; None for any.
        awaited_method: the method whose runs have to be done first; "" for none.
    """

    setting: str
    method: str
    overrides: Overrides
    seeds: tuple[int, ...] | None = None
    awaited_method: str = ""

    def key(self, seed: int) -> RunKey:
        """Return setting, method and seed of the condition's run with this seed."""
        return self.setting, self.method, seed


def list_conditions(
    study: Study, settings: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[Condition]:
    """List the conditions of a study in its order. The baseline and the bounds of a setting are always included.

    Raises `OptionError` for an unknown setting.

    Args:
        study: the study's definition.
        settings: names of settings; None for all.
        methods: names of methods to list in each setting, for all seeds. For a reference in `same_cost`, the method
            whose cost it has is listed, too. None for the methods that the study requests in each setting.
    """
    for setting_name in settings or ():
        if setting_name not in study.settings:
            raise OptionError(f"settings must be some of {', '.join(study.settings)}, got {setting_name!r}")
    conditions = []
    required_methods = {study.baseline, *(methods or ()), *(study.find_cost_source(method) for method in methods or ())}
    for setting_name, setting in study.settings.items():
        if settings is not None and setting_name not in settings:
            continue
        for method, overrides in study.overrides.items():
            is_requested_method = methods is not None and method in required_methods
            if is_requested_method or (methods is None and study.requests_method(setting_name, method)):
                has_few_seeds = study.find_cost_source(method) in study.seed_counts and methods is None
                seeds = tuple(study.list_seeds(method)) if has_few_seeds else None
                conditions.append(Condition(setting_name, method, study.list_overrides(setting_name, overrides), seeds))
        for bound, overrides in setting.bounds.items():
            bound_overrides = merge_overrides(
                RUN_OVERRIDES, study.common_overrides, study.overrides[study.baseline], overrides
            )
            conditions.append(Condition(setting_name, BOUND_PREFIX + bound, bound_overrides))
    return conditions


def find_option(override: str) -> str:
    """Return the option that an override sets: `label_noise.a` of `+label_noise.a=30`."""
    return override.lstrip("+~").partition("=")[0]


def merge_overrides(*override_lists: Iterable[str]) -> Overrides:
    """Return the joined `override_lists`; of several overrides of one option, the last one is kept."""
    override_by_option: dict[str, str] = {}
    for override in (override for overrides in override_lists for override in overrides):
        override_by_option.pop(find_option(override), None)
        override_by_option[find_option(override)] = override
    return tuple(override_by_option.values())


def find_clock_limit(overrides: Iterable[str]) -> float | None:
    """Return the virtual seconds at which a run with these overrides ends; None if no clock ends it."""
    limit_texts = [override.partition("=")[2] for override in overrides if find_option(override) == CLOCK_LIMIT_OPTION]
    return float(limit_texts[-1]) if limit_texts and limit_texts[-1] != "null" else None
