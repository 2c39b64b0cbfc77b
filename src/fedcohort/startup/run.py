"""One run: config -> objects -> Trainer.fit. Nothing is written before every check has passed."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import disk, memory, slurm, task
from fedcohort.host.interrupt import interrupts
from fedcohort.record import folder, manifest
from fedcohort.record.sweep_folder import SweepJob
from fedcohort.rng import torch_scope
from fedcohort.round.budget import Budget
from fedcohort.round.guard import name_of, named
from fedcohort.round.settings import Settings
from fedcohort.startup import assemble, early, nearest, unmeasured
from fedcohort.startup.assemble import Composed
from fedcohort.startup.dealt import data_seed, deal
from fedcohort.startup.observers import watchers_of
from fedcohort.startup.told import tell_run
from fedcohort.tracking import membership

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.model.base import Model
    from fedcohort.part import Facts
    from fedcohort.round.parts import Parts

log = logging.getLogger("fedcohort")


def run(composition: Composed, job: SweepJob | None = None) -> Path:
    """Run from start-up checks to artifacts, and return the run's folder.

    job: the sweep's, None for a run by itself.

    Raises `FedcohortError`; `SystemExit` or `interrupt.Stop` with the code of a signal.
    """
    with interrupts.on():
        try:
            return _run(composition, job)
        finally:
            memory.end_run()  # a sweep's process and a study's have hundreds of them


def _run(composition: Composed, job: SweepJob | None) -> Path:
    config = composition.config
    objects = early.make_light(composition)
    watchers = watchers_of(composition)
    if task.follows(config["trainer"]["num_nodes"]):
        log.setLevel(logging.ERROR)  # the first task says the rest, and watches
        watchers = replace(watchers, observers=())
    for observer in watchers.observers:
        observer.prepare()  # the tracker's process imports MLflow while this one imports torch
    objects |= {group: assemble.part(composition, group) for group in assemble.HEAVY}
    parts = _parts(composition, objects)
    federation = _federation(composition, objects, parts)
    network = _network(composition, objects["model"], federation)
    _probe(composition, objects, federation, network)
    loop = _loop(composition, parts, federation, network)
    digest = folder.config_hash(config)
    again = slurm.find_restarted_job()
    siblings = job.list_siblings() if job else frozenset()
    wanted = folder.Wanted(digest, config["seed"], Budget.of(config), watchers.ends_early, again, siblings)
    words = composition.choices
    first = f"exp_{words['experiment']}" if "experiment" in words else words["selector"]
    name, logs = config["name"] or "-".join([first, words["agg"], words["dataset"]]), Path(config["paths"]["logs"])
    from fedcohort.lightning.tasks import Tasks
    from fedcohort.startup.fit import fit

    tasks, sweep = Tasks(config["trainer"]["num_nodes"]), job.id if job else None
    train = partial(fit, composition, loop, network, watchers, _processes(composition), tasks, sweep)
    info = partial(tell_run, composition, loop, network, digest, sweep)
    if tasks.follows:
        with tasks.together():
            return train(None, info) or logs
    if again:
        log.info("SLURM has started job %s before: it goes on where it was, as with resume=true", again)
    with tasks.together(), _claim(logs.absolute(), name, wanted, bool(config["resume"]) or again is not None) as home:
        if home.finished:
            manifest.check_all(home.path)
            ends = wanted.budget.list_reached(folder.spending_of(folder.status_of(home.path)).now)
            how = f"raise {'= and '.join(ends)}= to extend it" if ends else "a callback ended it"
            log.info("already finished: %s (%s)", home.path, how)
            for observer in watchers.observers:
                observer.catch_up(home.path)
            if job:
                _skip(job, home.path)
            return home.path
        if config["resume"] and home.is_new and job is None:  # a sweep's jobs that are left begin anew as a rule
            hint = nearest.line(home.path.parent, home.path, config)
            log.info("nothing to resume for this config and seed; starting anew%s", hint and f" ({hint})")
        if job:
            job.note("running", home.path)
        train(home, info)
    return home.path


def check(composition: Composed) -> None:
    """Make the parts, and raise the `FedcohortError` that would end the run before its data are read."""
    light = early.make_light(composition)
    _parts(composition, {**light, **{group: assemble.part(composition, group) for group in assemble.HEAVY}})


def _skip(job: SweepJob, path: Path) -> None:
    """Note that the run had finished before, unless it is this very job that SLURM has started again."""
    before = membership.sweeps_of(path)
    membership.join(path, job.id)
    job.folder = path
    job.end = "done" if job.id in before and slurm.find_restarted_job() else "skipped"


@contextmanager
def _claim(logs: Path, name: str, wanted: folder.Wanted, resume: bool) -> Iterator[folder.RunFolder]:
    """Hold the run's folder until the end. One that was made for a run which came to nothing goes."""
    interrupts.check()
    with interrupts.hold(), disk.in_one_line(logs):
        home = folder.claim(logs, name, wanted, resume)
    try:
        interrupts.check()
        with disk.in_one_line(home.path):
            yield home
    except BaseException as error:
        if isinstance(error, FedcohortError | KeyboardInterrupt | SystemExit) or not folder.status_of(home.path):
            with interrupts.hold():
                home.discard()
        raise
    finally:
        home.release()


