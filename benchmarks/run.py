"""`make bench`: fedcohort and the bare loop in turn, so that ratios hold when the machine's speed drifts.

python benchmarks/run.py [W1,W3] [repeats]   writes benchmarks/results.md
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
PEERS = {"bare": "bare.py", "fedcohort": "peer.py"}
MISTAKE = ("selector=ucb_cs", "selector.discount=2")
ROUNDS = {"W1": 10, "W2": 4, "W3": 6, "W4": 4}


def once(peer: str, workload: str) -> dict[str, list[float]]:
    """One process of `peer`, one thread."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / PEERS[peer]), workload, str(ROUNDS[workload])]
    done = subprocess.run(command, env=env, cwd=HERE, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout.split("RESULT ")[-1])
    return found


def rate(result: dict[str, list[float]]) -> float:
    """Seconds a round: the fastest but the first."""
    return min(result["times"][1:])


def compare(workload: str, repeats: int) -> str:
    runs: dict[str, list[dict[str, list[float]]]] = {peer: [] for peer in PEERS}
    for _ in range(repeats):
        for peer in PEERS:
            runs[peer].append(once(peer, workload))
    rows = []
    for peer, found in runs.items():
        ratio = statistics.median(rate(a) / rate(b) for a, b in zip(found, runs["bare"], strict=True))
        first = statistics.median(run["times"][0] for run in found)
        rows.append(f"| {workload} | {peer} | {ratio:.2f} | {first:.2f} | {found[0]['losses'][-1]:.4f} |")
    return "\n".join(rows)


def startup(*words: str) -> float:
    """Median seconds of `python train.py <words>` over five runs."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "train.py", *words], cwd=HERE.parent, capture_output=True, check=False)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def main(workloads: list[str], repeats: int) -> None:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "lightning"))
    lines = [
        "# Against a bare loop",
        "",
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()},",
        f"{versions}; medians of {repeats} interleaved repeats; one process, one thread, float32; evaluation on,",
        "tracking off. `ratio` is wall seconds a round over those of the bare loop in the same repeat.",
        "`make bench` writes this file.",
        "",
        "| workload | peer | ratio | first round, s | final loss |",
        "|---|---|---|---|---|",
        *(compare(workload, repeats) for workload in workloads),
        "",
        "| start-up | median s |",
        "|---|---|",
        f"| `python train.py --help` | {startup('--help'):.1f} |",
        f"| `python train.py {' '.join(MISTAKE)}` (a range error) | {startup(*MISTAKE):.1f} |",
    ]
    text = "\n".join(lines) + "\n"
    (HERE / "results.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else ["W1", "W3"]
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
