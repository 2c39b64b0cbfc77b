"""Measure the settings of our studies as `fedcohort diagnose` does: benchmarks/near_settings.csv.

    FASHION_MNIST=folder UCI_HAR=folder CIFAR10=folder python benchmarks/near_settings.py [seeds]

A row is a setting and a seed, with the descriptors of `fedcohort.results.near_settings`. Each federation is trained
with random selection until its second probe, or longer if the model does not tell right labels from wrong ones yet. If
studies share a federation, only the first of `STUDIES` that has it is measured: it has the longest horizon. Rows that
the file already has are kept. `PYTHONPATH=src:tests python -m whole.test_near_settings_claims` then writes the table
that pages of diagnoses read.
"""

import csv
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.api.run import run_with_overrides
from fedcohort.diagnosis.label_noise import rounds_between_probes
from fedcohort.results.diagnosis import diagnose_run
from fedcohort.results.near_settings import DESCRIPTOR_NAMES, describe_federation
from fedcohort.startup.compose import compose_run
from fedcohort.study import definition_file
from fedcohort.types import Values

SCRIPT = Path(__file__).resolve()
ROOT = SCRIPT.parents[1]
STUDIES = ("plateau_digits", "auto_unseen", "auto_networks", "regimes_digits", "regimes_fashion", "cohorts_digits")
SEEDS = (7000,)  # not in any of the studies
OVERRIDES = ("selector=auto", "selector.act=false", "logger=none")
N_PROBES = (2, 4, 8)  # the first number of probes that shows all descriptors counts
FEDERATION_OPTIONS = (
    *("clients", "cohort", "split", "model", "dataset", "partition", "label_noise", "feature_noise"),
    *("device", "deadline", "availability"),
)
COLUMNS = ("study", "setting", "kinds", "seed", *DESCRIPTOR_NAMES)


def list_kinds(choices: Mapping[str, str], has_clock: bool) -> str:
    """Return the kinds of heterogeneity of a setting, as `label noise + label skew`, from its chosen options."""
    partition = {"iid": "", "natural": "natural clients", "quantity": "client size"}
    kinds = (
        "label noise" if choices["label_noise"] != "none" else "",
        partition.get(choices["partition"], "label skew"),
        "other inputs" if choices["feature_noise"] != "none" else "",
        "clock" if has_clock else "",
        "availability" if choices["availability"] != "always" else "",
    )
    return " + ".join(filter(None, kinds)) or "equal clients"


def list_settings() -> Iterator[tuple[str, str, str, tuple[str, ...], int]]:
    """Yield study, setting, kinds of heterogeneity and overrides of each federation, and the rounds between probes."""
    federations: list[Any] = []
    for study_name in STUDIES:
        study = definition_file.load_study(ROOT / "studies" / study_name)
        for setting in study.settings:
            overrides = study.list_overrides(setting, OVERRIDES)
            composition = compose_run(overrides, ROOT / "configs")
            config = composition.config
            has_clock = config["until"]["virtual_s"] is not None
            federation = [has_clock, *(config[option] for option in FEDERATION_OPTIONS)]
            if federation not in federations:
                federations.append(federation)
                interval = rounds_between_probes(config["selector"]["first"], config["clients"] or 0, config["cohort"])
                yield study_name, setting, list_kinds(composition.choices, has_clock), overrides, interval


def measure(overrides: Sequence[str], interval: int) -> Values:
    """Return the descriptors that a run with probes each `interval` rounds shows; NaN where they remain unknown."""
    for n_probes in N_PROBES:
        with tempfile.TemporaryDirectory() as logs:
            options = (f"selector.probes={n_probes}", f"rounds={n_probes * interval + 1}", f"paths.logs={logs}")
            descriptors = describe_federation(diagnose_run(run_with_overrides([*overrides, *options]).folder))
        if np.isfinite(descriptors).all():
            break
    return descriptors


def main(seeds: tuple[int, ...]) -> None:
    """Measure all settings on all seeds, and add their rows to the file."""
    path = SCRIPT.with_suffix(".csv")
    rows = {tuple(row[:4]): row for row in csv.reader(path.open())} if path.exists() else {}
    rows = {COLUMNS[:4]: list(COLUMNS)} | rows
    for study_name, setting, kinds, overrides, interval in list_settings():
        for seed in seeds:
            key = (study_name, setting, kinds, str(seed))
            if key not in rows:
                descriptors = measure((*overrides, f"seed={seed}"), interval)
                rows[key] = [*key, *(f"{value:.4f}" for value in descriptors)]
                print(*rows[key], flush=True)
                with path.open("w", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(rows.values())


if __name__ == "__main__":
    main(tuple(int(seed) for seed in sys.argv[1:]) or SEEDS)
