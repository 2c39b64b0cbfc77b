"""How cost grows: seconds and memory of a round by population (flat) and by cohort (linear).

python benchmarks/growth.py   prints a table; clients have 10 samples of 20 features, the model is logistic regression
"""

import json
import resource
import statistics
import subprocess
import sys

import numpy as np
import torch

from peer import federation_of, run


def one(clients: int, cohort: int) -> None:
    """One process's measurement, as JSON."""
    from fedcohort.model.logreg import LogReg

    g = np.random.default_rng(0)
    x = torch.from_numpy(g.standard_normal((10 * clients, 20), dtype=np.float32))
    y = torch.from_numpy(g.integers(0, 10, 10 * clients))
    held = federation_of(np.arange(clients + 1) * 10, x, y, x[:1000], y[:1000], 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def chosen(t: int) -> np.ndarray:
        return np.sort(np.random.default_rng(t).choice(clients, cohort, replace=False))

    clock = run(LogReg().build((20,), 10), held, chosen, cohort, 10, 0.1, 20)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    result = {"ms": 1000 * statistics.median(clock.ticks[2:]), "mb": grown / 1024}
    sys.stdout.write("RESULT " + json.dumps(result) + "\n")


def main() -> None:
    out = sys.stdout.write
    out("| clients | cohort | ms a round | MB beside the data |\n|---|---|---|---|\n")
    for clients, cohort in [(100, 50), (1000, 50), (10_000, 50), (100_000, 50), (10_000, 100), (10_000, 200)]:
        command = [sys.executable, __file__, str(clients), str(cohort)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.split("RESULT ")[-1])
        out(f"| {clients:,} | {cohort} | {found['ms']:.1f} | {found['mb']:.0f} |\n")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        one(int(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
