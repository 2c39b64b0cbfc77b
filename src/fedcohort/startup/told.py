"""What observers are told of a run before its first round: who takes part, of what config, code and data."""

from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record import provenance
from fedcohort.record.observer import RunInfo
from fedcohort.round.budget import Spending
from fedcohort.signal.base import unknowable
from fedcohort.startup import defaults
from fedcohort.startup.assemble import Composed
from fedcohort.tracking import membership

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.types import Values


def tell_run(
    composition: Composed,
    loop: "FederatedLoop",
    network: "nn.Module",
    digest: str,
    sweep: str | None,
    expected_s: "Values",
    path: Path,
    done: int,
    spending: Spending,
) -> RunInfo:
    """Return the facts, once the run's folder is claimed.

    Args:
        composition: the run's.
        loop: with its parts, its federation and its observers.
        network: the model, whose trained numbers are counted.
        digest: the hash of the config.
        sweep: whose job it is, None for a run by itself.
        expected_s: virtual seconds of a full local job of each client, as expected, [K].
        path: the run's folder.
        done: rounds before this start.
        spending: what those had spent.
    """
    starts = provenance.starts(path)
    lines = [observer.opening_line() for observer in loop.observers]
    federation = loop.federation
    told = {"hub": federation.revision, "inputs": federation.inputs}
    tags = {"data": federation.checksum, **{name: words for name, words in told.items() if words}}
    if oracle := unknowable(loop.parts.needs()):
        tags["yardstick"] = ", ".join(oracle)
    return RunInfo(
        folder=path,
        name=path.name,
        choices=composition.choices,
        config=composition.config,
        config_hash=digest,
        seed=composition.config["seed"],
        commit=starts[-1]["commit"],
        dirty=starts[-1]["dirty"],
        versions=starts[-1]["versions"],
        tags={"tracking": "".join(lines), "engine": loop.reason, **tags, **membership.sweeps_tag(path, sweep)},
        n_train=federation.n_train,
        class_counts=federation.class_counts,
        noise_rate=federation.noise_rate,
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=composition.config["rounds"],
        start=done,
        spent=spending.pack() if done else {},
        skew=federation.skew,
        starts=starts,
        labels={str(c): name for c, name in enumerate(federation.class_names)},
        feature_noise=federation.feature_noise,
        client_names=federation.client_names,
        changed=defaults.differing(composition),
    )
