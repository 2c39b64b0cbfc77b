"""The result of a run: `summary.json` for programs, a table for people."""

import json
import logging
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from fedcohort import ranges, units
from fedcohort.observe import reached, troubles
from fedcohort.observe.console import console
from fedcohort.record import card
from fedcohort.record.folder import write_atomically
from fedcohort.record.history import HEADLINE, History, expect, read, wall_s
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.provenance import list_forced
from fedcohort.round.budget import Spent
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")

NAME = "summary.json"
BEST = (HEADLINE, "server_val/acc", "clients/acc_mean", "clients/acc_worst5")
MORE = "callback.summary.full=true"
WORST = "clients/acc_worst5"
SHARE = 0.9  # of its best, whose cost is worth a line at first
WALL = "wall time (this machine)"
EVALUATIONS = ("test/", "server_val/", "clients/")  # every `eval.every` and `eval.clients_every` rounds
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
MEANS = (  # over the rounds, of what differs from round to round
    ("weight that liars got, mean over rounds", "attack/weight", units.percent),
    ("their share of those who arrived, mean over rounds", "attack/share", units.percent),
)


class Summary(Observer):
    """Writes and prints the summary when the run ends, however it ends, from the journal: a resumed run is whole.

    Attributes:
        full: whether the printed table has all lines, or those for a first look.
    """

    def __init__(self, *, full: bool) -> None:
        ranges.flag("full", full)
        self._full = full
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Keep what the summary says about the run. Raises `IncompatibleConfig` where there is no journal."""
        expect(info.folder, "callback.summary")
        self._info = info

    def observe(self, report: RoundReport) -> None:
        """Do nothing: the journal has it."""

    def finish(self, status: str) -> None:
        """Write `summary.json` and print the table, where there is anything to show."""
        if self._info is None or status == "dropped":
            return
        summary = summarise(self._info, read(self._info.folder), status)
        for line in summary["warnings"]:
            log.warning("%s", line)
        write_atomically(self._info.folder / NAME, json.dumps(_finite(summary), indent=1, default=str) + "\n")
        if summary["rounds"]:
            show(summary, full=self._full)


def summarise(info: RunInfo, history: History, status: str, now_ms: int | None = None) -> dict[str, Any]:
    """Return everything that `summary.json` holds.

    `final` is the last value of each metric that was measured at all, `earlier` the round of those evaluations that the
    last round didn't make; `means`, of a few, are over all rounds. now_ms: when the run has ended, None for now.
    """
    final = history.final
    last = {name: steps[-1] for name, steps in history.measured.items() if name.startswith(EVALUATIONS)}
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    spent = Spent().go_on(history.steps[-1] if history.steps else 0, final)
    return {
        "status": status,
        "name": info.name,
        "folder": str(info.folder),
        "rounds": history.steps[-1] if history.steps else 0,
        "rounds_asked": info.rounds,
        "ended_by": info.budget.list_reached(spent) if status == "finished" else [],
        "end": info.budget.describe(spent) if status == "finished" else "",
        "rounds_without_update": sum(step > 0 for step in history.steps) - len(troubles.find_fruitful(history)),
        "warnings": troubles.tell(info, history),
        "final": final,
        "means": {name: float(history.metrics[name].mean()) for _, name, _ in MEANS if name in final},
        "earlier": {name: step for name, step in last.items() if step < history.steps[-1]},
        "best": {name: best for name in BEST if (best := _best(history, name))},
        "reached": reached.shares_of_best(history),
        "fingerprint": history.fingerprints[-1] if history.fingerprints else None,
        "wall_s": wall_s(card.starts_ms(info.folder), [*history.times, now]),
        "virtual_s": final.get("time/virtual_s"),
        "bytes": {way: final.get(f"comm/{way}_bytes") for way in ("down", "up", "probe")},
        "client_flops": final.get("comp/client_flops"),
        "server_flops": final.get("comp/server_flops"),
        "choices": dict(info.choices),
        "tags": {key: value for key, value in info.tags.items() if key != "tracking"},
        "seed": info.seed,
        "config_hash": info.config_hash,
        "commit": info.commit,
        "dirty": info.dirty,
        "versions": dict(info.versions),
        "starts": [dict(start) for start in info.starts],
        "forced": list_forced(info.starts),
    }


def show(summary: Mapping[str, Any], *, full: bool) -> None:
    """Print the table, with its second part where it is to be full."""
    from rich.table import Table

    done, total = summary["rounds"], summary["rounds_asked"]
    table = Table()
    table.add_column("result")
    table.add_column("value", justify="right")
    for label, value in rows(summary):
        table.add_row(label, value)
    table.add_section()
    rest = more_rows(summary)
    for label, value in rest if full else [(f"{len(rest)} lines more", MORE)]:
        table.add_row(label, value)
    out = console()
    ended = f"{summary['name']}: {summary['status']} after {done} of {total} rounds"
    out.print(f"{ended}: {summary['end']}" if summary["end"] else ended, soft_wrap=True, markup=False)
    out.print(table)
    out.print(f"folder  {summary['folder']}", soft_wrap=True, markup=False)


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
    found += [reached.describe(each) for each in _list_reached(summary) if each["share"] == SHARE]
    found += [(label, text(final[name])) for label, name, text in ROWS if name == reached.CLOCK and name in final]
    if {reached.DOWN, reached.UP} <= final.keys():
        found.append(("bytes, down and up", units.bytes_(final[reached.DOWN] + final[reached.UP])))
    found += [("resume=force", "; ".join(summary["forced"]))] if summary["forced"] else []
    if empty := summary["rounds_without_update"]:
        found.append(("rounds without an update", f"{empty} of {summary['rounds']}"))
    return [*found, (WALL, units.seconds(summary["wall_s"])), ("fingerprint", str(summary["fingerprint"]))]


def more_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The lines that `rows` leaves out."""
    final, when = summary["final"], partial(date, summary)
    found = [(f"test loss{when('test/loss')}", units.number(final["test/loss"]))] if "test/loss" in final else []
    found += [reached.describe(each) for each in _list_reached(summary) if each["share"] != SHARE]
    shown = (WORST, reached.CLOCK)
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
    found += [reached.describe(each) for each in _list_reached(summary)]
    return [*found, (WALL, units.seconds(summary["wall_s"]))]


def _list_reached(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is said of the shares of its best; nothing where no training has made the model better."""
    best = summary["best"].get(HEADLINE)
    return [] if best is not None and best["round"] == 0 else list(summary["reached"])


def _finite(value: object) -> object:
    """`value` with null for what is not finite, for readers stricter than Python's."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _best(history: History, name: str) -> dict[str, float] | None:
    """The highest value of an accuracy and the first round that reached it."""
    if name not in history.metrics or history.metrics[name].isna().all():
        return None
    values = history.metrics[name].to_numpy()
    at = int(np.nanargmax(values))
    return {"value": float(values[at]), "round": history.steps[at]}