def _parts(composition: Composed, objects: Mapping[str, Any]) -> "Parts":
    """Put together and check what goes together; torch is imported here, Lightning is not."""
    from fedcohort.host import processes
    from fedcohort.round.parts import Parts
    from fedcohort.startup import compatible

    parts = Parts(**{name: objects[name] for name in Parts.__dataclass_fields__})
    known = _facts(composition, parts)
    compatible.check(parts, composition.choices, known)
    compatible.check_clock(known, composition.choices, composition.config["until"]["virtual_s"])
    processes.check(**_processes(composition))
    return parts


def _facts(composition: Composed, parts: "Parts") -> "Facts":
    """Return what parts may ask of the run, before its data are read."""
    from fedcohort.startup import facts

    config = composition.config
    return facts.before_data(parts, config["split"]["client_val"], config["deadline"]["window_s"], config["requires"])


def _federation(composition: Composed, objects: Mapping[str, Any], parts: "Parts") -> "Federation":
    from fedcohort.startup import compatible, facts

    federation, cohort = deal(composition, objects), composition.config["cohort"]
    known = facts.with_data(_facts(composition, parts), parts, cohort, federation)
    compatible.check_population(parts, composition.choices, known, cohort, federation)
    return replace(federation, proxy=parts.proxy.inputs(federation, data_seed(composition.config)))


def _network(composition: Composed, model: "Model", federation: "Federation") -> "nn.Module":
    from fedcohort.startup import compatible, footprint
    from fedcohort.training import memory_layout

    word, shape = composition.choices["model"], tuple(federation.server_test.x.shape[1:])
    compatible.check_model(model, word, federation)
    try:
        with torch_scope(composition.config["seed"], "weights"):
            footprint.check_network(model, word, shape, federation.n_classes)
        with torch_scope(composition.config["seed"], "weights"):
            network = model.build(shape, federation.n_classes)
    except (MemoryError, RuntimeError) as error:  # torch has no error of its own for it
        if "alloc" not in str(error):
            raise
        raise OptionError(f"model={word}: there is no memory for so large a network") from error
    if federation.scale is not None:
        federation.scale.attach(network)
    engine, accelerator = composition.config["engine"], composition.config["trainer"]["accelerator"]
    memory_layout.check(engine["channels_last"], network, accelerator)
    return compatible.check_batches(network, composition.config["client"]["batch"], federation)


def _probe(composition: Composed, objects: Mapping[str, Any], federation: "Federation", network: "nn.Module") -> None:
    """Run two samples through network and objective. Raises `ComponentError` that names the one that is wrong."""
    from fedcohort.training import probe

    choices = composition.choices
    classes = [module for module in network.modules() if not type(module).__module__.startswith("torch.")]
    model = classes[0] if classes else objects["model"]
    objective = name_of(objects["objective"], f"objective={choices['objective']}")
    with named(name_of(model, f"model={choices['model']}") + ": forward", type(model).__module__):
        logits = probe.probe_network(network, federation)
    with named(objective, type(objects["objective"]).__module__):
        probe.probe_objective(objects["objective"], logits, federation)


def _loop(composition: Composed, parts: "Parts", federation: "Federation", network: "nn.Module") -> "FederatedLoop":
    """Make the loop, after everything that can be refused has been: Lightning is imported here."""
    from fedcohort.flat import Layout, keeps_statistics
    from fedcohort.host import processes
    from fedcohort.lightning.loop import FederatedLoop
    from fedcohort.round.readings import keeps_updates
    from fedcohort.startup import compatible, facts, footprint

    config = composition.config
    known = facts.with_data(_facts(composition, parts), parts, config["cohort"], federation)
    layout = Layout.of(network)
    smaller, n_params = parts.codec.shrinks(layout), layout.n_params
    if config["trainer"]["accelerator"] == "cpu":
        keeps = keeps_updates(parts)
        footprint.check_rounds(parts, federation, n_params, config["cohort"], keeps_updates=keeps)
    known = replace(known, batch_norm=keeps_statistics(network), smaller_update=smaller, n_params=n_params)
    remarks = compatible.remarks(parts, composition.choices, config["requires"], known, composition.overrides)
    untried = processes.remarks(config["trainer"]["accelerator"], config["trainer"]["num_nodes"])
    for line in [*remarks, *federation.remarks(), *untried, *unmeasured.remarks(config)]:
        log.warning("%s", line)
    settings = Settings.of(config, f"{folder.config_hash(config)}-s{config['seed']}")
    return FederatedLoop(parts, settings, federation)


def _processes(composition: Composed) -> dict[str, Any]:
    from fedcohort.host.processes import count

    trainer = composition.config["trainer"]
    devices = count(trainer["accelerator"], trainer["devices"])
    return {"accelerator": trainer["accelerator"], "devices": devices, "num_nodes": trainer["num_nodes"]}
