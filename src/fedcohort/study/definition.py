"""The definition of a study: its settings, methods, seeds, and what counts as a difference.

A setting is a federation, and a method is anything that is run in it: a selector, the baseline, an oracle, a reference
or a bound. `definition_file.py` reads a definition from `studies/<name>/study.yaml`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort.results.compare import Options
from fedcohort.results.run import Kind
from fedcohort.results.target import Target
from fedcohort.results.verdict import Rules
from fedcohort.study.overrides import Overrides
from fedcohort.study.space import Space, Tuned

STUDY_FILE = "study.yaml"
# Roles of methods, named as in `tables/numbers.csv`. An ORACLE reads what no server can know. A REFERENCE is shown
# without a test. A BOUND is the baseline in the same federation without its heterogeneity.
METHOD, ORACLE, REFERENCE, BASELINE, BOUND = "method", "yardstick", "beside", "baseline", "bound"
BOUND_PREFIX = "bound:"  # of the name of a bound in the column `selector`


@dataclass(frozen=True)
class Setting:
    """A federation in which methods are compared.

    Attributes:
        name: key in `study.yaml`, and column `cell` of the results.
        label: name in tables and figures.
        axis: kind of heterogeneity that the setting varies, as "label noise"; it groups the columns of tables.
        overrides: overrides of the runs in this setting.
        bounds: overrides of its bounds by name, which replace `overrides`.
        target: to which costs are measured; None for none.
        methods: the methods that are run in it, in addition to the baseline and the bounds; None for all.
        family: name that settings share which differ in cohort size or level only. Families have equal weight in means.
        oracle: the oracle whose gain is the headroom; None to choose among all, on seeds that are left out.
    """

    name: str
    label: str
    axis: str
    overrides: Overrides
    bounds: Mapping[str, Overrides]
    target: Target | None
    methods: Sequence[str] | None
    family: str
    oracle: str | None = None


@dataclass(frozen=True)
class Study:
    """A study, as `study.yaml` defines it.

    Attributes:
        common: overrides of all runs.
        overrides: overrides of each method, by name. Those of the bounds are in their settings.
        roles: role of each method that `study.yaml` names.
        settings: the settings by name, in the order of `study.yaml`.
        rules: what counts as a difference, in the metric's own unit.
        result: result of a run: `late`, `last` or `best`, as of `results.compare.Options`.
        horizon: last round whose evaluations count; None for the end of each run.
        space: what is tuned; None for nothing.
        tuned: result of the tuning, by the name of the tuned method, `<method>_tuned`.
        few: number of seeds of methods that are run on the first seeds only.
        variants: by a name, methods that are variants of one idea. Their p-values are corrected together.
        notes: remarks for the page.
    """

    folder: Path
    title: str
    question: str
    common: Overrides
    baseline: str
    overrides: Mapping[str, Overrides]
    roles: Mapping[str, str]
    settings: Mapping[str, Setting]
    seeds: Sequence[int]
    metric: str
    rules: Rules
    result: Kind = "late"
    horizon: int | None = None
    space: Space | None = None
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    few: Mapping[str, int] = field(default_factory=dict)
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def options(self) -> Options:
        """The options with which `fedcohort compare` gives the same results and verdicts."""
        return Options(self.metric, self.baseline, result=self.result, horizon=self.horizon, rules=self.rules)

    def seeds_of(self, method: str) -> Sequence[int]:
        """Return the seeds on which the study runs the method."""
        return self.seeds[: self.few.get(method, len(self.seeds))]

    def requests(self, setting: str, method: str) -> bool:
        """Return whether the study runs the method in the setting.

        The baseline and a user's own methods run in all settings.
        """
        methods = self.settings[setting].methods
        return methods is None or method in methods or method == self.baseline or method not in self.roles

    def role_of(self, method: str) -> str:
        """Return the role of the method; a user's own method, which `study.yaml` does not name, is a METHOD."""
        return BOUND if method.startswith(BOUND_PREFIX) else self.roles.get(method, METHOD)

    def is_own(self, method: str) -> bool:
        """Return whether it is a user's own method, which `study.yaml` does not name."""
        return self.role_of(method) == METHOD and method not in self.roles


def display_name(method: str) -> str:
    """Return `bound iid` for `bound:iid`, and other names as they are."""
    return method.replace(BOUND_PREFIX, "bound ")
