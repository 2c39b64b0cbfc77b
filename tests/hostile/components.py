"""Misuses of a user's own part: wrong results, exceptions, wrong signatures, changed inputs.

Each case writes a module `mine.py`, as a user would, and trains with it in a forked process. The cases of
`components.txt` have the source of a class body; the others are made for each method of each contract.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hostile.forked import fork
from hostile.harness import Answer, Case

SOURCE = Path(__file__).with_suffix(".txt")
LIMIT_S = 60.0
RUN = ("rounds=2", "logger=none", "callback=none", "clients=12", "cohort=4", "client.epochs=1", "model=logreg")
HEADER = """
import random
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple
import numpy as np
import torch
from torch import nn
from fedcohort.agg.base import Direction
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.data.ragged import RaggedPositions
from fedcohort.dataset.base import Raw
from fedcohort.device.base import Timing
from fedcohort.hook import HookResult
from fedcohort.signal.base import Computed, Derived, Measured, Reported, ServerMeasured
from fedcohort.types import AggregationOverride, Probe, Selection
"""


@dataclass(frozen=True)
class Group:
    """The base class and the options of a user's component of a config group.

    Attributes:
        module: of the class that it inherits.
        base: the name of the class.
        choice: the option whose values it gets.
        overrides: other options of the run, so that the part is used.
        methods: the methods that the run calls.
        body: what an own class has besides the misuse.
    """

    module: str
    base: str
    choice: str
    overrides: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    body: str = ""


FAIR = ("agg=afl",)
GROUPS = {
    "selector": Group("selector.random", "Random", "random", (), ("init", "plan", "select", "observe", "trace")),
    "agg": Group("agg.fedavg", "FedAvg", "fedavg", (), ("init", "broadcast", "weights", "direction")),
    "server": Group("server.sgd", "Sgd", "sgd", (), ("init", "step")),
    "objective": Group(
        "objective.ce", "CrossEntropy", "ce", (), ("per_sample", "transform_mean"), "plain: ClassVar = False"
    ),
    "regulariser": Group("regulariser.prox", "Prox", "prox", (), ()),
    "client": Group("client.sgd", "Sgd", "sgd", (), ("lr_at",)),
    "samples": Group(
        "samples.random",
        "Random",
        "random",
        (),
        ("init", "stores_losses", "choose", "observe", "describe", "report_losses"),
        "keeps_losses: ClassVar = True\n    is_foreseeable: ClassVar = False",
    ),
    "deadline": Group(
        "deadline.fixed", "Fixed", "fixed", (), ("init", "cohort_size", "announce", "close", "observe", "describe")
    ),
    "codec": Group("codec.subsample", "Subsample", "subsample", (), ("bytes_up", "transmit")),
    "device": Group(
        "device.shifted_exponential", "ShiftedExponential", "shifted_exponential", (), ("expect", "sample")
    ),
    "availability": Group("availability.bernoulli", "Bernoulli", "bernoulli", (), ("ready", "schedule")),
    "attack": Group("attack.loss_inflation", "LossInflation", "loss_inflation", FAIR, ("attacker_ids", "falsify")),
    "signal_noise": Group("signal_noise.gaussian", "Gaussian", "gaussian", ("selector=powd",), ("perturb",)),
    "proxy": Group("proxy.noise", "Noise", "noise", ("agg=feddf", "agg.steps=2"), ("inputs",)),
    "augmentation": Group(
        "augmentation.none", "NoAugmentation", "none", (), ("change",),
        "identity: ClassVar = False\n    requirements: ClassVar = frozenset()",
    ),
    "partition": Group("partition.iid", "Iid", "iid", (), ("split",)),
    "label_noise": Group("label_noise.bimodal", "Bimodal", "bimodal", (), ("rates", "flip")),
    "feature_noise": Group("feature_noise.gaussian", "Gaussian", "gaussian", (), ("levels", "disturb")),
    "dataset": Group("dataset.digits", "Digits", "digits", (), ("load",)),
    "model": Group("model.logreg", "LogReg", "logreg", (), ("build",)),
    "signal": Group("selector.random", "Random", "random", (), ()),
}  # fmt: skip


@dataclass(frozen=True)
class Misuse:
    """A misuse: what a user's module holds, the options of the run, and what the answer must contain."""

    group: str
    name: str
    source: str
    expected: tuple[str, ...]
    accepted: bool = False
    overrides: tuple[str, ...] = ()


def cases() -> list[Case]:
    """Return all cases; `make hostile KIND=components` runs them."""
    return [
        Case(f"{m.group}: {m.name}", partial(train, m), m.expected, m.accepted)
        for m in (*read_misuses(), *make_misuses())
    ]


