"""Round time and peak memory of fedcohort, compared with a plain PyTorch loop (`make bench`).

    python benchmarks/run.py [W1,W2,...] [repeats]   writes benchmarks/results.md, for all workloads by default

Both run in turns, so that ratios stay valid when the speed of the machine changes.
"""

import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from fedcohort.host.processor import has_bf16, name_processor

FOLDER = Path(__file__).parent
RANGE_ERROR = ("selector=ucb_cs", "selector.discount=2")
TRACKED = (
    *("dataset=fashion_mnist", "clients=100", "model=mlp", "client.epochs=1", "client.batch=32", "rounds=50"),
    *("heterogeneity=iid", "eval.clients_every=0", "callback.figures=null"),
)
ROUNDS = {"W1": 10, "W2": 4, "W3": 6, "W4": 4, "W5": 3, "W6": 3}
COLUMNS_NOTE = """\
tracking off. `ratio` divides the wall time of a run's fastest round, without the first, by that of the bare loop with
one process in the same repeat. It is given as the median and the range of the repeats. `first round` covers different
work: for the bare loop only the round, after data, model and processes are ready. For fedcohort it starts after
imports, data and components, and includes the set-up of Lightning, its processes and the evaluation of the initial
model. `peak memory` is the sum over all processes, measured in a separate run."""
MEMORY_INTERVAL_S = 0.05  # seconds between two readings of memory, which use a quarter of a core


@dataclass(frozen=True)
class Peer:
    """One implementation and its configuration: a row of the table.

    Attributes:
        name: label in the table.
        script: script of this folder that runs it.
        words: arguments of the script after the number of rounds.
        workloads: workloads that it runs; all if empty.
    """

    name: str
    script: str
    arguments: tuple[str, ...]
    workloads: tuple[str, ...] = ()


def peers() -> list[Peer]:
    """Return the peers that this machine supports: bf16 needs a processor that computes in it, CUDA a GPU."""
    available = [
        Peer("bare, 1 process", "bare.py", ("1",)),
        Peer("fedcohort, 1 process", "peer.py", ("1",)),
        Peer("bare, 2 processes", "bare.py", ("2",)),
        Peer("fedcohort, 2 processes", "peer.py", ("2",)),
    ]
    if has_bf16():
        available.append(Peer("fedcohort, 2 processes, bf16", "peer.py", ("2", "cpu", "bf16"), ("W2", "W4")))
    if torch.cuda.is_available():
        cuda = ("W1", "W3", "W4")
        available.append(Peer("bare, CUDA", "bare.py", ("1", "cuda"), cuda))
        available.append(Peer("fedcohort, CUDA", "peer.py", ("1", "cuda"), cuda))
    return available


def memory(pid: int) -> float:
    """Return the proportional set size of a process and its descendants in MB; shared pages count once."""
    total = 0.0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        total += sum(memory(int(child)) for child in children)
    return total


def announce(step_text: str) -> None:
    """Print what is measured next on standard error; it may take minutes, and standard output has only the page."""
    sys.stderr.write(f"{step_text}\n")


def run_peer(peer: Peer, workload: str, with_memory: bool) -> dict[str, Any]:
    """Run a peer with one thread per process and return its result and `peak_mb`.

    With `with_memory`, reading the memory slows the run down, so that its times must not be used.
    """
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / peer.script), workload, str(ROUNDS[workload]), *peer.arguments]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=env, cwd=FOLDER, stdout=output, stderr=subprocess.DEVNULL, text=True)
        peak = 0.0
        while with_memory and process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(MEMORY_INTERVAL_S)
        process.wait()
        output.seek(0)
        report: dict[str, Any] = json.loads(output.read().split("RESULT ")[-1])
    return {**report, "peak_mb": peak}


def fastest_round_s(result: dict[str, Any]) -> float:
    """Return the seconds of the fastest round, without the first."""
    return float(min(result["times"][1:]))


