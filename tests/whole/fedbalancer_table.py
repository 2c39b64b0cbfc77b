"""The numbers of docs/papers/fedbalancer.md on FedBalancer's Table 1, from the Parquet files of the study.

As in the paper, the target of a seed is the accuracy that the best of FedAvg+1T, 2T, SPC and WFA has at the end. The
speed-up is over that variant. FedAvg+2T is not a method of the study: no client takes longer than 2T, so that its runs
are those of WFA.

`PYTHONPATH=src:tests python -m whole.fedbalancer_table` prints the rows of the table and the sentences.
"""

import math
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from fedcohort.results.run import Evaluations
from fedcohort.results.target import Cost, SpeedUp, find_costs_to_target, measure_speed_up
from whole.claims import ROOT, average, format_interval, read_runs
from whole.paper_records import format_speed_up

STUDY, SETTING, CLOCK_S = "paper_fedbalancer_network", "har", 10600.0
VARIANTS = ("avg_1t", "wfa", "spc")  # the best of these methods sets the target
# method, its name in the table, and the paper's speed-up and accuracy
ROWS = (
    ("avg_1t", "FedAvg+1T", "0.49 ± 0.36", "81.4 ± 2.9"),
    ("wfa", "FedAvg+2T, WFA, Prox+2T (the same runs)", "0.68 ± 0.07", "81.9 ± 1.4"),
    ("spc", "FedAvg+SPC", "0.91 ± 0.13", "84.0 ± 1.6"),
    ("prox_1t", "Prox+1T", "0.96 ± 0.09", "84.9 ± 0.8"),
    ("fedss", "SampleSelection (`fedss`)", "0.90 ± 0.05", "84.5 ± 0.8"),
    ("fedbalancer", "FedBalancer", "1.56 ± 0.28", "85.5 ± 3.4"),
    ("released", "FedBalancer as released", "", ""),
    ("oort", "Oort's clients, all samples, 1T, partial work", "", ""),
    ("fedbalancer_random", "FedBalancer with random clients", "", ""),
)

PERCEPTRON = "paper_fedbalancer"
COMPONENT_ROWS = (  # clients, samples and deadline; the method in the study of the perceptron
    ("random | FedBalancer | FedBalancer", "fedbalancer_random"),
    ("Oort | all | 1T", "oort"),
    ("Oort | FedBalancer | FedBalancer", "fedbalancer"),
)


@cache
def read_evaluations() -> dict[str, dict[int, Evaluations]]:
    """Return the evaluations of each run within the virtual time of the study, by method and seed."""
    curves = pd.read_parquet(ROOT / "studies" / STUDY / "curves.parquet")
    curves = curves[(curves["cell"] == SETTING) & (curves["virtual_s"] <= CLOCK_S)]
    runs: dict[str, dict[int, Evaluations]] = {}
    for (method, seed), rows in curves.groupby(["selector", "seed"]):
        step, value, virtual_s = (rows[name].to_numpy(dtype=float) for name in ("step", "value", "virtual_s"))
        runs.setdefault(str(method), {})[int(str(seed))] = Evaluations(step, value, {"virtual_s": virtual_s}, CLOCK_S)
    return runs


@cache
def last_accuracies(method: str) -> dict[int, float]:
    """Return the last accuracy of each seed, in percent."""
    return {seed: 100 * float(run.values[-1]) for seed, run in read_evaluations()[method].items()}


@cache
def targets() -> dict[int, float]:
    """Return the target of each seed, in percent."""
    return {seed: max(last_accuracies(name)[seed] for name in VARIANTS) for seed in last_accuracies("avg_1t")}


@cache
def costs(method: str) -> dict[int, Cost]:
    """Return the virtual seconds of each seed until its target."""
    runs = read_evaluations()[method]
    return {seed: find_costs_to_target(run, targets()[seed] / 100)["virtual_s"] for seed, run in runs.items()}


@cache
def reference_costs(fastest: bool = False) -> dict[int, Cost]:
    """Return the cost of the variant that set the target of each seed; fastest: of the variant that met it first."""
    by_seed = {}
    for seed, target in targets().items():
        names = VARIANTS if fastest else [name for name in VARIANTS if last_accuracies(name)[seed] == target]
        by_seed[seed] = min(
            (costs(name)[seed] for name in names if costs(name)[seed].is_met), key=lambda cost: cost.value
        )
    return by_seed


@cache
def find_speed_up(method: str, fastest: bool = False) -> SpeedUp:
    """Return the speed-up of a method over the variant of `reference_costs`."""
    return measure_speed_up(reference_costs(fastest), costs(method))


def sorted_ratios(method: str) -> list[float]:
    """Return the speed-ups of all seeds in order, 0 for a seed that never met the target."""
    base = reference_costs()
    return sorted(base[seed].value / cost.value if cost.is_met else 0.0 for seed, cost in costs(method).items())


def format_median(method: str) -> str:
    """Return the median speed-up and its interval by order statistics, the second to the ninth of ten seeds.

    The median is the geometric mean of the two middle seeds. A seed that never met the target is slower than all
    others, and `-` stands for it.
    """
    ratios = sorted_ratios(method)
    assert len(ratios) == 10
    assert round(100 * (1 - 2 * stats.binom.cdf(1, 10, 0.5))) == 98
    middle, low, high = (f"{x:.2f}" if x else "-" for x in (math.sqrt(ratios[4] * ratios[5]), ratios[1], ratios[-2]))
    return f"{middle} [{low}, {high}]"


