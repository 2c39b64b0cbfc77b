"""Replay a run's selector from its log, without training: fedcohort replay <run folder>

    fedcohort replay <run folder> selector.gamma_scale=0.1              the run's selector with other options
    fedcohort replay <run folder> selector=flash selector.lam=2         another selector

The run's own selector must select the same clients with the present code. Another one is replayed until the first
round in which it selects other clients; from there on it would have queried another model.
The log does not hold updates, which HCSFed with selector.variant=feddiverse_paper and FedPNS with
selector.loss_check=true read, or rows of more than 400 numbers (HCSFed with larger models, FedPNS with more clients).
Runs whose late updates arrive in later rounds are not replayed.
Exit code 0 if all selections are the same, 1 if a round differs, 2 if that cannot be determined.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedcohort import ranges
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError
from fedcohort.record.logged_selector import LoggedSelector
from fedcohort.record.run_log import LoggedRound, RunLog, read_run_log
from fedcohort.startup import components, compose
from fedcohort.types import AggregationOverride, Selection

USAGE_TEXT = "fedcohort replay <run folder> [selector=<option>] [selector.<option>=<value> ...]"


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        n_rounds: number of rounds in the log.
        first_difference: the first round that differs, counting from 1; None if all are the same.
        logged_clients: ids of the clients that the run selected in that round.
        candidate_clients: ids of the clients that the replayed selector selects in that round.
    """

    n_rounds: int
    first_difference: int | None = None
    logged_clients: Sequence[int] = ()
    candidate_clients: Sequence[int] = ()


def replay_selector(run_log: RunLog, logged_selector: LoggedSelector, other_selector: LoggedSelector) -> ReplayResult:
    """Return the first round of a logged run in which another selector selects other clients, with both cohorts.

    Both selectors choose in each round of the log. Queries are answered from the log.

    Args:
        run_log: log of the run.
        logged_selector: the selector of the run.
        other_selector: the selector that is compared with the run; may be the same object.

    Raises:
        IncompatibleConfig: `other_selector` queries what the run did not query.
        CheckpointError: `logged_selector` does not select the cohorts of the log.
    """
    is_other_selector = other_selector is not logged_selector
    for selector in (logged_selector, other_selector) if is_other_selector else (logged_selector,):
        selector.init_state(logged_selector.selector.needs)
    for round in run_log.rounds:
        logged_probes, selection, logged_override = logged_selector.replay_round(round)
        other_override = logged_override
        if is_other_selector:
            check_logged_cohort(run_log, round, selection)
            _, selection, other_override = other_selector.replay_round(round, logged_probes)
        if not np.array_equal(selection.clients, round.cohort):
            return ReplayResult(len(run_log.rounds), round.t + 1, round.cohort.tolist(), selection.clients.tolist())
        if not _are_equal_overrides(logged_override, other_override):
            raise IncompatibleConfig(
                f"selector={other_selector.name} selects the clients of the run up to round {round.t + 1}, but gives "
                "their updates other weights there. The log does not hold the model that follows, so that later rounds "
                f"can't be replayed: train with selector={other_selector.name} to compare them"
            )
    return ReplayResult(len(run_log.rounds))


def check_logged_cohort(run_log: RunLog, round: LoggedRound, selection: Selection) -> None:
    """Raise `CheckpointError` if the run's own selector does not choose the logged cohort of a round.

    Args:
        run_log: log of the run.
        round: the round in the log.
        selection: the selector's choice in the replay.
    """
    if not np.array_equal(selection.clients, round.cohort):
        raise CheckpointError(
            f"replaying {run_log.info.folder} with its own selector gives another cohort in round {round.t + 1}: "
            "fedcohort or the selector has changed since the run. Use the version and the selector of the run, or "
            "repeat the run with this version"
        )


