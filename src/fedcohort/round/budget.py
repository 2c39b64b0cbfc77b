"""A run's budget: the rounds, virtual seconds, bytes and accuracy at which it ends, and how far it has come.

A run ends after the first round at which a part of its budget is reached; what is met exactly is reached. So a run
with a larger budget does the rounds of one with a smaller, and then more: a budget extends a run, as `rounds` does.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.errors import OptionError

UNTIL = ("virtual_s", "bytes", "acc")  # options of the node `until`
OPTIONS = ("rounds", *(f"until.{name}" for name in UNTIL))


@dataclass(frozen=True)
class Spent:
    """What a run has come to after a round.

    Attributes:
        rounds: that are done.
        virtual_s: seconds on the simulated clock.
        bytes: down and up, of all clients.
        acc: the best accuracy so far on the server's test set, in [0, 1]; 0 before the first evaluation.
    """

    rounds: int = 0
    virtual_s: float = 0.0
    bytes: float = 0.0
    acc: float = 0.0

    def go_on(self, step: int, metrics: Mapping[str, float]) -> "Spent":
        """Return the amounts after round `step`; an amount that its metrics lack stays the same."""
        down, up = (metrics.get(f"comm/{way}_bytes") for way in ("down", "up"))
        return Spent(
            step,
            metrics.get("time/virtual_s", self.virtual_s),
            self.bytes if down is None or up is None else down + up,
            metrics.get("test/acc_best", self.acc),
        )


@dataclass(frozen=True)
class Spending:
    """What a run has come to now, and before its last round."""

    now: Spent = field(default_factory=Spent)
    before: Spent = field(default_factory=Spent)

    def go_on(self, step: int, metrics: Mapping[str, float]) -> "Spending":
        """Return both amounts after round `step`."""
        return Spending(self.now.go_on(step, metrics), self.now)

    def pack(self) -> dict[str, dict[str, float]]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def unpack(cls, packed: Mapping[str, Mapping[str, Any]]) -> "Spending":
        """Restore what `pack` made; {} is of a run that has spent nothing, or never said."""
        return cls(**{name: Spent(**of) for name, of in packed.items()})


@dataclass(frozen=True)
class Budget:
    """How far a run goes; None for an amount without a limit.

    Attributes:
        rounds: the upper bound.
        virtual_s, bytes, acc: the options `until.*`.
    """

    rounds: int
    virtual_s: float | None = None
    bytes: float | None = None
    acc: float | None = None

    @property
    def ends(self) -> tuple[float | None, ...]:
        """The values of `OPTIONS`."""
        return self.rounds, self.virtual_s, self.bytes, self.acc

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Budget":
        """Read the budget of a composed config; one of an older fedcohort has no `until`."""
        return cls(config["rounds"], **{name: (config.get("until") or {}).get(name) for name in UNTIL})

    def list_reached(self, spent: Spent) -> list[str]:
        """The options that are reached, by name; a run has one round at least."""
        ends = zip(OPTIONS, ("rounds", *UNTIL), strict=True)
        return [option for option, name in ends if spent.rounds and self._reaches(spent, name)]

    def _reaches(self, spent: Spent, name: str) -> bool:
        end = getattr(self, name)
        return end is not None and bool(getattr(spent, name) >= end)

    def list_exceeded(self, spending: Spending) -> list[str]:
        """The options of `until` that were reached before the last round already: the run has gone too far."""
        return [option for option in self.list_reached(spending.before) if option != "rounds"]

    def check(self, spending: Spending, path: Path) -> None:
        """Raise `OptionError` where the run in `path` has gone further than this budget would have let it."""
        for option in self.list_exceeded(spending):
            name = option.removeprefix("until.")
            was, end = getattr(spending.before, name), getattr(self, name)
            raise OptionError(
                f"{option} must be above {was:.10g}, where {path} was before its last round, got {end!r}; "
                "a smaller one is another run: resume=false"
            )

    def describe_ends(self) -> str:
        """`virtual_s=300, acc=0.9`, of those of `until`; "" where there is none."""
        ends = zip(UNTIL, self.ends[1:], strict=True)
        return ", ".join(f"{name}={end:.10g}" for name, end in ends if end is not None)

    def describe(self, spent: Spent) -> str:
        """`until.virtual_s=300 is reached (312.4)`, of those of `until`; "" where none is."""
        names = [option.removeprefix("until.") for option in self.list_reached(spent) if option != "rounds"]
        words = [f"until.{name}={getattr(self, name):.10g} is reached ({getattr(spent, name):.10g})" for name in names]
        return ", ".join(words)
