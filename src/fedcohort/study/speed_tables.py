"""Tables of the speed-ups to the target, and the names of the faster methods of a setting."""

import math

from fedcohort import units
from fedcohort.report.table import Table
from fedcohort.results.speed_up import RESTRICTED
from fedcohort.results.verdict import UNREACHED
from fedcohort.study.definition import METHOD, Study
from fedcohort.study.formats import EMPTY, SIGNS, join_first
from fedcohort.study.page_tables import label_method, make_table, split_settings, write_few_seeds
from fedcohort.study.speed import AXES, Speed, Speeds
from fedcohort.study.verdict import MethodVerdict, Verdict

NAMED = 2  # methods of an axis that are named in a cell


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
                of_method = {name: by_pair[name, method] for name in settings if (name, method) in by_pair}
                line = {
                    labels[name]: f"{write_speed(speed)} {write_costs(speed)}{write_few_seeds(speed.up.n, base[name])}"
                    for name, speed in of_method.items()
                }
                if line:
                    empty = dict.fromkeys(labels.values(), EMPTY)
                    lines.append({"method": label_method(study, method), **empty, **line})
            caption = f"Speed-up to the target over {study.baseline}, by {AXES[axis]}{f': {title}' if title else ''}"
            tables.append((axis, title, make_table(lines, caption)))
    return tables


def _write_target(base: MethodVerdict, axis: str) -> str:
    """Return `45 rounds` or `98 min 20 s`; `4 of 10` where half of the seeds or more never met the target."""
    value = base.target[axis]
    if not math.isfinite(value):
        return f"{base.reached} of {base.value.n}"
    return {"virtual_s": units.seconds, "bytes": units.bytes_, "rounds": "{:.0f} rounds".format}[axis](value)


def write_speed(speed: Speed) -> str:
    """Return `1.91▲`, `>=1.91▲`, `1.10 (restricted)` or, where most pairs never met the target, `not reached`."""
    if speed.verdict == UNREACHED:
        return "not reached"
    bound, ratio = speed.up.bound, f"{speed.up.ratio:.2f}{SIGNS[speed.sign]}"
    return f"{ratio} ({bound})" if bound == RESTRICTED else f"{bound}{ratio}"


def write_costs(speed: Speed) -> str:
    """Return `(7.6, 2.8)`: client FLOPs and bytes of whole runs over those of the baseline."""
    return f"({', '.join(f'{cost:.1f}' if math.isfinite(cost) else EMPTY for cost in speed.costs.values())})"


def name_faster(study: Study, setting: str, speed_ups: Speeds) -> str:
    """Return `virtual time: fedcbs 1.86 (1.0, 1.2); bytes: ...`, the fastest first; "" if no method is faster."""
    parts = []
    for axis, by_pair in speed_ups.items():
        faster = {
            method: speed
            for (name, method), speed in by_pair.items()
            if name == setting and speed.sign > 0 and study.role_of(method) == METHOD
        }
        texts = [
            f"{method} {write_speed(speed).replace(SIGNS[1], '')} {write_costs(speed)}"
            for method, speed in sorted(faster.items(), key=lambda item: -item[1].up.ratio)
        ]
        parts += [f"{AXES[axis]}: {join_first(texts, NAMED)}"] if texts else []
    return "; ".join(parts)
