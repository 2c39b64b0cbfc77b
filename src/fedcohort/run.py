"""One run: config -> objects -> Trainer.fit. Nothing is written before every check has passed."""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from fedcohort import assemble, folder, messages, provenance
from fedcohort.assemble import Composed
from fedcohort.errors import FedcohortError

if TYPE_CHECKING:
    from fedcohort.callback.base import RunInfo
    from fedcohort.engine.loop import FederatedLoop
    from fedcohort.federation import Federation
    from fedcohort.types import Values

log = logging.getLogger("fedcohort")
FAILED: list[str] = []


def start(cfg: DictConfig) -> None:
    """What `train.py` calls. A user's mistake ends in one line and exit code 2; in a sweep the other jobs go on."""
    hydra = HydraConfig.get()
    overrides = tuple(hydra.overrides.task)
    messages.to_terminal()
    try:
        made = assemble.composed(cfg, hydra.runtime.choices, overrides)
        sweep = Path(hydra.sweep.dir).name if hydra.mode == RunMode.MULTIRUN else None
        run(made, sweep)
    except FedcohortError as error:
        log.error("%s", error)
        if hydra.mode != RunMode.MULTIRUN:
            raise SystemExit(2) from error
        FAILED.append(f"{' '.join(overrides)}: {error}")


def exit_code() -> int:
    """After all jobs: what failed, named once more."""
    for line in FAILED:
        log.error("failed: %s", line)
    return 1 if FAILED else 0


def run(made: Composed, sweep: str | None = None) -> Path:
    """One run from start-up checks to artifacts; returns its folder. Raises `FedcohortError`, `SystemExit`."""
    config = made.config
    assemble.check_keys(made)
    assemble.check_numbers(config)
    assemble.check_aliases(made)
    objects = {group: assemble.part(made, group) for group in assemble.LIGHT}
    objects |= {group: assemble.part(made, group) for group in assemble.HEAVY}
    loop, network = _loop(made, objects, _federation(made, objects))
    observers = _callbacks(made)
    digest, seed = folder.config_hash(config), int(config["seed"])
    name = config["name"] or "-".join(made.choices[g] for g in ("selector", "agg", "dataset"))
    logs = Path(config["paths"]["logs"]).absolute()
    home = folder.claim(logs, name, digest, seed, int(config["rounds"]), bool(config["resume"]))
    try:
        if home.finished:
            log.info("already finished: %s (raise rounds= to extend it)", home.path)
        else:
            _fit(made, home, loop, network, observers, digest, sweep)
    finally:
        home.release()
    return home.path


def _federation(made: Composed, objects: Mapping[str, Any]) -> "Federation":
    from fedcohort.federation import build

    config = made.config
    seed = config["seed"] if config["data_seed"] is None else config["data_seed"]
    return build(
        objects["dataset"].load(seed),
        objects["partition"],
        objects["label_noise"],
        seed=seed,
        clients=config["clients"],
        server_val=config["split"]["server_val"],
        client_val=config["split"]["client_val"],
    )


def _loop(made: Composed, objects: Mapping[str, Any], federation: "Federation") -> tuple["FederatedLoop", Any]:
    """Everything that can be refused is refused here, before a folder is made."""
    from fedcohort.engine.compatible import check
    from fedcohort.engine.loop import FederatedLoop
    from fedcohort.engine.parts import Parts, Settings
    from fedcohort.engine.strategy import strategy_for
    from fedcohort.rng import torch_scope

    config = made.config
    parts = Parts(**{name: objects[name] for name in Parts.__dataclass_fields__})
    check(parts, config["cohort"], federation)
    strategy_for(**_processes(made))
    settings = Settings(
        seed=config["seed"],
        cohort=config["cohort"],
        rounds=config["rounds"],
        slices=config["engine"]["slices"],
        eval_every=config["eval"]["every"],
        clients_every=config["eval"]["clients_every"],
        bn_moments=config["engine"]["bn_var"] == "moments",
        engine=config["engine"]["kind"],
        closed_form=config["engine"]["closed_form"],
        channels_last=config["engine"]["channels_last"],
        chunk=config["engine"]["chunk"],
        bf16=config["engine"]["precision"] == "bf16",
        store_limit_gb=config["client_store"]["limit_gb"],
        config_hash=f"{folder.config_hash(config)}-s{config['seed']}",
    )
    with torch_scope(config["seed"], "weights"):
        network = objects["model"].build(tuple(federation.server_test.x.shape[1:]), federation.n_classes)
    return FederatedLoop(parts, settings, federation), network