def read_misuses() -> list[Misuse]:
    """Read `components.txt`: a line `## group: name`, lines `overrides:`, `expect:`, `accept:`, `class:`, a body."""
    results = []
    for block in SOURCE.read_text().split("\n## ")[1:]:
        title, *lines = block.split("\n")
        group, name = title.split(": ", 1)
        options = {key: tuple(remainder.split(" | ")) for key, remainder in map(_option, lines) if remainder}
        source = "\n".join(line for line in lines if not _option(line)[1])
        expected = options.get("accept", options.get("expect", ()))
        unnamed = group in ("signal", "dataset") or options.keys() & {"accept", "class"}
        client_ids = () if unnamed else ("mine.Mine",)
        results.append(
            Misuse(group, name, source, (*client_ids, *expected), "accept" in options, options.get("overrides", ()))
        )
    return results


def _option(line: str) -> tuple[str, str]:
    key, colon, remainder = line.partition(": ")
    return (key, remainder) if colon and key in ("overrides", "expect", "accept", "class") else ("", "")


def make_misuses() -> list[Misuse]:
    """Make three misuses for each method that a run calls: it raises, takes no argument, returns a text."""
    results = []
    for group, spec in GROUPS.items():
        for method in spec.methods:
            raising = f"def {method}(self, *args):\n    return 1 / 0"
            expected = ("mine.Mine", "ZeroDivisionError", "mine.py, line")
            results.append(Misuse(group, f"{method} raises", raising, expected))
            results.append(Misuse(group, f"{method} takes no argument", f"def {method}(self): ...", ("mine.Mine",)))
            text = f"def {method}(self, *args):\n    return 'wrong'"
            if method not in ("init", "way_out"):  # a state may be a text
                results.append(Misuse(group, f"{method} returns a text", text, ("mine.Mine",)))
    return results


def module_of(misuse: Misuse) -> str:
    """Return the source of the user's module."""
    spec = GROUPS[misuse.group]
    if misuse.group == "signal":
        return f"{HEADER}\n{misuse.source}\n"
    body = "\n".join(f"    {line}" for line in (spec.body, *misuse.source.split("\n")))
    return f"{HEADER}\nfrom fedcohort.{spec.module} import {spec.base} as Base\n\nclass Mine(Base):\n{body}\n"


SIGNAL_READER = """
from fedcohort.selector.random import Random
from fedcohort.types import AggregationOverride, Probe

class Reader(Random):
    @property
    def needs(self):
        return frozenset({"own.signal"})

    def plan(self, state, ctx):
        return PROBES

    def observe(self, state, outcome):
        values = outcome.signals["own.signal"] if "own.signal" in outcome.signals else None
        return None, state
"""


def list_overrides(misuse: Misuse) -> list[str]:
    """Return the options of the run."""
    spec = GROUPS[misuse.group]
    if misuse.group == "signal":
        return ["selector._target_=mine.Reader", *misuse.overrides]
    return [f"{misuse.group}={spec.choice}", f"{misuse.group}._target_=mine.Mine", *spec.overrides, *misuse.overrides]


def write(misuse: Misuse, folder: Path) -> None:
    """Write the user's modules."""
    if misuse.group == "signal":
        package = folder / "own"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "signal.py").write_text(module_of(misuse))
        probing_signals = ("signal = Measured(", "signal = Computed(")
        probes = (
            "(Probe('own.signal', ctx.available[:3]),)"
            if any(text in misuse.source for text in probing_signals)
            else "()"
        )
        (folder / "mine.py").write_text(SIGNAL_READER.replace("PROBES", probes))
    else:
        (folder / "mine.py").write_text(module_of(misuse))


def train(misuse: Misuse, folder: Path) -> Answer:
    """Train with the user's module in a forked process."""
    import fedcohort.startup.fit  # noqa: F401, PLC0415 - imports torch and Lightning before the fork, for all cases
    import run_harness  # noqa: F401, PLC0415

    write(misuse, folder)
    overrides = [*RUN, *list_overrides(misuse), f"paths.logs={folder / 'logs'}"]
    return fork(lambda: _run(overrides, folder), LIMIT_S)


def _run(overrides: Sequence[str], folder: Path) -> None:
    """Do what `train.py` does from the composed config on."""
    from fedcohort.host import messages  # noqa: PLC0415
    from fedcohort.startup.run import run  # noqa: PLC0415
    from run_harness import compose_overrides  # noqa: PLC0415

    sys.path.insert(0, str(folder))
    messages.log_to_terminal()
    run(compose_overrides(*overrides))
