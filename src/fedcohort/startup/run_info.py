"""What observers are told of a run before its first round: components, config, data, code and versions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.record import folder, provenance
from fedcohort.record.observer import RunInfo
from fedcohort.signal.base import unknowable
from fedcohort.startup import defaults
from fedcohort.startup.compose import Composed
from fedcohort.tracking import membership

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.startup.restart import Restart
    from fedcohort.types import Values

OF_DATA = ("n_train", "class_counts", "noise_rate", "skew", "feature_noise", "client_names")


def describe_run(
    composition: Composed,
    loop: "FederatedLoop",
    network: "nn.Module",
    sweep: str | None,
    path: Path,
    restart: "Restart",
    expected_s: "Values",
) -> RunInfo:
    """Return the description of a run, once its folder is claimed.

    Args:
        composition: of the run.
        loop: with its components, its federation and its observers.
        network: the model, whose trained numbers are counted.
        sweep: the sweep that the run is a job of, None for none.
        path: the run's folder.
        restart: the rounds before this start, and what they had spent.
        expected_s: virtual seconds that a full local job of each client is expected to take, [K].
    """
    starts = provenance.starts(path)
    federation, config = loop.federation, composition.config
    texts = {"hub": federation.revision, "inputs": federation.inputs, "categories": federation.categories}
    tags = {
        "tracking": "".join([observer.opening_line() for observer in loop.observers]),
        "engine": loop.reason,
        "data": federation.checksum,
        **{name: text for name, text in texts.items() if text},
        **membership.sweeps_tag(path, sweep),
    }
    if oracle := unknowable(loop.parts.needs()):
        tags["yardstick"] = ", ".join(oracle)
    return RunInfo(
        folder=path,
        name=path.name,
        choices=composition.choices,
        config=config,
        config_hash=folder.config_hash(config),
        seed=config["seed"],
        commit=starts[-1]["commit"],
        dirty=starts[-1]["dirty"],
        versions=starts[-1]["versions"],
        tags=tags,
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=config["rounds"],
        start=restart.rounds,
        spent=restart.spending.pack() if restart.rounds else {},
        starts=starts,
        changed=defaults.differing(composition),
        **describe_data(federation),
    )


def describe_data(federation: "Federation") -> dict[str, Any]:
    """Return the fields of `RunInfo` that describe the data and who holds them."""
    return {
        **{name: getattr(federation, name) for name in OF_DATA},
        "labels": {str(number): name for number, name in enumerate(federation.class_names)},
    }