def _processes(made: Composed) -> dict[str, Any]:
    from fedcohort.engine.strategy import count

    trainer = made.config["trainer"]
    devices = count(trainer["accelerator"], trainer["devices"])
    return {"accelerator": trainer["accelerator"], "devices": devices, "num_nodes": trainer["num_nodes"]}


def _fit(
    made: Composed,
    home: folder.RunFolder,
    loop: "FederatedLoop",
    network: Any,
    observers: list[Any],
    digest: str,
    sweep: str | None,
) -> None:
    import lightning.pytorch as pl
    import torch
    from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

    from fedcohort.engine.checkpoint import FinalWeights, RoundCheckpoint, load
    from fedcohort.engine.data import CohortDataModule
    from fedcohort.engine.module import ClientModule
    from fedcohort.engine.stop import GracefulStop
    from fedcohort.engine.strategy import strategy_for

    messages.quiet_lightning()
    config, trainer_config = made.config, made.config["trainer"]
    torch.set_num_threads(trainer_config["threads"])
    checkpoint = home.checkpoint if home.checkpoint.exists() else None
    if checkpoint is not None:
        load(checkpoint, loop.settings.config_hash)
    folder.write_atomically(home.path / "config.yaml", OmegaConf.to_yaml(OmegaConf.create(dict(config))))
    loop.observers = [part for part in observers if not isinstance(part, pl.Callback)]
    loop.info = partial(_info, made, home, loop, network, digest, sweep)
    stop = GracefulStop(partial(setattr, loop, "stop"))
    theirs = [part for part in observers if isinstance(part, pl.Callback)]
    pauses = (config["checkpoint"]["every"], config["checkpoint"]["every_s"])
    last = RoundCheckpoint(home.path, *pauses, loop.watch, loop.checkpointed)
    loop.folder = home.path
    callbacks = [FinalWeights(home.path), stop, loop, *theirs, last]
    trainer = pl.Trainer(
        strategy=strategy_for(**_processes(made)),
        **_processes(made),
        max_epochs=config["rounds"],
        check_val_every_n_epoch=config["eval"]["every"],
        num_sanity_val_steps=-1 if checkpoint is None else 0,  # it scores w_0: step 0
        callbacks=callbacks,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    module = ClientModule(network, loop.federation.n_classes)
    data = CohortDataModule(loop.federation, config["engine"]["slices"])
    with messages.to_file(home.path):
        try:
            trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=True)
        except (ProcessExitedException, ProcessRaisedException) as error:
            raise FedcohortError(_death_of_a_rank(error)) from error
        finally:
            status = folder.status_of(home.path)
            if status.get("status") == "interrupted":
                typed = " ".join(word for word in made.overrides if not word.startswith("resume="))
                log.warning(
                    "stopped after round %d; go on with: python train.py %s resume=true", status["rounds_done"], typed
                )
    if status.get("status") == "interrupted":
        raise SystemExit(loop.stop or 1)


def _death_of_a_rank(error: Any) -> str:
    """One line from what torch says of a process that died or raised."""
    last = str(error).strip().splitlines()[-1].strip()
    return f"training process {error.error_index} ended ({last}); go on from the last checkpoint with resume=true"


def _callbacks(made: Composed) -> list[Any]:
    """Observers and Lightning callbacks in the order of configs/callback; then the tracker, which uploads what they
    wrote; the status comes last.
    """
    from fedcohort.callback.status import RunStatus

    nodes = made.config["callback"]
    found = [assemble.build(node, f"callback.{name}", f"callback.{name}") for name, node in nodes.items() if node]
    tracker = assemble.part(made, "logger")
    return [*found, *([tracker] if tracker is not None else []), RunStatus()]


def _info(
    made: Composed,
    home: folder.RunFolder,
    loop: "FederatedLoop",
    network: Any,
    digest: str,
    sweep: str | None,
    expected_s: "Values",
    done: int,
) -> "RunInfo":
    from fedcohort.callback.base import RunInfo

    commit, dirty = provenance.commit()
    lines = [observer.opening_line() for observer in loop.observers if hasattr(observer, "opening_line")]
    federation = loop.federation
    return RunInfo(
        folder=home.path,
        name=home.path.name,
        choices=made.choices,
        config=made.config,
        config_hash=digest,
        seed=made.config["seed"],
        commit=commit,
        dirty=dirty,
        versions=provenance.versions(),
        tags={"tracking": "".join(lines), "engine": loop.reason, **({"sweep_id": sweep} if sweep else {})},
        n_train=federation.n_train,
        class_counts=federation.class_counts,
        noise_rate=federation.noise_rate,
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=made.config["rounds"],
        start=done,
    )