def format_mean(result: SpeedUp) -> str:
    """Return the geometric mean over seeds with its 95 % interval, and the sign of a bound."""
    return f"{result.bound} {result.ratio:.2f} [{result.low:.2f}, {result.high:.2f}]".lstrip()


def format_row(method: str, label: str, paper_speed_up: str, paper_accuracy: str) -> str:
    """Return a row of the table in docs/papers/fedbalancer.md."""
    accuracies = np.array(list(last_accuracies(method).values()))
    n_met = sum(cost.is_met for cost in costs(method).values())
    median = f"{format_median(method)}, {n_met} of {len(accuracies)}"
    accuracy = f"{accuracies.mean():.1f} ± {accuracies.std(ddof=1):.1f}"
    cells = (label, paper_speed_up, median, format_mean(find_speed_up(method)), paper_accuracy, accuracy)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def describe_gain(study: str, method: str) -> str:
    """Return the gain of a method over Prox+1T in points, in one of FedBalancer's studies."""
    late_values = read_runs(study, SETTING)
    return format_interval([late_values[method][seed] - value for seed, value in late_values["prox_1t"].items()])


def describe() -> list[str]:
    """Return the parts of docs/papers/fedbalancer.md that contain computed numbers."""
    spent = {
        (column, name): average(by_seed.values())
        for column in ("bytes", "client_flops")
        for name, by_seed in read_runs(STUDY, SETTING, column).items()
    }
    (bytes_1t, bytes_oort), (flops_1t, flops_oort) = (
        [spent[column, "fedbalancer"] / spent[column, name] for name in ("avg_1t", "oort")]
        for column in ("bytes", "client_flops")
    )
    numbers = pd.read_csv(ROOT / "studies" / STUDY / "tables" / "numbers.csv", index_col="selector")
    assert numbers.index[numbers["sign"] == 1].tolist() == ["oort"]
    n_tests = (numbers["role"] == "method").sum()
    over_fastest = format_mean(find_speed_up("fedbalancer", fastest=True))
    return [
        f"Against the fastest variant of each seed the geometric mean is {over_fastest} (95 %).",
        f"With Oort's clients alone the median is {format_median('oort')}, and for FedBalancer with random clients "
        f"{format_median('fedbalancer_random')} (98 %).",
        f"FedBalancer is {format_mean(measure_speed_up(costs('oort'), costs('fedbalancer')))} times as fast as Oort's "
        "clients",
        "only Oort's clients alone are significantly better than Prox+1T (paired t-tests, Holm over "
        f"{n_tests} methods). Oort's clients alone gain {describe_gain(STUDY, 'oort')} points",
        f"FedBalancer gains {describe_gain(STUDY, 'fedbalancer')} and with random clients "
        f"{describe_gain(STUDY, 'fedbalancer_random')}",
        f"{bytes_1t:.1f} times the bytes of FedAvg+1T and computed {flops_1t:.1f} times its FLOPs, and "
        f"{bytes_oort:.1f} and {flops_oort:.1f} times those of Oort's clients alone",
    ]


def list_component_rows() -> list[str]:
    """Return the rows on the perceptron: speed-up and accuracy over random clients, all samples and 1T."""
    seconds = read_runs(PERCEPTRON, SETTING, "virtual_s_to_target")
    tables = ROOT / "studies" / PERCEPTRON / "tables"
    speeds = pd.read_csv(tables / "speed_virtual_s.csv", index_col="method").iloc[:, 0]
    numbers = pd.read_csv(tables / "numbers.csv", index_col="selector")
    rows = [f"| random | all | 1T | 1 | {average(read_runs(PERCEPTRON, SETTING)['prox_1t'].values()):.1f} % |"]
    for label, method in COMPONENT_ROWS:
        faster, better = (" *" if mark else "" for mark in ("▲" in speeds[method], numbers.loc[method, "sign"] == 1))
        speed_up = format_speed_up(seconds["prox_1t"], seconds[method])
        rows.append(f"| {label} | {speed_up}{faster} | {describe_gain(PERCEPTRON, method)}{better} |")
    return rows


def describe_components() -> str:
    """Return the part of docs/papers/fedbalancer.md on FedBalancer and Oort's clients with the perceptron."""
    seconds = read_runs(PERCEPTRON, SETTING, "virtual_s_to_target")
    speed_up = format_speed_up(seconds["oort"], seconds["fedbalancer"])
    return f"FedBalancer is {speed_up} times as fast as Oort's clients alone:"


def format_index_row() -> str:
    """Return the row of FedBalancer's Table 1 in docs/paper_results.md."""
    return (
        "| [FedBalancer, Table 1](papers/fedbalancer.md#table-1) | 1.56 ± 0.28 times as fast | medians with 98 % "
        f"intervals: {format_median('fedbalancer')}; Oort's client selection alone {format_median('oort')} "
        "| in part: Oort's client selection earns the speed-up |"
    )


def main() -> None:
    """Print all rows and texts."""
    rows = [*(format_row(*row) for row in ROWS), *list_component_rows()]
    print(*rows, *describe(), describe_components(), format_index_row(), sep="\n")


if __name__ == "__main__":
    main()
