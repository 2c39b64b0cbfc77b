"""Cases of bad input, and the criteria of a good answer to one.

A case is rejected with a message that names the problem, or accepted with a notice. A traceback, a crash, a hang or
silence is a failure. The cases run outside the suite: `make hostile KIND=tables`, or every kind without `KIND`.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSING_VERDICTS = ("rejected", "accepted")


@dataclass(frozen=True)
class Answer:
    """How the program answered. code: exit status, None after a timeout; text: standard output and error together."""

    code: int | None
    text: str


KILLED = "killed at "  # begins the line of an answer that tells where its process was killed


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes:
        name: the input in a few words, unique within its kind.
        run: feeds the input to the program; gets an empty folder to work in.
        expected: texts that the answer must contain, such as the option, the value and the cure.
        accepted: whether the program may take the input after a notice, instead of rejecting it.
        check: inspects the folder afterwards and returns what is wrong with it, or an empty text.
    """

    name: str
    run: Callable[[Path], Answer]
    expected: tuple[str, ...]
    accepted: bool = False
    check: Callable[[Path], str] = lambda folder: ""


def judge(case: Case, answer: Answer, folder: Path) -> str:
    """Return "rejected" or "accepted" for a good answer, otherwise what is wrong with it."""
    if answer.code is None:
        return "hang"
    if answer.code < 0 or answer.code > 128:
        return f"crash (exit status {answer.code})"
    if "Traceback (most recent call last)" in answer.text:
        return "traceback"
    if damage := case.check(folder):
        return f"damage: {damage}"
    if (answer.code == 0) != case.accepted:
        return f"exit status {answer.code}"
    missing = [text for text in case.expected if text not in answer.text]
    if missing:
        return f"message without {missing[0]!r}"
    return "accepted" if case.accepted else "rejected"


def call(*command: str, cwd: Path = ROOT, limit_s: float = 120, env: Mapping[str, str] | None = None) -> Answer:
    """Run a command with its children to its end, or kill the process group after `limit_s` seconds."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return Answer(None, text)
    return Answer(process.returncode, text)


def train(*overrides: str, cwd: Path = ROOT, limit_s: float = 120) -> Answer:
    """Run `python train.py <overrides>`."""
    return call(sys.executable, str(ROOT / "train.py"), *overrides, cwd=cwd, limit_s=limit_s)


def fedcohort(*arguments: str, cwd: Path = ROOT, limit_s: float = 120) -> Answer:
    """Run `fedcohort <arguments>`."""
    return call(sys.executable, "-m", "fedcohort", *arguments, cwd=cwd, limit_s=limit_s)


def run_cases(kind: str, cases: Sequence[Case]) -> Counter[str]:
    """Run every case in an empty folder, print each failure with its answer, and return the number of each verdict."""
    repeated = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if repeated:
        raise ValueError(f"two cases of {kind} share a name: {repeated[0]}")
    verdicts: Counter[str] = Counter()
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answer = case.run(folder)
            verdict = judge(case, answer, folder)
        verdicts[verdict if verdict in PASSING_VERDICTS else "failed"] += 1
        kills = [line for line in answer.text.splitlines() if line.startswith(KILLED)]
        verdicts["killed"] += bool(kills)
        print(f"{kind} {number}/{len(cases)} {case.name}: {', '.join([*kills, verdict])}", file=sys.stderr, flush=True)
        if verdict not in PASSING_VERDICTS:
            print(f"\nFAILED {kind}: {case.name}: {verdict}\n{answer.text[-1500:]}", flush=True)
    print(
        f"| {kind} | {len(cases)} | {verdicts['rejected']} | {verdicts['accepted']} | {verdicts['failed']} |",
        flush=True,
    )
    if verdicts["killed"]:
        print(f"{verdicts['killed']} of these {len(cases)} were killed", flush=True)
    return verdicts
