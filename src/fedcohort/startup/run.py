"""One run: config -> objects -> Trainer.fit. Nothing is written before every check has passed."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import disk, slurm
from fedcohort.host.interrupt import interrupts
from fedcohort.observe.tracking import membership
from fedcohort.record import folder, provenance
from fedcohort.startup import assemble, nearest
from fedcohort.startup.assemble import Composed
from fedcohort.startup.jobs import SweepJob
from fedcohort.startup.observers import watchers_of

if TYPE_CHECKING:
    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.part import Facts
    from fedcohort.record.observer import RunInfo
    from fedcohort.round.parts import Parts
    from fedcohort.types import Values

log = logging.getLogger("fedcohort")


def run(made: Composed, job: SweepJob | None = None) -> Path:
    """One run from start-up checks to artifacts; returns its folder. job: of a sweep, None for a run by itself.

    Raises `FedcohortError`; `SystemExit` or `interrupt.Stop` with the code of a signal.
    """
    with interrupts.on():
        return _run(made, job)


def _run(made: Composed, job: SweepJob | None) -> Path:
    config = made.config
    assemble.check_keys(made)
    assemble.check_numbers(config)
    assemble.check_aliases(made)
    objects = {group: assemble.part(made, group) for group in assemble.LIGHT}
    assemble.check_owners(made, objects["partition"])
    watchers = watchers_of(made)
    for observer in watchers.observers:
        observer.prepare()  # the tracker's process imports MLflow while this one imports torch
    objects |= {group: assemble.part(made, group) for group in assemble.HEAVY}
    parts = _parts(made, objects)
    federation = _federation(made, objects, parts)
    network = _network(made, objects["model"], federation)
    loop = _loop(made, parts, federation, network)
    digest = folder.config_hash(config)
    again = slurm.restarted()
    wanted = folder.Wanted(digest, config["seed"], config["rounds"], watchers.ends_early, again)
    first = f"exp_{made.choices['experiment']}" if "experiment" in made.choices else made.choices["selector"]
    name = config["name"] or "-".join([first, made.choices["agg"], made.choices["dataset"]])
    logs = Path(config["paths"]["logs"]).absolute()
    from fedcohort.startup.fit import fit

    if again:
        log.info("SLURM has started job %s before: it goes on where it was, as with resume=true", again)
    with _claimed(logs, name, wanted, bool(config["resume"]) or again is not None) as home:
        if home.finished:
            log.info("already finished: %s (raise rounds= to extend it)", home.path)
            for observer in watchers.observers:
                observer.catch_up(home.path)
            if job:
                _skip(job, home.path)
            return home.path
        if config["resume"] and home.made:
            hint = nearest.line(home.path.parent, home.path, config)
            log.info("nothing to resume for this config and seed; starting anew%s", hint and f" ({hint})")
        if job:
            job.note("running", home.path)
        sweep = job.id if job else None
        info = partial(_info, made, home, loop, network, digest, sweep)
        fit(made, home, loop, network, watchers, _processes(made), info, sweep)
    return home.path


def _skip(job: SweepJob, path: Path) -> None:
    """The run had finished before; unless it is this very job that SLURM has started again."""
    before = membership.sweeps_of(path)
    membership.join(path, job.id)
    job.folder = path
    job.end = "done" if job.id in before and slurm.restarted() else "skipped"


@contextmanager
def _claimed(logs: Path, name: str, wanted: folder.Wanted, resume: bool) -> Iterator[folder.RunFolder]:
    """The run's folder, until the end. One that was made for a run which came to nothing goes."""
    interrupts.check()
    with interrupts.held(), disk.in_one_line(logs):
        home = folder.claim(logs, name, wanted, resume)
    try:
        interrupts.check()
        with disk.in_one_line(home.path):
            yield home
    except BaseException as error:
        if isinstance(error, FedcohortError | KeyboardInterrupt | SystemExit) or not folder.status_of(home.path):
            with interrupts.held():
                home.discard()
        raise
    finally:
        home.release()


def _parts(made: Composed, objects: Mapping[str, Any]) -> "Parts":
    """What goes together; torch is imported here, Lightning is not."""
    from fedcohort.host import processes
    from fedcohort.round.parts import Parts
    from fedcohort.startup import compatible

    parts = Parts(**{name: objects[name] for name in Parts.__dataclass_fields__})
    compatible.check(parts, made.choices, _facts(made, parts))
    processes.check(**_processes(made))
    return parts


