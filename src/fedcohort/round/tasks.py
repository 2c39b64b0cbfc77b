"""The local training of a round: the tasks of this process, and the collector of their updates."""

from collections.abc import Sequence

import numpy as np

from fedcohort.hook import list_averaged_uploads
from fedcohort.process_ranks import count_processes, positions_of_rank, rank_of_process
from fedcohort.round.attackers import AttackedCollector, RoundAttack
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectOptions
from fedcohort.round.finish import RoundEnd
from fedcohort.round.norm_limit import compute_norm_limit
from fedcohort.round.round_signals import keeps_updates, make_signal_readers
from fedcohort.round.setup import Setup
from fedcohort.training.client_task import ClientTask


def make_tasks(setup: Setup, round_end: RoundEnd, samples_state: object) -> list[Sequence[ClientTask]]:
    """Return the tasks of the jobs that arrive and that this process trains, in groups that are trained at once.

    Args:
        setup: the objects of the run.
        round_end: the round, which determines which jobs arrive.
        samples_state: state of the sample selection.
    """
    jobs = round_end.arrived
    rank_positions = positions_of_rank(rank_of_process(), count_processes(), jobs.client, round_end.processed_samples)
    task_groups: list[Sequence[ClientTask]] = []
    for sent_round in np.unique(jobs.broadcast)[::-1].tolist():  # clients of one group start from the same model
        tasks = [
            _make_task(setup, round_end, i, samples_state) for i in rank_positions if jobs.broadcast[i] == sent_round
        ]
        task_groups += setup.engine.group_tasks(tasks)
    return task_groups


def _make_task(setup: Setup, round_end: RoundEnd, job_row: int, samples_state: object) -> ClientTask:
    """Return the training task of one of the jobs that arrive before the round closes.

    Args:
        setup: the objects of the run.
        round_end: the round, which determines which jobs arrive.
        job_row: row of the job among those that arrive.
        samples_state: state of the sample selection.
    """
    jobs = round_end.arrived
    sent_round, client, as_fedavg = int(jobs.broadcast[job_row]), int(jobs.client[job_row]), bool(jobs.plain[job_row])
    draws = setup.federation.draws(setup.settings.seed, sent_round)
    return ClientTask(
        round=sent_round,
        client=client,
        sample_rows=jobs.rows[job_row],
        units=int(jobs.units[job_row]),
        units_asked=int(jobs.assigned[job_row]),
        lr=setup.components.client.lr_at(sent_round),
        duration=float(jobs.duration_s[job_row]),
        stored_vectors=setup.store.get(client),
        codec_only=as_fedavg,
        tensor_mask=jobs.tensor_mask[job_row],
        measures_loss=setup.cost_model.select_rates(as_fedavg).passes_after > 0,
        remember_losses=setup.samples.make_loss_updater(samples_state, jobs, job_row, draws),
    )


def make_collector(setup: Setup, round_end: RoundEnd) -> Collector:
    """Return the collector of the updates that arrive on all ranks.

    Args:
        setup: the objects of the run.
        round_end: the round, which determines which jobs arrive.
    """
    as_fedavg, server = round_end.selection.plain, setup.server
    hooks = setup.components.select_hooks(as_fedavg)
    options = CollectOptions(
        upload_names=[k for h in hooks for k in h.uploads],
        averaged_uploads=list_averaged_uploads(hooks),
        vector_lengths=setup.vector_lengths(as_fedavg),
        report_readers=make_signal_readers(
            setup.components, setup.dispatcher.client_reports, as_fedavg, round_end.round
        ),
        keeps_matrix=keeps_updates(setup.components),
        uses_moments=setup.settings.bn_var == "moments",
        max_update_norm=compute_norm_limit(server, setup.settings.update_limit),
        stored_dtype=server.w.dtype,
    )
    args = (server.layout, round_end.arrived.client, round_end.weights, options, count_processes(), server.w.device)
    attack, attackers = setup.components.attack, np.flatnonzero(setup.dispatcher.client_reports.is_attacker)
    if not attack.falsifies_updates or not len(attackers):
        return Collector(*args)
    return AttackedCollector(RoundAttack(attack, attackers, setup.settings.seed, round_end.round), *args)
