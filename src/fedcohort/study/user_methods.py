"""Methods that `study.yaml` does not name and a command adds: a user's own selector, and its reference of equal bytes.

    mine              the selector of `configs/selector/mine.yaml`
    same_bytes:mine   the baseline, which ends when it has spent the bytes of `mine` (`same_cost.py`)

Their results are kept in the study's logs. The name of the second gives its role, a reference without a test, so that a
page needs no definition of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.study.definition import BOUND_PREFIX, METHOD, ORACLE, SAME_BYTES_PREFIX, Study
from fedcohort.study.same_cost import make_cost_reference


def add_user_methods(study: Study, selectors: Sequence[str] | None, configs: Path) -> Study:
    """Return `study` with the `selectors` that it lacks; raise `OptionError` for one that `configs/selector` lacks."""
    bounds = dict.fromkeys(BOUND_PREFIX + bound for setting in study.settings.values() for bound in setting.bounds)
    selector_names = sorted(path.stem for path in (configs / "selector").glob("*.yaml"))
    for name in selectors or ():
        method = name.removeprefix(SAME_BYTES_PREFIX)
        if name not in bounds and method not in (*study.overrides, *selector_names):
            known_method_names = dict.fromkeys((*study.overrides, *bounds, *selector_names))
            raise OptionError(f"methods must be some of {', '.join(known_method_names)}, got {method!r}")
        study = study if name in bounds else add_method(study, name)
    return study


def add_methods_of_runs(study: Study, methods: Iterable[str], configs: Path) -> Study:
    """Return `study` with those of the `methods` of stored runs that it lacks and whose selector still exists."""
    known_method_names = {*study.overrides, *(path.stem for path in (configs / "selector").glob("*.yaml"))}
    known_methods = {name for name in methods if name.removeprefix(SAME_BYTES_PREFIX) in known_method_names}
    return add_user_methods(study, sorted(known_methods), configs)


def add_method(study: Study, name: str) -> Study:
    """Return `study` with the method `name`, a selector or a reference `same_bytes:<selector>` with that selector.

    A reference is random selection, or another baseline, that ends when it has spent the bytes of the selector. Raises
    `OptionError` for a reference of the baseline or of another reference, and for any reference if the study has a
    `horizon`, a round at which it compares.
    """
    method = name.removeprefix(SAME_BYTES_PREFIX)
    study = replace(study, overrides={**study.overrides, method: study.overrides.get(method, (f"selector={method}",))})
    if name == method:
        return study
    if study.find_role(method) not in (METHOD, ORACLE) or study.horizon is not None:
        raise OptionError(
            f"{name} needs a selector other than {study.baseline} and a study without horizon: omit {name}"
        )
    reference = make_cost_reference(study.overrides, study.baseline, method, "bytes")
    return replace(
        study,
        overrides={**study.overrides, name: reference.overrides},
        same_cost={**study.same_cost, name: reference},
    )
