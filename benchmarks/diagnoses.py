"""What `fedcohort diagnose` finds in the federations of studies/auto_unseen, against what the simulation knows.

    FASHION_MNIST=folder UCI_HAR=folder python benchmarks/diagnoses.py [seeds]      writes diagnoses.csv and .md

Each federation is trained with random selection until its second probe. A row of the table is a setting. AUC is the
probability that a client with more than the median rate of wrong labels gets a larger estimated rate than another one.
The nominal 95 % interval of a rate covers if it holds the simulated rate above that of the cleanest tenth of the
clients. Pages of diagnoses show no intervals, because the coverage is not between 85 and 95 %.
"""

import datetime
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fedcohort.api.run import run_with_overrides
from fedcohort.diagnosis.excess_loss import LOW_QUANTILE
from fedcohort.results.diagnosis import RunDiagnosis, diagnose_run
from fedcohort.study import definition_file

SCRIPT = Path(__file__).resolve()
STUDY = SCRIPT.parents[1] / "studies" / "auto_unseen"
SEEDS = (3000, 3001, 3002)
PROBES = ("selector=auto", "selector.act=false", "selector.probes=2", "rounds=25", "logger=none")
MISFIT_SHARE = 0.3  # share of the spread over clients that the error of each rate has for misfit of the model
WITHOUT_PROBES = "speeds"  # its runs end by the clock


def area_under_curve(rates: np.ndarray, is_noisy: np.ndarray) -> float:
    """Return the AUC of estimated rates [n] for the noisy clients; NaN if all clients are equal."""
    if is_noisy.all() or not is_noisy.any():
        return float("nan")
    differences = rates[is_noisy][:, None] - rates[~is_noisy]
    return float((differences > 0).mean() + (differences == 0).mean() / 2)


def describe(diagnosis: RunDiagnosis) -> dict[str, object]:
    """Return the columns of one run."""
    truth = diagnosis.info.noise_rate
    row: dict[str, object] = {"case": diagnosis.noise_case, "advice": diagnosis.advice}
    row |= {f"gap_{number}": probe.noise.gap for number, probe in enumerate(diagnosis.probe_results, 1)}
    row |= {"probe_bytes": diagnosis.probe_bytes}
    if not diagnosis.valid_probes:
        return row
    probe = diagnosis.valid_probes[-1]
    fit, true_rates = probe.noise.fit, truth[probe.clients]
    excess = true_rates - np.quantile(true_rates, LOW_QUANTILE)
    row["auc"] = area_under_curve(fit.noise_rate, true_rates > np.median(true_rates))
    error = np.sqrt(fit.variance + (MISFIT_SHARE * fit.excess_deviation) ** 2) / fit.nats_per_wrong_label
    row["coverage"] = float((np.abs(fit.noise_rate - excess) <= 1.96 * error).mean())
    return row


def main(seeds: tuple[int, ...]) -> None:
    """Run all settings on all seeds, and write both files."""
    study, rows = definition_file.load_study(STUDY), []
    for name in study.settings:
        if name == WITHOUT_PROBES:
            continue
        for seed in seeds:
            with tempfile.TemporaryDirectory() as logs:
                overrides = study.list_overrides(name, PROBES, (f"seed={seed}", f"paths.logs={logs}"))
                rows.append(
                    {"setting": name, "seed": seed} | describe(diagnose_run(run_with_overrides(overrides).folder))
                )
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    table.to_csv(SCRIPT.with_suffix(".csv"), index=False, float_format="%.4g")
    SCRIPT.with_suffix(".md").write_text(write_page(table, len(seeds)))


def write_page(table: pd.DataFrame, n_seeds: int) -> str:
    """Return the page with one line per setting."""
    study = definition_file.load_study(STUDY)
    lines = [
        "# Diagnoses of federations whose truth is known",
        "",
        f"`python benchmarks/diagnoses.py`, {datetime.date.today().isoformat()}, {n_seeds} seeds per setting, two "
        "probes under random selection. Gaps and AUC are means over seeds. AUC is of the clients with wrong labels, "
        "where clients differ. The coverage is of the approximate 95 % intervals of the clients' rates.",
        "",
        "| setting | first gap | second gap | taken for noisy | advice | AUC | coverage |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    for name, rows in table.groupby("setting", sort=False):
        persists = int((rows["case"] == "persists").sum())
        advice = ", ".join(f"{value} {count}" for value, count in rows["advice"].value_counts().items())
        numbers = [
            rows[column].mean() if column in rows else np.nan for column in ("gap_1", "gap_2", "auc", "coverage")
        ]
        first_gap, second_gap, auc, coverage = ("" if np.isnan(number) else f"{number:.2f}" for number in numbers)
        label = study.settings[str(name)].label
        lines.append(
            f"| {label} | {first_gap} | {second_gap} | {persists} of {len(rows)} | {advice} | {auc} | {coverage} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(tuple(int(seed) for seed in sys.argv[1:]) or SEEDS)
