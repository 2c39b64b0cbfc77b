"""Run the rounds of a run without Lightning and without files."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import torch

from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.round import RoundRunner
from fedcohort.round.setup import RunSetup
from fedcohort.startup import build, components
from fedcohort.startup.compose import Composition
from fedcohort.startup.run_info import describe_federation_data
from fedcohort.types import RoundReport
from run_harness import FinishedRun, compose_overrides, load_facts, small_overrides

IGNORED_OPTIONS = ("trainer.devices", "resume", "until.", "callback.", "logger.", "client_store.")


def run_small(*overrides: str) -> tuple[list[RoundReport], float]:
    """Run the rounds of `python train.py <overrides>`, with the options of `run_harness.SMALL`; see `run_rounds`."""
    return run_rounds(compose_overrides(*small_overrides(*overrides)))


def run_rounds(composition: Composition) -> tuple[list[RoundReport], float]:
    """Run the rounds of a run, and return their reports and the final loss on the test data."""
    run, loss = _run(composition)
    return run.reports, loss


def run_without_files(*overrides: str) -> FinishedRun:
    """Return the run of `run_small`, whose reports have no metrics of the server, and whose info has few fields."""
    return _run(compose_overrides(*small_overrides(*overrides)))[0]


def _run(composition: Composition) -> tuple[FinishedRun, float]:
    """Run the rounds of a run, and return it with the final loss on the test data.

    Lightning's loop and the files of a run, which are omitted, take more time than the rounds of a small run. As there,
    the model's average is loaded for an evaluation after each round. Options that only they read are rejected.
    """
    ignored = [override for override in composition.overrides if override.lstrip("+~").startswith(IGNORED_OPTIONS)]
    assert not ignored, f"these options need run_training: {ignored}"
    facts = load_facts(composition)
    model = components.make_component(composition, "model")
    network = build.build_network(composition, model, facts.federation)
    build.check_forward_pass(composition, model, network, facts)
    loop, stopwatch = build.build_loop(composition, facts, network), Stopwatch()
    setup = RunSetup(loop.components, loop.settings, loop.federation, network, stopwatch, None)
    runner, test = RoundRunner(setup, stopwatch), loop.federation.server_test
    reports = [runner.make_round_report(0, {})]
    for round in range(composition.config["rounds"]):
        task_groups, collector = runner.begin_round(round)
        sent_models = runner.sent_models(round)
        for tasks in task_groups:
            for sent_round, round_tasks in itertools.groupby(tasks, key=lambda task: task.round):
                with sent_models.load_model(sent_round) as agg_vectors:
                    for client_update in setup.engine.train_clients(list(round_tasks), agg_vectors):
                        collector.add_client_update(client_update)
        runner.end_round(collector)
        with setup.average.load_average():
            network(test.x)
        reports.append(runner.make_round_report(round + 1, {}))
    vector = torch.cat([tensor.detach().flatten().double() for tensor in network.state_dict().values()])
    expected_s = setup.dispatcher.populations.facts["expected_s"]
    data = describe_federation_data(loop.federation)
    info = SimpleNamespace(choices=composition.choices, expected_s=expected_s, **data)
    loss = float(loop.federation.targets.losses(network(test.x).detach(), test.y).mean())
    return FinishedRun(Path(), reports, info, vector), loss
