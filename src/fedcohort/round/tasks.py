"""The local training of a round: the tasks of this process, and the collector of their updates."""

from collections.abc import Sequence

from fedcohort.hook import averaged_uploads
from fedcohort.ranks import count_processes, positions_of_rank, rank_of_process
from fedcohort.rng import Draws
from fedcohort.round.aggregate import longest_update
from fedcohort.round.collect import CollectOptions, Collector
from fedcohort.round.finish import Finished
from fedcohort.round.readings import declared_reports, keeps_updates
from fedcohort.round.setup import Setup
from fedcohort.training.client_task import ClientTask


def make_tasks(setup: Setup, finished: Finished, samples_state: object) -> list[Sequence[ClientTask]]:
    """Return the tasks of the jobs that arrive and that this process trains, in groups that are trained at once.

    Args:
        setup: the objects of the run.
        finished: the round.
        samples_state: state of the sample selection.
    """
    jobs = finished.arrived
    share = positions_of_rank(rank_of_process(), count_processes(), jobs.client, finished.samples)
    return list(setup.engine.group_tasks([_make_task(setup, finished, i, samples_state) for i in share]))


def _make_task(setup: Setup, finished: Finished, i: int, samples_state: object) -> ClientTask:
    """Return the training task of the i-th job among those that arrive before the round closes."""
    jobs = finished.arrived
    broadcast, client, plain = int(jobs.broadcast[i]), int(jobs.client[i]), bool(jobs.plain[i])
    draws = Draws(setup.settings.seed, setup.federation.n_clients, broadcast)
    return ClientTask(
        round=broadcast,
        client=client,
        rows=jobs.rows[i],
        units=int(jobs.units[i]),
        units_asked=int(jobs.assigned[i]),
        lr=setup.components.client.lr_at(broadcast),
        duration=float(jobs.duration_s[i]),
        stored=setup.store.get(client),
        plain=plain,
        tensor_mask=jobs.tensor_mask[i],
        loss_after=setup.cost_model.rates(plain).passes_after > 0,
        remember=setup.samples.remember(samples_state, jobs, i, draws),
    )


def make_collector(setup: Setup, finished: Finished) -> Collector:
    """Return the collector of the round's updates, for the jobs that arrive on all ranks."""
    plain, server = finished.selection.plain, setup.server
    hooks = setup.components.hooks_in(plain)
    options = CollectOptions(
        uploads=[name for hook in hooks for name in hook.uploads],
        averaged=averaged_uploads(hooks),
        remembers=setup.stored_sizes(plain),
        reports=declared_reports(setup.components, setup.dispatcher.claims, plain),
        stacked=keeps_updates(setup.components),
        moments=setup.settings.bn_var == "moments",
        longest=longest_update(server, setup.settings.update_limit),
        dtype=server.w.dtype,
    )
    return Collector(
        server.layout, finished.arrived.client, finished.weights, options, count_processes(), server.w.device
    )
