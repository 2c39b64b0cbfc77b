"""The numbers in docs/papers of runs that belong to no study, from two tables in benchmarks/.

- fedbalancer_times.csv has the virtual seconds of each seed until the target, or until the end of a run that misses it
  (`reached` is 0). The target is the accuracy of the seed's first method at the end, and `mean_accuracy` is that of a
  method at the end, over its seeds; both are in percent.
- flash_aggregators.csv has the accuracy of selectors and aggregators in the last round, in percent, as means over three
  seeds, and differences to random selection with 95 % intervals.

`PYTHONPATH=src:tests python -m whole.paper_records` prints the rows and sentences.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pandas as pd

from whole.claims import ROOT, average, half_width

FIG7_EXPERIMENTS = ("fig7_fedavg", "fig7_scaffold", "fig7_qffl", "fig7_lowrank")  # the columns of Fig. 7's table
FIG7_ROWS = (
    ("1T, partial work", "partial_work"),
    ("FedBalancer, random clients", "fedbalancer_random"),
    ("FedBalancer with Oort", "fedbalancer"),
)
LONG_WINDOW = "har_106000_s"


@cache
def read_times() -> pd.DataFrame:
    return pd.read_csv(ROOT / "benchmarks" / "fedbalancer_times.csv")


def select_seconds(experiment: str, method: str) -> dict[int, float]:
    """Return the virtual seconds until the target by seed, of a method that reaches it on each seed."""
    rows = read_times().query("experiment == @experiment and method == @method")
    assert len(rows) > 0
    assert rows["reached"].all()
    return dict(zip(rows["seed"].tolist(), rows["virtual_s"].tolist(), strict=True))


def speed_up(baseline: Mapping[int, float], seconds: Mapping[int, float]) -> tuple[float, float, float]:
    """Return the geometric mean of the speed-up over seeds, and its 95 % t interval."""
    logs = [np.log(baseline[seed] / value) for seed, value in seconds.items()]
    mean, half = average(logs), half_width(logs)
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))


def format_speed_up(baseline: Mapping[int, float], seconds: Mapping[int, float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*speed_up(baseline, seconds))


def end_accuracy(experiment: str, method: str) -> float:
    """Return the mean accuracy of a method at the end of its runs, in percent."""
    return float(read_times().query("experiment == @experiment and method == @method")["mean_accuracy"].iloc[0])


def fig7_speed_ups(method: str, baseline: str = "1t") -> list[tuple[float, float, float]]:
    """Return the speed-ups of a method over another in the columns of Fig. 7's table."""
    return [speed_up(select_seconds(name, baseline), select_seconds(name, method)) for name in FIG7_EXPERIMENTS]


def list_fig7_rows() -> Iterator[str]:
    """Yield the rows of Fig. 7's table in docs/papers/fedbalancer.md."""
    baselines = [f"1 ({end_accuracy(name, '1t'):.1f} %)" for name in FIG7_EXPERIMENTS]
    yield f"| 1T | {' | '.join(baselines)} |"
    for label, method in FIG7_ROWS:
        yield f"| {label} | {' | '.join('{:.2f} [{:.2f}, {:.2f}]'.format(*x) for x in fig7_speed_ups(method))} |"


def format_range(values: list[float], sign: str = "") -> str:
    return f"{min(values):{sign}.2f} to {max(values):{sign}.2f}"


def list_fedbalancer_sentences() -> Iterator[str]:
    """Yield the sentences of docs/papers/fedbalancer.md on Fig. 7 and on the long window."""
    over_partial_work = [fig7_speed_ups(method, "partial_work") for _, method in FIG7_ROWS[1:]]
    assert all(low < 1 < high for column in over_partial_work for _, low, high in column)
    random_range, oort_range = (format_range([mean for mean, *_ in column]) for column in over_partial_work)
    yield (
        f"Over partial work alone, FedBalancer is {random_range} times as fast with random clients and {oort_range} "
        "times with Oort's. Each of these eight 95 % intervals includes 1."
    )
    falls = [end_accuracy("fig7_scaffold", name) for name in ("fedbalancer", "partial_work")]
    yield (
        "SCAFFOLD ends at {:.1f} % on average with Oort's clients, and at {:.1f} % with partial work and random clients"
    ).format(*falls)
    baseline = select_seconds(LONG_WINDOW, "random_1t")
    both, deadline, samples = (
        format_speed_up(baseline, select_seconds(LONG_WINDOW, f"random_{name}"))
        for name in ("both", "deadline", "samples")
    )
    yield (
        f"FedBalancer with random clients is {both} times as fast as the first row. Its deadline alone is {deadline} "
        f"times as fast, and its samples alone {samples}."
    )
    reached = read_times().query("experiment == @LONG_WINDOW").groupby("method")["reached"].agg(["sum", "size"])
    misses = reached["size"] - reached["sum"]
    assert {name for name, n_missed in misses.items() if n_missed} == {
        f"oort_{name}" for name in ("1t", "samples", "deadline", "both")
    }
    yield (
        f"Each of the four combinations with Oort's clients misses the target on {misses[misses > 0].min()} or "
        f"{misses.max()} of {reached['size'].max()} seeds."
    )


def format_fig7_index() -> str:
    """Return the result of Fig. 7 in docs/paper_results.md."""
    full = [mean for _, method in FIG7_ROWS[1:] for mean, *_ in fig7_speed_ups(method)]
    partial = [mean for mean, *_ in fig7_speed_ups("partial_work")]
    return (
        f"{min(full):.1f} to {max(full):.1f} times; partial work alone gives {min(partial):.1f} to {max(partial):.1f}"
    )


def list_flash_sentences() -> Iterator[str]:
    """Yield the sentences of docs/papers/flash.md on seven aggregators."""
    table = pd.read_csv(ROOT / "benchmarks" / "flash_aggregators.csv")
    compared = table[table["selector"] != "random"]
    plain = compared[compared["loss"] == "cross-entropy"]
    flash, robust = (
        compared[(compared["selector"] == "flash") & (compared["loss"] == loss)] for loss in ("cross-entropy", "robust")
    )
    assert (plain["selector"].nunique(), plain["aggregator"].nunique(), len(robust)) == (7, 7, 5)
    assert (plain["low"] < 0).all()
    assert ((robust["low"] < 0) & (robust["high"] > 0)).all()
    yield (
        f"No selector is more than {plain['difference'].max():.1f} points above random selection with any of the "
        "paper's aggregators, and no 95 % interval lies above 0 (uncorrected)."
    )
    yield (
        f"FLASH differs from random selection by {format_range(flash['difference'].tolist(), '+')} points, in the paper"
    )
    yield (
        "If both train with the robust loss (five aggregators), FLASH differs by "
        f"{format_range(robust['difference'].tolist())} points, and each interval includes 0."
    )


def main() -> None:
    """Print the rows and sentences."""
    print(*list_fig7_rows(), *list_fedbalancer_sentences(), format_fig7_index(), *list_flash_sentences(), sep="\n")


if __name__ == "__main__":
    main()
