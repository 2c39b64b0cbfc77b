"""The rows of a summary, as labels and values with units, for the terminal and the run page."""

from collections.abc import Callable, Mapping
from typing import Any

from fedcohort import units
from fedcohort.record.history import MAIN_METRIC
from fedcohort.results.metric import METRIC_NAMES
from fedcohort.results.summary import CLOCK_METRIC, DOWN_METRIC, UP_METRIC

WORST_CLIENTS_METRIC = "clients/acc_worst5"
SHORT_TABLE_SHARE = 0.9  # of the best accuracy, whose cost is in the short table
FINGERPRINT_LABEL = "fingerprint (equal for equal runs)"
WALL_TIME_LABEL = "wall time (this machine)"
COST_PREFIXES = ("time/", "comm/", "comp/", "energy/", "privacy/")
METRIC_ROWS, MEAN_ROWS = (
    [(label, name, getattr(units, f"format_{show}")) for name, (label, show) in METRIC_NAMES[kind].items()]
    for kind in ("last", "mean")
)
SummaryRows = list[tuple[str, str]]


def format_older_round(summary: Mapping[str, Any], name: str) -> str:
    """Return `, of round 20` if the last value of a metric is of an earlier round (`eval.every`), else "".

    Args:
        summary: content of `summary.json`.
        name: name of the metric.
    """
    older_round = summary["earlier"].get(name)
    return "" if older_round is None else f", of round {older_round}"


def list_brief_rows(summary: Mapping[str, Any]) -> SummaryRows:
    """Return label and value of each row of the short table of a run; a metric that was never measured has no row.

    `summary` is the content of `summary.json`.
    """
    final, rows = summary["final"], []
    if "test/acc" in final:
        rows.append(
            (f"test accuracy{format_older_round(summary, 'test/acc')}", units.format_percent(final["test/acc"]))
        )
    if best := summary["best"].get("test/acc"):
        rows.append(("best so far (early stop)", f"{units.format_percent(best['value'])} at round {best['round']}"))
    rows += _list_metric_rows(summary, lambda name: name == WORST_CLIENTS_METRIC)
    rows.append(("rounds", f"{summary['rounds']} of {summary['rounds_asked']}"))
    rows += _list_reached_rows(summary, lambda share: share == SHORT_TABLE_SHARE)
    rows += _list_metric_rows(summary, lambda name: name == CLOCK_METRIC)
    if {DOWN_METRIC, UP_METRIC} <= final.keys():
        rows.append(("bytes, down and up", units.format_bytes(final[DOWN_METRIC] + final[UP_METRIC])))
    if summary["forced"]:
        rows.append(("resume=force", "; ".join(summary["forced"])))
    if n_idle_rounds := summary["rounds_without_update"]:
        rows.append(("rounds without an update", f"{n_idle_rounds} of {summary['rounds']}"))
    return [
        *rows,
        (WALL_TIME_LABEL, units.format_seconds(summary["wall_s"])),
        (FINGERPRINT_LABEL, str(summary["fingerprint"])),
    ]


def list_further_rows(summary: Mapping[str, Any]) -> SummaryRows:
    """Return label and value of each row of the full table of a run that the short table leaves out.

    `summary` is the content of `summary.json`.
    """
    final, means = summary["final"], summary["means"]
    rows = []
    if "test/loss" in final:
        rows.append((f"test loss{format_older_round(summary, 'test/loss')}", units.format_number(final["test/loss"])))
    rows += _list_reached_rows(summary, lambda share: share != SHORT_TABLE_SHARE)
    rows += _list_metric_rows(summary, lambda name: name not in (WORST_CLIENTS_METRIC, CLOCK_METRIC))
    rows += [(row_label, value_format(means[name])) for row_label, name, value_format in MEAN_ROWS if name in means]
    rows.append(("clients selected at least once", f"{summary['clients']['selected']} of {summary['clients']['all']}"))
    if "select/share_min" in final and "select/share_max" in final:
        lowest_share, highest_share = (units.format_percent(final[f"select/share_{end}"]) for end in ("min", "max"))
        rows.append(("share of rounds that selected a client, min to max", f"{lowest_share} to {highest_share}"))
    if "select/departure" in final:
        departure_texts, uniform_draw = (
            units.format_number(final[f"select/departure{name_ending}"]) for name_ending in ("", "_uniform")
        )
        rows.append(("departure from uniform selection", f"{departure_texts} (a uniform draw: {uniform_draw})"))
    return rows


def list_cost_rows(summary: Mapping[str, Any]) -> SummaryRows:
    """Return the rows of a run's cost, label and value: in total, and until it reached shares of its best accuracy.

    `summary` is the content of `summary.json`.
    """
    return [
        *_list_metric_rows(summary, lambda name: name.startswith(COST_PREFIXES)),
        *_list_reached_rows(summary, lambda _: True),
        (WALL_TIME_LABEL, units.format_seconds(summary["wall_s"])),
    ]


def _list_metric_rows(summary: Mapping[str, Any], is_shown_metric: Callable[[str], bool]) -> SummaryRows:
    final = summary["final"]
    return [
        (row_label + format_older_round(summary, name), value_format(final[name]))
        for row_label, name, value_format in METRIC_ROWS
        if name in final and is_shown_metric(name)
    ]


def _list_reached_rows(summary: Mapping[str, Any], is_shown_share: Callable[[float], bool]) -> SummaryRows:
    """Return rows with the cost to reach shares of the best accuracy; [] if the untrained model was the best.

    Args:
        summary: content of `summary.json`.
        is_shown_share: returns whether a share, in (0, 1), has a row.
    """
    best_accuracy = summary["best"].get(MAIN_METRIC)
    if best_accuracy is not None and best_accuracy["round"] == 0:
        return []
    return [describe_share(share_facts) for share_facts in summary["reached"] if is_shown_share(share_facts["share"])]


def describe_share(share_facts: dict[str, Any]) -> tuple[str, str]:
    """Return label and text of `share_facts`, an entry of `reached` in `summary.json`.

    These are `to 90 % of its best, 78.1 %` and `round 12, 20 min 34 s, 31 MB`.
    """
    time_text = "no clock" if share_facts["virtual_s"] is None else units.format_seconds(share_facts["virtual_s"])
    bytes_text = "bytes unknown" if share_facts["bytes"] is None else units.format_bytes(share_facts["bytes"])
    row_label = f"to {100 * share_facts['share']:.0f} % of its best, {units.format_percent(share_facts['target'])}"
    return row_label, f"round {share_facts['round']}, {time_text}, {bytes_text}"