def compare_peers(workload: str, repeats: int) -> str:
    """Run all peers on a workload and return their table rows."""
    compared = [peer for peer in peers() if not peer.workloads or workload in peer.workloads]
    peaks = {}
    for peer in compared:
        announce(f"{workload}, memory: {peer.name}")
        peaks[peer.name] = run_peer(peer, workload, with_memory=True)["peak_mb"]
    runs: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in compared}
    for repeat in range(repeats):
        for peer in compared:
            announce(f"{workload}, repeat {repeat + 1} of {repeats}: {peer.name}")
            runs[peer.name].append(run_peer(peer, workload, with_memory=False))
    base = runs[compared[0].name]
    rows = []
    for name, reports in runs.items():
        ratios = [fastest_round_s(a) / fastest_round_s(b) for a, b in zip(reports, base, strict=True)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        first = statistics.median(run["first_s"] for run in reports)
        loss = reports[0]["losses"][-1]
        rows.append(f"| {workload} | {name} | {ratio} | {first:.2f} | {peaks[name]:.0f} | {loss:.4f} |")
    return "\n".join(rows)


def time_startup(*overrides: str) -> float:
    """Return the median wall seconds of `python train.py <overrides>` over five runs."""
    announce(f"start-up, five times: python train.py {' '.join(overrides)}")
    seconds = []
    for _ in range(5):
        start_s = time.perf_counter()
        subprocess.run([sys.executable, "train.py", *overrides], cwd=FOLDER.parent, capture_output=True, check=False)
        seconds.append(time.perf_counter() - start_s)
    return statistics.median(seconds)


def compare_tracking(repeats: int) -> str:
    """Compare runs with and without MLflow: return the ratios of their round times and of their run times.

    The data are Fashion-MNIST in the folder $FASHION_MNIST, with W1's model and number of clients.
    """
    overrides = [*TRACKED, f"dataset.path={os.environ['FASHION_MNIST']}"]
    round_ratios, run_ratios = [], []
    for repeat in range(repeats):
        announce(f"tracking, repeat {repeat + 1} of {repeats}: without MLflow, then with it")
        times = [time_tracked_run([*overrides, f"logger={logger}"]) for logger in ("none", "mlflow")]
        round_seconds, run_seconds = zip(*times, strict=True)
        round_ratios.append(round_seconds[1] / round_seconds[0])
        run_ratios.append(run_seconds[1] / run_seconds[0])
    return f"{statistics.median(round_ratios):.2f} per round, {statistics.median(run_ratios):.2f} for the whole run"


def time_tracked_run(overrides: list[str]) -> tuple[float, float]:
    """Run `python train.py <overrides>`; return the seconds per round after the first, and of the process."""
    with tempfile.TemporaryDirectory() as logs:
        start_s = time.perf_counter()
        command = [sys.executable, "train.py", *overrides, f"paths.logs={logs}"]
        subprocess.run(command, cwd=FOLDER.parent, capture_output=True, check=True)
        run_s = time.perf_counter() - start_s
        (journal,) = Path(logs).glob("runs/*/journal.jsonl")
        times = [json.loads(line)["time_ms"] for line in journal.read_text().splitlines()]
    return (times[-1] - times[1]) / 1000 / (len(times) - 2), run_s


def main(workloads: list[str], repeats: int) -> None:
    """Run all comparisons, and write and print the page."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "lightning"))
    lines = [
        "# Round time and memory compared with a plain PyTorch loop",
        "",
        f"{datetime.date.today()}, {os.cpu_count()} cores of {name_processor()}, kernels of torch for "
        f"{torch.backends.cpu.get_cpu_capability()}, Python {platform.python_version()},",
        f"{versions}; {repeats} interleaved repeats; one thread per process; float32 unless noted; evaluation on,",
        COLUMNS_NOTE,
        "`make bench` writes this file.",
        "",
        "| workload | implementation | ratio | first round, s | peak memory, MB | final loss |",
        "|---|---|---|---|---|---|",
        *(compare_peers(workload, repeats) for workload in workloads),
        "",
        "| start-up | median, s |",
        "|---|---|",
        f"| `python train.py --help` | {time_startup('--help'):.1f} |",
        f"| `python train.py {' '.join(RANGE_ERROR)}` (a range error) | {time_startup(*RANGE_ERROR):.1f} |",
    ]
    if "FASHION_MNIST" in os.environ:
        lines += ["", f"Ratio of a run with MLflow to one without, W1's size, 50 rounds: {compare_tracking(repeats)}."]
    text = "\n".join(lines) + "\n"
    (FOLDER / "results.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else list(ROUNDS)
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
