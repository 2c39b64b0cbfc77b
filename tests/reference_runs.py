"""Ten small runs that cover most of the code: their selections and results are compared with recorded ones.

    python tests/reference_runs.py            compares them with tests/reference_runs.json, bit for bit
    python tests/reference_runs.py --write    records them again, after a change that is meant to alter results

The test compares selections exactly and metrics to six digits, because processors round differently. `bits` is a digest
of the final weights; only the script compares it, for changes that must not alter a bit on the same machine.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from run_harness import FinishedRun, run_training

STORED = Path(__file__).with_suffix(".json")
FIGURES = ("test/", "server_val/", "time/virtual_s", "comm/", "clients/")
RUNS: dict[str, tuple[str, ...]] = {
    "random": (),
    "flash_scaffold": ("selector=flash", "agg=scaffold", "model=mlp", "heterogeneity=noniid30_noise15"),
    "ucb_cs_deadline": ("selector=ucb_cs", "deadline=fixed", "availability=bernoulli", "rounds=6"),
    "feddiverse_momentum": ("selector=feddiverse", "agg=fedavgm", "partition=label_shards", "selector.epochs=1"),
    "oort_fedmaba": ("selector=oort", "agg=fedmaba", "samples=random", "rounds=5"),
    "pyramidfl_quant": ("selector=pyramidfl", "codec=quant", "rounds=5"),
    "hcsfed_fedprox": ("selector=hcsfed", "agg=fedprox", "client=adam", "engine=sequential"),
    "fedpns_lowrank": ("selector=fedpns", "codec=lowrank", "model=mlp", "server=adam", "rounds=6"),
    "powd_fedbio": ("selector=powd", "agg=fedbio", "attack=loss_inflation"),
    "fedcor_rhfl": ("selector=fedcor", "agg=rhfl", "proxy=noise", "agg.batches=1", "rounds=4"),
}


def measure(name: str, logs: Path) -> dict[str, Any]:
    """Return a run's selections, arrivals, final metrics and the digest of its weights."""
    run = run_training(logs, *RUNS[name])
    metrics = {key: float(value) for key, value in run.last.metrics.items() if key.startswith(FIGURES)}
    return {"choices": run.cohorts, "arrived": count_arrivals(run), "metrics": metrics, "bits": bits(run)}


def count_arrivals(run: FinishedRun) -> list[list[int]]:
    return [report.arrived.tolist() for report in run.reports if report.step]


def bits(run: FinishedRun) -> str:
    return hashlib.sha256(run.weights().numpy().tobytes()).hexdigest()[:16]


def main(write: bool) -> int:
    with tempfile.TemporaryDirectory() as logs:
        measured = {name: measure(name, Path(logs) / name) for name in RUNS}
    if write:
        lines = (f'"{name}": {json.dumps(result)}' for name, result in measured.items())
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    stored = json.loads(STORED.read_text())
    changed = [name for name in RUNS if measured[name] != stored[name]]
    for name in changed:
        print(
            f"{name} differs in {', '.join(key for key in measured[name] if measured[name][key] != stored[name][key])}"
        )
    print(f"{len(RUNS) - len(changed)} of {len(RUNS)} runs are equal to the bit")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main("--write" in sys.argv))