def _are_equal_overrides(a: AggregationOverride | None, b: AggregationOverride | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.absolute == b.absolute and np.array_equal(a.keep, b.keep) and np.array_equal(a.weights, b.weights)  # type: ignore[arg-type]


def make_selectors(run_log: RunLog, arguments: Sequence[str], configs: Path) -> tuple[LoggedSelector, LoggedSelector]:
    """Return the run's selector, and the selector that `arguments` choose. Without arguments both are one object.

    Args:
        run_log: log of the run.
        arguments: another selector and its options, as typed.
        configs: folder of the config groups.

    Raises:
        OptionError: an option is wrong.
        IncompatibleConfig: the run has late updates.
        HydraException: an argument can't be read.
    """
    info, selector_name, options = run_log.info, run_log.info.choices["selector"], dict(run_log.info.config["selector"])
    ranges.identifier(f"{info.folder}: the name of the selector", selector_name)
    composition = compose.Composition(info.config, info.choices, ())
    deadline = components.make_component(composition, "deadline", is_from_run=True)
    if deadline.carries:
        raise IncompatibleConfig(
            f"{info.folder} can't be replayed: with deadline={info.choices['deadline']} late updates arrive in later "
            "rounds, and the log does not hold when the server expected them. Replay a run with deadline=wait_for_all, "
            "or train with the other selector"
        )

    def make_logged_selector(selector_name: str, options: dict[str, object], *, is_from_run: bool) -> LoggedSelector:
        selector = components.build_component(options, "selector", f"selector={selector_name}", is_from_run=is_from_run)
        return LoggedSelector(selector, selector_name, run_log, deadline.cohort_size(run_log.cohort))

    logged_selector = make_logged_selector(selector_name, options, is_from_run=True)
    if not arguments:
        return logged_selector, logged_selector
    typed_name = next((argument.partition("=")[2] for argument in arguments if argument.startswith("selector=")), None)
    overrides = [*([] if typed_name else [f"selector={selector_name}"]), *arguments]
    other_options = compose.compose_group("selector", overrides, configs)
    if typed_name is None:  # the options of the run, where they were not typed
        typed_options = {k.partition("=")[0].removeprefix("selector.") for k in arguments}
        other_options |= {k: v for k, v in options.items() if k not in typed_options}
    return logged_selector, make_logged_selector(typed_name or selector_name, other_options, is_from_run=not typed_name)


def main(arguments: Sequence[str], configs: Path | None = None) -> int:
    """Replay a run's selector; return 1 if a round differs, else 0.

    Args:
        arguments: the run's folder, and another selector with its options.
        configs: folder of the config groups; None for ./configs.

    Raises:
        OptionError: an argument is invalid, or there is not one run folder.
    """
    run_folders = [a.removeprefix("run=") for a in arguments if a.startswith("run=") or "=" not in a]
    options = [o for o in arguments if "=" in o and not o.startswith("run=")]
    wrong_option = next((o for o in options if not o.startswith(("selector=", "selector."))), None)
    if len(run_folders) != 1 or not run_folders[0] or wrong_option is not None:
        reason = f"{wrong_option} is no option of the selector" if wrong_option else "the command needs one run folder"
        raise OptionError(f"{reason}: {USAGE_TEXT}")
    run_log = read_run_log(Path(run_folders[0]).absolute())
    logged_selector, other_selector = make_selectors(run_log, options, configs or Path.cwd() / "configs")
    replay = replay_selector(run_log, logged_selector, other_selector)
    rounds_text = "its only round" if replay.n_rounds == 1 else f"all of its {replay.n_rounds} rounds"
    outcome_text = f"chooses the same clients as the run in {rounds_text}"
    if replay.first_difference is not None:
        n_common_clients = len(set(replay.logged_clients) & set(replay.candidate_clients))
        outcome_text = (
            f"differs from the run in round {replay.first_difference} of {replay.n_rounds}: the run chose "
            f"{list(replay.logged_clients)}, it chooses {list(replay.candidate_clients)} ({n_common_clients} in common)"
        )
    sys.stdout.write(f"selector={other_selector.name} {outcome_text}\n")
    return int(replay.first_difference is not None)
