"""Describe a run by its options, its data, and the commit and versions of its code."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.record import folder, provenance, tags
from fedcohort.record.observer import RunInfo
from fedcohort.roles import find_role
from fedcohort.signal.base import find_oracle_signals
from fedcohort.startup.compose import Composition
from fedcohort.tracking import sweeps

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.startup.restart import ResumePoint
    from fedcohort.types import Values

RUN_INFO_DATA_FIELDS = ("n_train", "class_counts", "noise_rate", "skew", "feature_noise", "client_names")


def describe_run(
    composition: Composition,
    loop: "FederatedLoop",
    network: "nn.Module",
    sweep_id: str | None,
    run_path: Path,
    resume_point: "ResumePoint",
    expected_s: "Values",
) -> RunInfo:
    """Return the description of a run whose folder is claimed.

    Args:
        composition: the composed config.
        loop: the loop of the run, with its components, federation and observers.
        network: the model, whose trainable parameters are counted.
        sweep_id: id of the sweep that the run belongs to, or None.
        run_path: the run's folder.
        resume_point: the rounds before this start of the run, and their costs.
        expected_s: expected virtual seconds of a full local job of each client, [n_clients].
    """
    start_records, config = provenance.read_start_records(run_path), composition.config
    return RunInfo(
        folder=run_path,
        name=run_path.name,
        choices=composition.choices,
        config=config,
        config_hash=folder.config_hash(config),
        seed=config["seed"],
        tags={**_list_run_tags(loop), **sweeps.make_sweeps_tag(run_path, sweep_id)},
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=config["rounds"],
        start=resume_point.rounds_done,
        spent=resume_point.spending.to_plain_data() if resume_point.rounds_done else {},
        starts=start_records,
        changed=list_typed_options(composition),
        **{k: start_records[-1][k] for k in ("commit", "dirty", "versions")},
        **describe_federation_data(loop.federation),
    )


def _list_run_tags(loop: "FederatedLoop") -> dict[str, str]:
    """Return the tags of the run of `loop` by name, apart from those of its sweeps."""
    federation = loop.federation
    run_tags = {
        "tracking": "".join([observer.opening_line() for observer in loop.observers]),
        "engine": loop.engine_reason,
        "data": federation.checksum,
        "hub": federation.revision,
        "inputs": federation.inputs,
        "categories": federation.categories,
        tags.ORACLE_TAG: ", ".join(find_oracle_signals(loop.components.needed_signals())),
    }
    return {k: tag_text for k, tag_text in run_tags.items() if tag_text or k in ("tracking", "engine", "data")}


def describe_federation_data(federation: "Federation") -> dict[str, Any]:
    """Return the fields of `RunInfo` that describe the data in `federation`, by name."""
    class_labels = {str(i): k for i, k in enumerate(federation.class_names)}
    return {"labels": class_labels, **{k: getattr(federation, k) for k in RUN_INFO_DATA_FIELDS}}


def list_typed_options(composition: Composition) -> dict[str, str]:
    """Return the typed choices and options in `composition` that MLflow also records, with their values as typed."""
    typed_overrides = (override.lstrip("+~").partition("=") for override in composition.overrides)
    return {k: v for k, _, v in typed_overrides if find_role(k).is_tracked}
