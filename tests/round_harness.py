"""Run the rounds of a run without Lightning and without files."""

from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.round import RoundRunner
from fedcohort.round.setup import RunSetup
from fedcohort.startup import build, components
from fedcohort.startup.compose import Composition
from fedcohort.types import RoundReport
from run_harness import load_facts


def run_rounds(composition: Composition) -> tuple[list[RoundReport], float]:
    """Run the rounds of a run, and return their reports and the final loss on the test data.

    Lightning's loop and the files of a run, which are omitted, take more time than the rounds of a small run.
    """
    facts = load_facts(composition)
    model = components.make_component(composition, "model")
    network = build.build_network(composition, model, facts.federation)
    build.check_forward_pass(composition, model, network, facts)
    loop, stopwatch = build.build_loop(composition, facts, network), Stopwatch()
    setup = RunSetup(loop.components, loop.settings, loop.federation, network, stopwatch, None)
    runner = RoundRunner(setup, stopwatch)
    reports = [runner.make_round_report(0, {})]
    for round in range(composition.config["rounds"]):
        task_groups, collector = runner.begin_round(round)
        sent_models = runner.sent_models(round)
        for tasks in task_groups:
            with sent_models.load_model(round) as agg_vectors:
                for client_update in setup.engine.train_clients(list(tasks), agg_vectors):
                    collector.add_client_update(client_update)
        runner.end_round(collector)
        reports.append(runner.make_round_report(round + 1, {}))
    test = loop.federation.server_test
    return reports, float(loop.federation.targets.losses(network(test.x).detach(), test.y).mean())
