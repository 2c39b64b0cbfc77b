"""Draw docs/selection.png: the clients that three selectors select in each round of the demo's setting.

    python docs/draw_selection.py        # three runs, about a minute

Each run is `train.py SETTING selector=...` with seed 0. The figure is 160 mm wide.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
SETTING = ("heterogeneity=noise_bimodal", "label_noise.share=0.7", "seed=0", "logger=none", "callback.figures=null")
SELECTORS = {
    "random selection": ("selector=random",),
    "FLASH": ("selector=flash",),
    "oracle: cleanest clients": ("selector=oracle_clean", "selector.share=0"),
}


def run(overrides: tuple[str, ...], logs: Path) -> Path:
    """Train with these options; return the run's folder."""
    subprocess.run([sys.executable, "train.py", *SETTING, *overrides, f"paths.logs={logs}"], cwd=ROOT, check=True)
    (folder,) = (logs / "runs").iterdir()
    return folder


def main() -> None:
    """Run the three selectors and draw the figure."""
    plt.rcParams.update({"font.size": 8, "axes.titlesize": 8, "axes.spines.right": False, "axes.spines.top": False})
    figure, axes = plt.subplots(1, 3, figsize=(6.3, 2.5), sharey=True, layout="constrained")
    for axis, (title, overrides) in zip(axes, SELECTORS.items(), strict=True):
        with tempfile.TemporaryDirectory() as logs:
            folder = run(overrides, Path(logs))
            clients = pd.read_parquet(folder / "clients.parquet", columns=["step", "client", "selected"])
            noise_rate = np.load(folder / "info.npz")["noise_rate"]
        rank = np.argsort(np.argsort(noise_rate, kind="stable"))  # 0 is the cleanest client
        picks = clients[clients["selected"]]
        noisy = noise_rate[picks["client"]] > 0
        for selected, colour, label in ((~noisy, "#0072B2", "correct labels"), (noisy, "#D55E00", "90 % label noise")):
            marker = "s" if label == "correct labels" else "_"
            axis.scatter(
                picks["step"][selected], rank[picks["client"]][selected], 4, colour, marker=marker, lw=0.9, label=label
            )
        axis.axhline((noise_rate == 0).sum() - 0.5, color="0.6", lw=0.6)
        axis.set(title=f"{title}\n{100 * noisy.mean():.0f} % of selections: noisy clients", xlabel="round")
    axes[0].set_ylabel("client, sorted by label noise")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(ROOT / "docs" / "selection.png", dpi=200)


if __name__ == "__main__":
    main()
