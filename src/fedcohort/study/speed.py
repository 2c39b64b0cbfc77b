"""Speed-up of methods to a setting's target over the baseline: by virtual time, by bytes and by rounds.

The speed-up is that of `results.speed_up`. Its p is corrected by Holm over the methods of the setting, for each of the
three separately. `costs` are client FLOPs and bytes of whole runs over those of the baseline, as means over the same
seeds: a method that is faster to the target may have spent more by the end.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort import units
from fedcohort.report.table import EMPTY, Table
from fedcohort.results.compare_cost import compare_along
from fedcohort.results.speed_up import RESTRICTED, SpeedUp
from fedcohort.results.verdict import UNREACHED, sign_of
from fedcohort.study.definition import BOUND, METHOD, Pair, Study
from fedcohort.study.formats import SIGNS, join_first
from fedcohort.study.judge import cost_of
from fedcohort.study.page_tables import label_method, make_table, split_settings, write_few_seeds
from fedcohort.study.ranking import Runs, group_runs
from fedcohort.study.result_files import Row
from fedcohort.study.results import Results
from fedcohort.study.verdict import MethodVerdict, Verdict

COSTS = ("client_flops", "bytes")  # costs of whole runs
MAX_NAMED = 2  # methods of an axis that are named in a cell
AXES = {"virtual_s": "virtual time", "bytes": "bytes", "rounds": "rounds"}  # costs to the target


@dataclass(frozen=True)
class Speed:
    """The speed-up of a method to the target of a setting, with its verdict.

    Attributes:
        speed_up: the speed-up over the baseline.
        p: after Holm over the methods of the setting.
        verdict: a verdict of `results.verdict`.
        costs: costs of whole runs over those of the baseline, by name; NaN if the baseline's are 0.
    """

    speed_up: SpeedUp
    p: float
    verdict: str
    costs: Mapping[str, float]

    @property
    def sign(self) -> int:
        """1 if it is faster, -1 if it is slower, else 0."""
        return sign_of(self.verdict)


Speeds = Mapping[str, Mapping[Pair, Speed]]  # by axis, and by setting and method


def measure_speeds(study: Study, results: Results) -> Speeds:
    """Return the speeds of methods where a run of a pair met the target; bounds have none."""
    runs = group_runs(study, results)
    return {axis: _measure(study, runs, axis) for axis in AXES}


def _measure(study: Study, runs: Mapping[str, Runs], axis: str) -> dict[Pair, Speed]:
    costs = {
        (setting, method): {seed: cost_of(row, axis) for seed, row in by_seed.items()}
        for setting, methods in runs.items()
        for method, by_seed in methods.items()
        if study.role_of(method) != BOUND
    }
    untested = [pair for pair in costs if study.role_of(pair[1]) != METHOD]
    return {
        pair: Speed(up, entry.p, entry.verdict, _whole_costs(runs[pair[0]][pair[1]], runs[pair[0]][study.baseline]))
        for pair, entry in compare_along(costs, untested, study.options).items()
        if (up := entry.speed_up) is not None and up.unmet < up.n and math.isfinite(up.ratio)
    }


def _whole_costs(by_seed: Mapping[int, Row], base: Mapping[int, Row]) -> dict[str, float]:
    """Return the mean costs of whole runs over the baseline's, on common seeds."""
    common = sorted(set(base) & set(by_seed))
    means = {
        name: [float(np.mean([side[seed][name] for seed in common])) for side in (by_seed, base)] for name in COSTS
    }
    return {name: cost / base_cost if base_cost > 0 else math.nan for name, (cost, base_cost) in means.items()}


def speed_tables(study: Study, verdict: Verdict, speed_ups: Speeds) -> list[tuple[str, str, Table]]:
    """Return axis, title and table for the settings in which a run met the target; methods are lines."""
    tables = []
    for axis, by_pair in speed_ups.items():
        reached_settings = [setting for setting in verdict.settings if any(pair[0] == setting for pair in by_pair)]
        for title, settings in split_settings(study, reached_settings):
            base = {name: verdict.settings[name].methods[study.baseline] for name in settings}
            labels = {name: study.settings[name].label for name in settings}
            line = {labels[name]: _write_target(base[name], axis) for name in settings}
            lines = [{"method": f"{study.baseline} (cost)", **line}]
            for method in dict.fromkeys(method for name in settings for method in verdict.settings[name].methods):
                speed_by_setting = {name: by_pair[name, method] for name in settings if (name, method) in by_pair}
                line = {
                    labels[
                        name
                    ]: f"{write_speed(speed)} {write_costs(speed)}{write_few_seeds(speed.speed_up.n, base[name])}"
                    for name, speed in speed_by_setting.items()
                }
                if line:
                    lines.append(
                        {"method": label_method(study, method), **dict.fromkeys(labels.values(), EMPTY), **line}
                    )
            caption = f"Speed-up to the target over {study.baseline}, by {AXES[axis]}{f': {title}' if title else ''}"
            tables.append((axis, title, make_table(lines, caption)))
    return tables


def _write_target(base: MethodVerdict, axis: str) -> str:
    """Format a median cost to the target, `45 rounds`; `4 of 10` if half of the seeds or more never met the target."""
    value = base.target[axis]
    if not math.isfinite(value):
        return f"{base.reached} of {base.value.n}"
    return {"virtual_s": units.seconds, "bytes": units.bytes_, "rounds": "{:.0f} rounds".format}[axis](value)


def write_speed(speed: Speed) -> str:
    """Format a speed-up: `1.91▲`, `>=1.91▲`, `1.10 (restricted)`, or `not reached` if most pairs never met it."""
    if speed.verdict == UNREACHED:
        return "not reached"
    bound, ratio = speed.speed_up.bound, f"{speed.speed_up.ratio:.2f}{SIGNS[speed.sign]}"
    return f"{ratio} ({bound})" if bound == RESTRICTED else f"{bound}{ratio}"


def write_costs(speed: Speed) -> str:
    """Format client FLOPs and bytes of whole runs as multiples of the baseline's: `(7.6, 2.8)`."""
    return f"({', '.join(f'{cost:.1f}' if math.isfinite(cost) else EMPTY for cost in speed.costs.values())})"


def name_faster(study: Study, setting: str, speed_ups: Speeds) -> str:
    """Describe the faster methods of a setting: `virtual time: fedcbs 1.86 (1.0, 1.2); bytes: ...`; "" without any."""
    parts = []
    for axis, by_pair in speed_ups.items():
        faster = {
            method: speed
            for (name, method), speed in by_pair.items()
            if name == setting and speed.sign > 0 and study.role_of(method) == METHOD
        }
        texts = [
            f"{method} {write_speed(speed).replace(SIGNS[1], '')} {write_costs(speed)}"
            for method, speed in sorted(faster.items(), key=lambda item: -item[1].speed_up.ratio)
        ]
        parts += [f"{AXES[axis]}: {join_first(texts, MAX_NAMED)}"] if texts else []
    return "; ".join(parts)
