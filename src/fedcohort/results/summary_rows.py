"""The lines of a summary, as labels and values with units: for the terminal and for the run page."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fedcohort import units
from fedcohort.record.history import HEADLINE
from fedcohort.results.shares_of_best import CLOCK, DOWN, UP, describe

WORST = "clients/acc_worst5"
SHARE = 0.9  # of the best accuracy, whose cost is among the first lines
WALL = "wall time (this machine)"
COSTS = ("time/", "comm/", "comp/")
ROWS = (
    ("test accuracy of the worst group", "test/acc_worst_group", units.percent),
    ("clients: mean accuracy", "clients/acc_mean", units.percent),
    ("clients: variance of accuracy, %²", "clients/acc_var", units.number),
    ("clients: worst 5 %", "clients/acc_worst5", units.percent),
    ("clients: best 5 %", "clients/acc_best5", units.percent),
    ("clients: Jain's index of losses", "clients/jain", units.number),
    ("virtual time (the simulated clock)", "time/virtual_s", units.seconds),
    ("bytes down", "comm/down_bytes", units.bytes_),
    ("bytes up", "comm/up_bytes", units.bytes_),
    ("bytes of probes", "comm/probe_bytes", units.bytes_),
    ("client computation", "comp/client_flops", units.flops),
    ("server computation", "comp/server_flops", units.flops),
    ("class imbalance of all data", "skew/global_ci", units.number),
    ("class imbalance of a client, mean", "skew/client_ci", units.number),
    ("attribute imbalance of all data", "skew/global_ai", units.number),
    ("attribute imbalance of a client, mean", "skew/client_ai", units.number),
    ("spurious correlation of all data", "skew/global_sc", units.number),
    ("spurious correlation of a client, mean", "skew/client_sc", units.number),
)
MEANS = (
    ("weight that liars got, mean over rounds", "attack/weight", units.percent),
    ("their share of those who arrived, mean over rounds", "attack/share", units.percent),
)


def date(summary: Mapping[str, Any], name: str) -> str:
    """`, of round 20`, where the last value of a metric is not of the last round (`eval.every`)."""
    step = summary["earlier"].get(name)
    return "" if step is None else f", of round {step}"


def rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The lines for a first look; a metric that was never measured has none."""
    final, when = summary["final"], partial(date, summary)
    found = [(f"test accuracy{when('test/acc')}", units.percent(final["test/acc"]))] if "test/acc" in final else []
    if best := summary["best"].get("test/acc"):
        found.append(("best so far (early stop)", f"{units.percent(best['value'])} at round {best['round']}"))
    found += [(label + when(name), text(final[name])) for label, name, text in ROWS if name == WORST and name in final]
    found.append(("rounds", f"{summary['rounds']} of {summary['rounds_asked']}"))
    found += [describe(each) for each in _list_reached(summary) if each["share"] == SHARE]
    found += [(label, text(final[name])) for label, name, text in ROWS if name == CLOCK and name in final]
    if {DOWN, UP} <= final.keys():
        found.append(("bytes, down and up", units.bytes_(final[DOWN] + final[UP])))
    found += [("resume=force", "; ".join(summary["forced"]))] if summary["forced"] else []
    if empty := summary["rounds_without_update"]:
        found.append(("rounds without an update", f"{empty} of {summary['rounds']}"))
    return [*found, (WALL, units.seconds(summary["wall_s"])), ("fingerprint", str(summary["fingerprint"]))]


def more_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The lines that `rows` leaves out."""
    final, when = summary["final"], partial(date, summary)
    found = [(f"test loss{when('test/loss')}", units.number(final["test/loss"]))] if "test/loss" in final else []
    found += [describe(each) for each in _list_reached(summary) if each["share"] != SHARE]
    shown = (WORST, CLOCK)
    rest = [row for row in ROWS if row[1] in final and row[1] not in shown]
    found += [(label + when(name), text(final[name])) for label, name, text in rest]
    found += [(label, text(summary["means"][name])) for label, name, text in MEANS if name in summary["means"]]
    if "select/share_min" in final and "select/share_max" in final:
        low, high = units.percent(final["select/share_min"]), units.percent(final["select/share_max"])
        found.append(("rounds that a client was selected in, least and most", f"{low} to {high}"))
    if "select/departure" in final:
        mine, chance = (units.number(final[f"select/departure{end}"]) for end in ("", "_uniform"))
        found.append(("departure from uniform selection", f"{mine} (chance: {chance})"))
    return found


def cost_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The lines of what the run cost, and what it had cost when it was nearly as good as it got."""
    final = summary["final"]
    found = [(label, text(final[name])) for label, name, text in ROWS if name in final and name.startswith(COSTS)]
    found += [describe(each) for each in _list_reached(summary)]
    return [*found, (WALL, units.seconds(summary["wall_s"]))]


def _list_reached(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is said of the shares of its best; nothing where no training has made the model better."""
    best = summary["best"].get(HEADLINE)
    return [] if best is not None and best["round"] == 0 else list(summary["reached"])
