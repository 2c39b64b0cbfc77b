"""The local training of a round: the tasks of this process, and the collector of their updates."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedcohort.hook import list_averaged_uploads
from fedcohort.process_ranks import count_processes, positions_of_rank, rank_of_process
from fedcohort.round.attackers import AttackCollector, RoundAttack
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.round.finish import ClosedRound
from fedcohort.round.norm_limit import compute_norm_limit
from fedcohort.round.round_signals import make_signal_readers, requires_update_matrix
from fedcohort.round.setup import RunSetup
from fedcohort.training.client_task import ClientTask


def group_client_tasks(
    run_setup: RunSetup, closed_round: ClosedRound, thresholds: Mapping[int, float]
) -> list[Sequence[ClientTask]]:
    """Return the tasks of the jobs that arrive and that this process trains, in groups that are trained at once.

    Args:
        run_setup: the objects of the run.
        closed_round: the round, which determines which jobs arrive.
        thresholds: loss threshold that clients received in each round, in nats.
    """
    jobs = closed_round.arrived_jobs
    job_rows = positions_of_rank(rank_of_process(), count_processes(), jobs.client, closed_round.processed_samples)
    task_groups: list[Sequence[ClientTask]] = []
    for sent_round in np.unique(jobs.broadcast)[::-1].tolist():  # clients of one group start from the same model
        rows_of_sent_round = [i for i in job_rows if jobs.broadcast[i] == sent_round]
        task_groups += run_setup.engine.group_client_tasks(
            [_task_of_job(run_setup, closed_round, i, thresholds[sent_round]) for i in rows_of_sent_round]
        )
    return task_groups


def _task_of_job(run_setup: RunSetup, closed_round: ClosedRound, job_row: int, threshold: float) -> ClientTask:
    """Return the training task of one of the jobs that arrive before the round closes.

    Args:
        run_setup: the objects of the run.
        closed_round: the round, which determines which jobs arrive.
        job_row: row of the job among those that arrive.
        threshold: loss threshold that the client received with its job, in nats.
    """
    jobs = closed_round.arrived_jobs
    sent_round, client, is_fedavg = int(jobs.broadcast[job_row]), int(jobs.client[job_row]), bool(jobs.plain[job_row])
    draws = run_setup.federation.draws(run_setup.settings.seed, sent_round)
    return ClientTask(
        round=sent_round,
        client=client,
        sample_rows=jobs.rows[job_row],
        units=int(jobs.units[job_row]),
        units_asked=int(jobs.assigned[job_row]),
        lr=run_setup.components.client.lr_at(sent_round),
        duration_s=float(jobs.duration_s[job_row]),
        stored_vectors=run_setup.store.read_vectors(client),
        uses_only_codec_hooks=is_fedavg,
        tensor_mask=jobs.tensor_mask[job_row],
        needs_final_loss=run_setup.cost_model.select_job_costs(is_fedavg).report_passes > 0,
        store_losses=run_setup.samples.make_loss_updater(threshold, jobs, job_row, draws),
    )


def make_collector(run_setup: RunSetup, closed_round: ClosedRound) -> Collector:
    """Return the collector of the updates that arrive on all ranks.

    Args:
        run_setup: the objects of the run.
        closed_round: the round, which determines which jobs arrive.
    """
    is_fedavg, server = closed_round.selection.plain, run_setup.server
    client_hooks = run_setup.components.select_client_hooks(is_fedavg)
    collect_options = CollectorOptions(
        upload_names=[k for h in client_hooks for k in h.uploads],
        averaged_uploads=list_averaged_uploads(client_hooks),
        vector_lengths=run_setup.vector_lengths(is_fedavg),
        report_readers=make_signal_readers(
            run_setup.components, run_setup.dispatcher.client_reports, is_fedavg, closed_round.round
        ),
        keeps_updates=requires_update_matrix(run_setup.components),
        uses_second_moments=run_setup.settings.bn_var == "moments",
        max_update_norm=compute_norm_limit(server, run_setup.settings.update_limit),
        stored_dtype=server.w.dtype,
    )
    cohort, client_weights = closed_round.arrived_jobs.client, closed_round.client_weights
    collector_arguments = (server.layout, cohort, client_weights, collect_options, count_processes(), server.w.device)
    attack, attackers = run_setup.components.attack, np.flatnonzero(run_setup.dispatcher.client_reports.is_attacker)
    if not attack.falsifies_updates or not len(attackers):
        return Collector(*collector_arguments)
    tensor_masks = dict(zip(cohort.tolist(), closed_round.arrived_jobs.tensor_mask, strict=True))
    round_attack = RoundAttack(attack, attackers, run_setup.settings.seed, closed_round.round, tensor_masks)
    return AttackCollector(round_attack, *collector_arguments)
