"""The budget of a run: the rounds, virtual seconds, bytes, client FLOPs, joules and accuracy at which it ends.

A run ends after the first round in which it reaches one of these limits (>=). A run with a larger budget repeats the
rounds of a run with a smaller one, so that a larger budget extends a finished run, as more `rounds` do.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.errors import OptionError

UNTIL_OPTIONS = ("virtual_s", "bytes", "acc", "client_flops", "joules")  # options of the node `until`
BUDGET_OPTIONS = ("rounds", *(f"until.{name}" for name in UNTIL_OPTIONS))


@dataclass(frozen=True)
class BudgetUse:
    """The rounds, time, bytes, computation, energy and accuracy that a run has reached.

    Attributes:
        rounds: number of finished rounds.
        virtual_s: seconds on the simulated clock.
        bytes: bytes sent down and up by all clients.
        acc: best accuracy so far on the server's test set, in [0, 1]; 0 before the first evaluation.
        client_flops: FLOPs of all clients, in training and in answers to queries.
        joules: energy of all clients (`round/energy.py`); 0 if it is not measured.
    """

    rounds: int = 0
    virtual_s: float = 0.0
    bytes: float = 0.0
    acc: float = 0.0
    client_flops: float = 0.0
    joules: float = 0.0

    def add_round_metrics(self, rounds_done: int, metrics: Mapping[str, float]) -> "BudgetUse":
        """Return the amounts that the run has reached after a round.

        Args:
            rounds_done: number of finished rounds.
            metrics: metrics of the round by name; an amount without a metric stays the same.
        """
        down_bytes, up_bytes = (metrics.get(f"comm/{link_direction}_bytes") for link_direction in ("down", "up"))
        return BudgetUse(
            rounds_done,
            metrics.get("time/virtual_s", self.virtual_s),
            self.bytes if down_bytes is None or up_bytes is None else down_bytes + up_bytes,
            metrics.get("test/acc_best", self.acc),
            metrics.get("comp/client_flops", self.client_flops),
            metrics.get("energy/joules", self.joules),
        )


@dataclass(frozen=True)
class BudgetHistory:
    """The amounts that a run has reached after its last round and one round earlier.

    Attributes:
        now: amounts after the last round.
        before: amounts before the last round.
    """

    now: BudgetUse = field(default_factory=BudgetUse)
    before: BudgetUse = field(default_factory=BudgetUse)

    def add_round_metrics(self, rounds_done: int, metrics: Mapping[str, float]) -> "BudgetHistory":
        """Return the amounts after `rounds_done` rounds and one round earlier; `metrics` has the round's, by name."""
        return BudgetHistory(self.now.add_round_metrics(rounds_done, metrics), self.now)

    def to_plain_data(self) -> dict[str, dict[str, float]]:
        """Return the amounts by name, separately for `now` and `before`, for `status.json` and checkpoints."""
        return asdict(self)

    @classmethod
    def from_plain_data(cls, saved_amounts: Mapping[str, Mapping[str, Any]]) -> "BudgetHistory":
        """Restore the history from the result of `to_plain_data`; {} stands for a run without a finished round.

        Args:
            saved_amounts: amounts by name, for each of `now` and `before`.
        """
        return cls(**{k: BudgetUse(**amount_by_name) for k, amount_by_name in saved_amounts.items()})


@dataclass(frozen=True)
class Budget:
    """The limits at which a run ends; None for an amount without a limit.

    Attributes:
        rounds: largest number of rounds.
        virtual_s: limit of the seconds on the simulated clock.
        bytes: limit of the transmitted bytes.
        acc: test accuracy in (0, 1] at which the run ends.
        client_flops: limit of the clients' floating-point operations.
        joules: limit of the clients' energy.
    """

    rounds: int
    virtual_s: float | None = None
    bytes: float | None = None
    acc: float | None = None
    client_flops: float | None = None
    joules: float | None = None

    def __str__(self) -> str:
        """Return the limits as text, by which studies recognise equal budgets.

        The text contains `client_flops` and `joules`, which earlier versions lack, only if they are set.
        """
        return repr(self).replace(", client_flops=None", "").replace(", joules=None", "")

    @property
    def limits(self) -> tuple[float | None, ...]:
        """The value of each limit, in the order of `BUDGET_OPTIONS`; None for an amount without a limit."""
        return self.rounds, *(getattr(self, limit_name) for limit_name in UNTIL_OPTIONS)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Budget":
        """Return the budget in a composed config; `config` may lack the node `until`, as in earlier versions."""
        return cls(config["rounds"], **{k: (config.get("until") or {}).get(k) for k in UNTIL_OPTIONS})

    def list_reached_limits(self, budget_use: BudgetUse) -> list[str]:
        """Return the options whose limit `budget_use` has reached, such as "until.acc"; none before the first round."""
        limit_options = zip(BUDGET_OPTIONS, ("rounds", *UNTIL_OPTIONS), strict=True)
        return [option for option, k in limit_options if budget_use.rounds and self._is_limit_reached(budget_use, k)]

    def _is_limit_reached(self, budget_use: BudgetUse, limit_name: str) -> bool:
        budget_limit = getattr(self, limit_name)
        return budget_limit is not None and bool(getattr(budget_use, limit_name) >= budget_limit)

    def list_exceeded_limits(self, budget_history: BudgetHistory) -> list[str]:
        """Return the options of `until` whose limit a run with this `budget_history` reached before its last round."""
        return [option for option in self.list_reached_limits(budget_history.before) if option != "rounds"]

    def check_budget_left(self, budget_history: BudgetHistory, run_folder: Path) -> None:
        """Raise `OptionError` if the run in the folder `run_folder` reached a limit of `until` before its last round.

        `budget_history` has the amounts that the run has reached.
        """
        for option in self.list_exceeded_limits(budget_history):
            limit_name = option.removeprefix("until.")
            used_budget, budget_limit = getattr(budget_history.before, limit_name), getattr(self, limit_name)
            raise OptionError(
                f"{option} must be above {used_budget:.10g}, which {run_folder} reached before its last round, "
                f"got {budget_limit!r}; use resume=false to start another run with a smaller value"
            )

    def describe_until_limits(self) -> str:
        """Return the limits of `until` as text, as in "virtual_s=300, acc=0.9"; "" without a limit."""
        until_limits = zip(UNTIL_OPTIONS, self.limits[1:], strict=True)
        return ", ".join(f"{k}={budget_limit:.10g}" for k, budget_limit in until_limits if budget_limit is not None)

    def describe_reached_limits(self, budget_use: BudgetUse) -> str:
        """Return the limits of `until` that are reached, as in "until.virtual_s=300 is reached (312.4)"; "" if none.

        Args:
            budget_use: amounts that the run has reached.
        """
        reached_options = [option for option in self.list_reached_limits(budget_use) if option != "rounds"]
        limit_texts = [
            f"until.{limit_name}={getattr(self, limit_name):.10g} is reached ({getattr(budget_use, limit_name):.10g})"
            for limit_name in (option.removeprefix("until.") for option in reached_options)
        ]
        return ", ".join(limit_texts)