def _facts(made: Composed, parts: "Parts") -> "Facts":
    """What parts may ask of the run, before its data are read."""
    from fedcohort.startup import compatible

    return compatible.facts(parts, made.config["split"]["client_val"], made.config["requires"])


def _federation(made: Composed, objects: Mapping[str, Any], parts: "Parts") -> "Federation":
    from fedcohort.startup import compatible
    from fedcohort.startup.split import build

    config = made.config
    seed = config["seed"] if config["data_seed"] is None else config["data_seed"]
    federation = build(
        objects["dataset"].load(seed),
        objects["partition"],
        objects["label_noise"],
        seed=seed,
        clients=config["clients"],
        server_val=config["split"]["server_val"],
        client_val=config["split"]["client_val"],
        limit=config["split"]["limit"],
        own=True,
    )
    known = compatible.with_data(_facts(made, parts), parts, config["cohort"], federation)
    compatible.check_population(parts, made.choices, known, config["cohort"], federation)
    return replace(federation, proxy=parts.proxy.inputs(federation, seed))


def _network(made: Composed, model: Any, federation: "Federation") -> Any:
    from fedcohort.rng import torch_scope

    try:
        with torch_scope(made.config["seed"], "weights"):
            return model.build(tuple(federation.server_test.x.shape[1:]), federation.n_classes)
    except (MemoryError, RuntimeError) as error:  # torch has no error of its own for it
        if "alloc" not in str(error):
            raise
        raise OptionError(f"model={made.choices['model']}: there is no memory for so large a network") from error


def _loop(made: Composed, parts: "Parts", federation: "Federation", network: Any) -> "FederatedLoop":
    """After everything that can be refused has been refused: Lightning is imported here."""
    from fedcohort.flat import has_batch_norm
    from fedcohort.host import processes
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.round.settings import Settings
    from fedcohort.startup import compatible

    config = made.config
    known = compatible.with_data(_facts(made, parts), parts, config["cohort"], federation)
    known = replace(known, batch_norm=has_batch_norm(network))
    remarks = compatible.remarks(parts, made.choices, config["requires"], known, made.overrides)
    untried = processes.remarks(config["trainer"]["accelerator"], config["trainer"]["num_nodes"])
    for line in [*remarks, *federation.remarks(), *untried]:
        log.warning("%s", line)
    settings = Settings.of(config, f"{folder.config_hash(config)}-s{config['seed']}")
    return FederatedLoop(parts, settings, federation)


def _processes(made: Composed) -> dict[str, Any]:
    from fedcohort.host.processes import count

    trainer = made.config["trainer"]
    devices = count(trainer["accelerator"], trainer["devices"])
    return {"accelerator": trainer["accelerator"], "devices": devices, "num_nodes": trainer["num_nodes"]}


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
    from fedcohort.record.observer import RunInfo
    from fedcohort.signal.base import unknowable

    starts = provenance.starts(home.path)
    lines = [observer.opening_line() for observer in loop.observers]
    federation = loop.federation
    told = {"inputs": federation.inputs} if federation.inputs else {}
    if oracle := unknowable(loop.parts.selector.needs | loop.parts.agg.needs):
        told["yardstick"] = ", ".join(oracle)
    return RunInfo(
        folder=home.path,
        name=home.path.name,
        choices=made.choices,
        config=made.config,
        config_hash=digest,
        seed=made.config["seed"],
        commit=starts[-1]["commit"],
        dirty=starts[-1]["dirty"],
        versions=starts[-1]["versions"],
        tags={"tracking": "".join(lines), "engine": loop.reason, **told, **membership.joined(home.path, sweep)},
        n_train=federation.n_train,
        class_counts=federation.class_counts,
        noise_rate=federation.noise_rate,
        expected_s=expected_s,
        n_params=sum(p.numel() for p in network.parameters() if p.requires_grad),
        rounds=made.config["rounds"],
        start=done,
        skew=federation.skew,
        starts=starts,
        labels={str(c): name for c, name in enumerate(federation.class_names)},
    )
