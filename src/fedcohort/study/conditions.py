"""The conditions of a study: each method in each setting, with the overrides of its runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.study.definition import BOUND_PREFIX, Study
from fedcohort.study.overrides import QUIET, Overrides, merge

Pair = tuple[str, str]  # setting, method
Key = tuple[str, str, int]  # setting, method, seed


@dataclass(frozen=True)
class Condition:
    """A method in a setting; with a seed it is one run.

    Attributes:
        overrides: overrides of its runs, without the seed.
        seeds: the only seeds on which it is run; None for any.
    """

    setting: str
    method: str
    overrides: Overrides
    seeds: tuple[int, ...] | None = None

    def key(self, seed: int) -> Key:
        """Return the key of the condition's run with this seed."""
        return self.setting, self.method, seed


def with_own_methods(study: Study, selectors: Sequence[str] | None, configs: Path) -> Study:
    """Add selectors of `configs/selector` that `study.yaml` does not name. Raises `OptionError` for unknown ones."""
    bounds = dict.fromkeys(BOUND_PREFIX + bound for setting in study.settings.values() for bound in setting.bounds)
    available = sorted(path.stem for path in (configs / "selector").glob("*.yaml"))
    own_methods = [name for name in selectors or () if name not in study.overrides and name not in bounds]
    for name in own_methods:
        if name not in available:
            names = dict.fromkeys((*study.overrides, *bounds, *available))
            raise OptionError(f"selectors must be some of {', '.join(names)}, got {name!r}")
    return replace(study, overrides={**study.overrides, **{name: (f"selector={name}",) for name in own_methods}})


def list_conditions(
    study: Study, settings: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[Condition]:
    """List the conditions of a study in its order. The baseline and the bounds of a setting are always included.

    Args:
        study: whose conditions are listed.
        settings: names of settings; None for all.
        methods: names of methods, which are listed in each of these settings and with any seed; None for those that
            the study requests in each setting.

    Raises:
        OptionError: for an unknown setting.
    """
    for name in settings or ():
        if name not in study.settings:
            raise OptionError(f"cells must be some of {', '.join(study.settings)}, got {name!r}")
    conditions = []
    for name, setting in study.settings.items():
        if settings is not None and name not in settings:
            continue
        for method, overrides in study.overrides.items():
            is_named = methods is not None and (method in methods or method == study.baseline)
            if is_named or (methods is None and study.requests(name, method)):
                seeds = tuple(study.seeds_of(method)) if method in study.few and methods is None else None
                merged = merge(QUIET, study.common, setting.overrides, overrides)
                conditions.append(Condition(name, method, merged, seeds))
        for bound, overrides in setting.bounds.items():
            merged = merge(QUIET, study.common, study.overrides[study.baseline], overrides)
            conditions.append(Condition(name, BOUND_PREFIX + bound, merged))
    return conditions
