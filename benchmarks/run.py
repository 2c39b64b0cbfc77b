"""`make bench`: fedcohort and the bare loop in turn, so that ratios hold when the machine's speed drifts.

python benchmarks/run.py [W1,W2,...] [repeats]   writes benchmarks/results.md, of all workloads where none is named
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

HERE = Path(__file__).parent
MISTAKE = ("selector=ucb_cs", "selector.discount=2")
TRACKED = (
    *("dataset=fashion_mnist", "clients=100", "model=mlp", "client.epochs=1", "client.batch=32", "rounds=50"),
    *("heterogeneity=iid", "eval.clients_every=0", "callback.figures=null"),
)
ROUNDS = {"W1": 10, "W2": 4, "W3": 6, "W4": 4, "W5": 3, "W6": 3}
MEASURED = """\
tracking off. `ratio` is the wall seconds of a run's fastest round but the first over those of the bare loop's run in
the same repeat: median and range. `first round` is not the same of both: of the bare loop it is that round alone, once
data, model and processes are there; of fedcohort it begins when imports, data and parts are done, so that it holds the
set-up of Lightning, its processes and the first model's evaluation as well. `memory` is the peak of all processes
together, in a run of its own."""
PAGE_S = 0.05  # between two looks at a peer's memory, which cost it a quarter of a core


@dataclass(frozen=True)
class Peer:
    """A line of the table. only: workloads that it is for, all where empty."""

    name: str
    script: str
    words: tuple[str, ...]
    only: tuple[str, ...] = ()


def peers() -> list[Peer]:
    """What this machine can run: bf16 where its processor multiplies in it, CUDA where there is a card."""
    found = [
        Peer("bare, 1 process", "bare.py", ("1",)),
        Peer("fedcohort, 1 process", "peer.py", ("1",)),
        Peer("bare, 2 processes", "bare.py", ("2",)),
        Peer("fedcohort, 2 processes", "peer.py", ("2",)),
    ]
    if any(word in Path("/proc/cpuinfo").read_text() for word in ("avx512_bf16", "amx_bf16")):
        found.append(Peer("fedcohort, 2 processes, bf16", "peer.py", ("2", "cpu", "bf16"), ("W2", "W4")))
    if torch.cuda.is_available():
        cuda = ("W1", "W3", "W4")
        found.append(Peer("bare, CUDA", "bare.py", ("1", "cuda"), cuda))
        found.append(Peer("fedcohort, CUDA", "peer.py", ("1", "cuda"), cuda))
    return found


def memory(pid: int) -> float:
    """Proportional set size of a process and its descendants, MB: shared pages count once."""
    total = 0.0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1024
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        total += sum(memory(int(child)) for child in children)
    return total


def announce(what: str) -> None:
    """Say what is measured next, which may take minutes; standard output has the page alone."""
    sys.stderr.write(f"{what}\n")


def once(peer: Peer, workload: str, watched: bool) -> dict[str, Any]:
    """One run of `peer`, one thread a process. watched: for its memory; such a run's time says nothing."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / peer.script), workload, str(ROUNDS[workload]), *peer.words]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, env=env, cwd=HERE, stdout=out, stderr=subprocess.DEVNULL, text=True)
        peak = 0.0
        while watched and process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(PAGE_S)
        process.wait()
        out.seek(0)
        found: dict[str, Any] = json.loads(out.read().split("RESULT ")[-1])
    return {**found, "peak_mb": peak}


def rate(result: dict[str, Any]) -> float:
    """Seconds a round: the fastest but the first."""
    return float(min(result["times"][1:]))


def compare(workload: str, repeats: int) -> str:
    chosen = [peer for peer in peers() if not peer.only or workload in peer.only]
    peaks = {}
    for peer in chosen:
        announce(f"{workload}, memory: {peer.name}")
        peaks[peer.name] = once(peer, workload, watched=True)["peak_mb"]
    runs: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in chosen}
    for repeat in range(repeats):
        for peer in chosen:
            announce(f"{workload}, repeat {repeat + 1} of {repeats}: {peer.name}")
            runs[peer.name].append(once(peer, workload, watched=False))
    base = runs[chosen[0].name]
    rows = []
    for name, found in runs.items():
        ratios = [rate(a) / rate(b) for a, b in zip(found, base, strict=True)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        first = statistics.median(run["first_s"] for run in found)
        loss = found[0]["losses"][-1]
        rows.append(f"| {workload} | {name} | {ratio} | {first:.2f} | {peaks[name]:.0f} | {loss:.4f} |")
    return "\n".join(rows)


def startup(*words: str) -> float:
    """Median seconds of `python train.py <words>` over five runs."""
    announce(f"start-up, five times: python train.py {' '.join(words)}")
    took = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "train.py", *words], cwd=HERE.parent, capture_output=True, check=False)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def tracking(repeats: int) -> str:
    """Seconds a round of W1's size with MLflow over those without, and so for whole runs.

    Fashion-MNIST is read from the folder $FASHION_MNIST.
    """
    words = [*TRACKED, f"dataset.path={os.environ['FASHION_MNIST']}"]
    rounds, whole = [], []
    for repeat in range(repeats):
        announce(f"tracking, repeat {repeat + 1} of {repeats}: without MLflow, then with it")
        paces, walls = zip(*(tracked([*words, f"logger={logger}"]) for logger in ("none", "mlflow")), strict=True)
        rounds.append(paces[1] / paces[0])
        whole.append(walls[1] / walls[0])
    return f"a round {statistics.median(rounds):.2f}, the whole run {statistics.median(whole):.2f}"


def tracked(words: list[str]) -> tuple[float, float]:
    """(seconds a round after the first, seconds of the process) of `python train.py <words>`."""
    with tempfile.TemporaryDirectory() as logs:
        began = time.perf_counter()
        command = [sys.executable, "train.py", *words, f"paths.logs={logs}"]
        subprocess.run(command, cwd=HERE.parent, capture_output=True, check=True)
        took = time.perf_counter() - began
        (journal,) = Path(logs).glob("runs/*/journal.jsonl")
        times = [json.loads(line)["time_ms"] for line in journal.read_text().splitlines()]
    return (times[-1] - times[1]) / 1000 / (len(times) - 2), took


def main(workloads: list[str], repeats: int) -> None:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "lightning"))
    lines = [
        "# Against a bare loop",
        "",
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()},",
        f"{versions}; {repeats} interleaved repeats; one thread a process, float32 where not said; evaluation on,",
        MEASURED,
        "`make bench` writes this file.",
        "",
        "| workload | peer | ratio | first round, s | memory, MB | final loss |",
        "|---|---|---|---|---|---|",
        *(compare(workload, repeats) for workload in workloads),
        "",
        "| start-up | median s |",
        "|---|---|",
        f"| `python train.py --help` | {startup('--help'):.1f} |",
        f"| `python train.py {' '.join(MISTAKE)}` (a range error) | {startup(*MISTAKE):.1f} |",
    ]
    if "FASHION_MNIST" in os.environ:
        lines += ["", f"With MLflow over without, at W1's size, 50 rounds: {tracking(repeats)}."]
    text = "\n".join(lines) + "\n"
    (HERE / "results.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 else list(ROUNDS)
    main(chosen, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
