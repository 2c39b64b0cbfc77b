"""How FedDiverse's estimated triplets correlate with the true ones, over the runs of a folder.

python benchmarks/papers/triplets.py logs/papers/feddiverse_ablation

Per component: Pearson's and Spearman's correlation over clients, mean and range over seeds; and the mean of both.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from scipy import stats

from fedcohort.data import skew
from fedcohort.startup import components, load
from fedcohort.startup.compose import Composed

NAMES = ("class imbalance", "attribute imbalance", "spurious correlation")


def truth(config: dict[str, Any], choices: dict[str, str]) -> np.ndarray:
    """The true triplets of a run's clients, [K, 3]."""
    made = Composed(config, choices, ())
    federation = load.deal(made, {group: components.make(made, group) for group in load.PARTS})
    counts = federation.group_counts
    assert counts is not None, "these data have attributes"
    return skew.triplets(counts.reshape(len(counts), federation.n_classes, -1))


def told(folder: Path) -> np.ndarray:
    """What the clients' estimates were, [K, 3]."""
    table = pd.read_parquet(folder / "clients.parquet")
    last = table[table["step"] == table["step"].max()].sort_values("client")
    found: np.ndarray = last[[f"part_{name}" for name in skew.COMPONENTS]].to_numpy()
    return found


def main(logs: Path) -> str:
    found = []
    for folder in sorted(logs.glob("runs/*")):
        config: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
        if config["selector"]["source"] != "estimated" or config["selector"]["cross"] != "signed":
            continue
        status: Any = OmegaConf.to_container(OmegaConf.load(folder / "status.json"))
        found.append((told(folder), truth(config, status["choices"])))
    lines = [
        f"FedDiverse's estimates beside the truth, {len(found)} seeds of {len(found[0][0])} clients.",
        "",
        "| component | Pearson's r | Spearman's | mean estimate | mean truth |",
        "|---|---|---|---|---|",
    ]
    for c, name in enumerate(NAMES):
        pairs = [(a[:, c], b[:, c]) for a, b in found]
        both = [_ranged([float(f(a, b).statistic) for a, b in pairs]) for f in (stats.pearsonr, stats.spearmanr)]
        means = (float(np.mean([each[i] for each in pairs])) for i in (0, 1))
        lines.append(f"| {name} | {both[0]} | {both[1]} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines)


def _ranged(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1])) + "\n")
