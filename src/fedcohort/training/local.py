"""Local training of one client.

One network trains all clients of a process. Its parameters are views into a flat vector, so that a client needs one
copy of the model, and its mini-batches are slices of one gather per pass.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import ClientContext, ClientHook, Correction, NamedVectors, begin_hooks, find_weigher, finish_hooks
from fedcohort.rng import RekeyedGenerator, new_generator, seeded_torch
from fedcohort.training.chain import find_dense_chain
from fedcohort.training.chain_pass import DenseChainPass
from fedcohort.training.client_task import ClientTask
from fedcohort.training.evaluate import cross_entropy, mean_over_samples
from fedcohort.training.local_method import LocalTrainingMethod
from fedcohort.training.memory_layout import gather_rows
from fedcohort.training.passes import BatchRanges, PassOrders, cut_into_batches, draw_sample_passes
from fedcohort.training.positions import adapt_objective
from fedcohort.training.response import GradientCoefficientNorms
from fedcohort.training.step import CorrectedStep, PlainSgdStep, StepwisePass, TrainingPass, TrainingStep
from fedcohort.training.transfer import TrainingResult, copy_to_device, yield_updates_in_blocks
from fedcohort.training.upload import encode_and_decode_update
from fedcohort.training.weighted import WeightedStep, yield_validation_batches
from fedcohort.types import ClientUpdate, Ids, UpdateGroup

PassTensors = tuple[Tensor, Tensor, Tensor | None]  # inputs, labels, reference probabilities
OrderedPass = tuple[Tensor, BatchRanges]  # order of the samples, on their device, and mini-batches of a pass


class LocalTrainer:
    """The training of clients one by one by `local_method` on the model `worker`, from the global model `server`.

    Attributes:
        chain: the network's layers with hand-written gradients; None to use autograd (`uses_closed_form` False).
        wrap_step: function that wraps the steps, for debugging.
    """

    def __init__(
        self,
        server: FlatModel,
        worker: FlatModel,
        federation: Federation,
        local_method: LocalTrainingMethod,
        seed: int,
        uses_closed_form: bool = True,
    ) -> None:
        self.server, self.worker, self.federation = server, worker, federation
        self.objective, self.client = adapt_objective(federation.targets, local_method.objective), local_method.client
        self.codec, self.hooks, self.seed = local_method.codec, local_method.hooks, seed
        self.weighs_samples = find_weigher(local_method.hooks) is not None
        augmentation = local_method.augmentation
        self.augmentation = None if augmentation is None or augmentation.identity else augmentation
        needs_autograd = federation.is_symbolic or worker.bf16 or self.weighs_samples or not federation.targets.single
        self.chain = find_dense_chain(worker, federation.scale) if uses_closed_form and not needs_autograd else None
        self.response = GradientCoefficientNorms(local_method.client, local_method.regularisers)
        self.rng = RekeyedGenerator()
        self.wrap_step: Callable[[TrainingStep], TrainingStep] = lambda step: step

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield each of `tasks` as a separate group, since clients are trained one at a time."""
        return ([task] for task in tasks)

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: NamedVectors) -> Iterator[ClientUpdate]:
        """Train the clients, and yield updates in the order of `tasks`; `broadcast` has the aggregator's vectors."""
        return yield_updates_in_blocks(self.train_one_by_one(tasks, broadcast), self.server.w.device)

    def train(self, task: ClientTask, broadcast: NamedVectors) -> ClientUpdate:
        """Train `task.client` from the global model; `broadcast` has the aggregator's vectors by name."""
        return next(self.train_clients([task], broadcast))

    def train_one_by_one(self, tasks: Sequence[ClientTask], broadcast: NamedVectors) -> Iterator[list[TrainingResult]]:
        """Train the client of each task, and yield its result; `broadcast` has the aggregator's vectors by name."""
        task_passes = [self.draw_sample_passes(task) for task in tasks]
        sample_orders = [sample_order for pass_orders in task_passes for sample_order, _ in pass_orders]
        chosen_sample_rows = [task.sample_rows for task in tasks if task.sample_rows is not None]
        index_tensors = copy_to_device([*chosen_sample_rows, *sample_orders], self.server.w.device)
        rows_by_task = [None if task.sample_rows is None else next(index_tensors) for task in tasks]
        for task, sample_rows, pass_orders in zip(tasks, rows_by_task, task_passes, strict=True):
            self.worker.copy_from(self.server)
            x, y = self.gather_samples(task, sample_rows)
            ref_probs = self.compute_reference_probs(x) if self.objective.uses_reference else None
            corrections = self.begin_client_hooks(task, broadcast)
            # The generator is set for every network, as a user's module may draw random numbers.
            with seeded_torch(self.seed, "dropout", task.round, task.client):
                ordered_passes = [(next(index_tensors), p) for _, p in pass_orders]
                losses = self._train_on_passes(task, (x, y, ref_probs), corrections, ordered_passes)
            yield [self.make_result(task, self.worker.w - self.server.w, pass_orders, losses, corrections)]

    def begin_client_hooks(self, task: ClientTask, broadcast: NamedVectors) -> list[Correction]:
        """Prepare all client hooks, given the aggregator's vectors `broadcast`; return corrections of the gradient."""
        rng, n_train = partial(self._make_task_rng, task), int(self.federation.n_train[task.client])
        ctx = ClientContext(task.round, task.client, self.server.layout, rng, n_train)
        return begin_hooks(self._list_active_hooks(task), self.server.w, broadcast, task.stored_vectors, ctx)

    def _list_active_hooks(self, task: ClientTask) -> Sequence[ClientHook]:
        return self.codec.hooks if task.uses_only_codec_hooks else self.hooks

    def _make_task_rng(self, task: ClientTask, purpose: str) -> np.random.Generator:
        return new_generator(self.seed, purpose, task.round, task.client)

    def train_whole_job(self, round: int, client: int, sample_rows: Ids | None = None) -> ClientUpdate:
        """Return the update that `client` would send after its whole job in `round`.

        It would train on the samples at the positions `sample_rows`, None for all.
        """
        units, lr = self.client.epochs if self.client.steps is None else self.client.steps, self.client.lr_at(round)
        return self.train(ClientTask(round, client, sample_rows, units, units, lr, math.nan, {}), {})

    def gather_samples(self, task: ClientTask, sample_rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of the samples to train on; `sample_rows` are `task.sample_rows` on their device."""
        x, y = self.federation.train.client_samples(task.client)
        return (x, y) if sample_rows is None else (gather_rows(x, sample_rows), y.index_select(0, sample_rows))

    @torch.no_grad()
    def compute_reference_probs(self, x: Tensor) -> Tensor:
        """Return the class probabilities of the model in `self.worker`, the global one, for inputs `x`, [n, ..., C]."""
        self.worker.network.eval()
        return F.softmax(self.worker.network(x), -1)

    def count_samples(self, task: ClientTask) -> int:
        """Return the number of samples on which the client of `task` trains."""
        client_offsets, k = self.federation.train.offsets, task.client
        return int(client_offsets[k + 1] - client_offsets[k]) if task.sample_rows is None else len(task.sample_rows)

    def draw_sample_passes(self, task: ClientTask) -> PassOrders:
        """Return the passes over the samples of `task`; their order depends on the seed, the round and the client."""
        n_samples = self.count_samples(task)
        rng = self.rng.rekey(self.seed, "batches", task.round, task.client)
        batch_ranges = cut_into_batches(n_samples, self.client.batch or n_samples, self.worker.has_batch_norm)
        n_steps = task.units if self.client.steps is not None else task.units * len(batch_ranges)
        return draw_sample_passes(rng, n_samples, batch_ranges, n_steps)

    def _train_on_passes(
        self, task: ClientTask, pass_data: PassTensors, corrections: Sequence[Correction], passes: Sequence[OrderedPass]
    ) -> Tensor:
        """Train `worker` on `pass_data` of `task`; return samples' losses before each step, ordered as in `passes`."""
        x, y, reference_probs = pass_data
        is_eval_mode = self.worker.has_batch_norm and len(y) == 1  # batch statistics of a single sample are undefined
        if self.worker.network.training == is_eval_mode:
            self.worker.network.train(not is_eval_mode)
        training_pass, losses = self._choose_training_pass(task, corrections), [self.worker.w.new_empty(0)]
        augmentation_rng = self._make_task_rng(task, "augmentation") if self.augmentation is not None else None
        for sample_order, batch_ranges in passes:
            # A pass gathers its samples once; its mini-batches are views of them.
            ref_probs = None if reference_probs is None else reference_probs.index_select(0, sample_order)
            inputs = self._augment_inputs(gather_rows(x, sample_order), augmentation_rng)
            losses.append(training_pass(inputs, y.index_select(0, sample_order), ref_probs, batch_ranges))
        return torch.cat(losses)

    def _augment_inputs(self, x: Tensor, augmentation_rng: np.random.Generator | None) -> Tensor:
        """Return `x`, samples of one pass, augmented by draws from `augmentation_rng`; bytes become floats first."""
        if self.augmentation is None or augmentation_rng is None:
            return x
        pixel_scale = self.federation.scale
        return self.augmentation.change(x if pixel_scale is None else pixel_scale.convert_tensor(x), augmentation_rng)

    def _choose_training_pass(self, task: ClientTask, corrections: Sequence[Correction]) -> TrainingPass:
        """Return the fastest kind of pass for `task` that supports local training with the hooks' `corrections`."""
        lr = task.lr
        if self.weighs_samples and not task.uses_only_codec_hooks:
            step_arguments = (self.worker, self.objective, self.client, lr, corrections)
            x, y = self.federation.val.client_samples(task.client)
            val_batches = yield_validation_batches(x, y, self.client.batch, self._make_task_rng(task, "validation"))
            return StepwisePass(self.wrap_step(WeightedStep(*step_arguments, self._batch_positions(task), val_batches)))
        if self.chain is not None:
            return DenseChainPass(self.worker, self.chain, self.objective, self.client, lr, corrections)
        if self.client.plain and not corrections:
            return StepwisePass(self.wrap_step(PlainSgdStep(self.worker, self.objective, lr)))
        return StepwisePass(self.wrap_step(CorrectedStep(self.worker, self.objective, self.client, lr, corrections)))

    def _batch_positions(self, task: ClientTask) -> Iterator[Tensor]:
        """Yield the positions of each mini-batch's samples among those of the client of `task`, [batch]."""
        for sample_order, batch_ranges in self.draw_sample_passes(task):
            sample_positions = torch.from_numpy(task.order_sample_rows(sample_order)).to(self.worker.w.device)
            yield from (sample_positions[a:b] for a, b in batch_ranges)

    @torch.no_grad()
    def make_result(
        self,
        task: ClientTask,
        delta: Tensor | Callable[[], Tensor],
        pass_orders: PassOrders,
        losses: Tensor,
        corrections: Sequence[Correction],
        group: tuple[UpdateGroup, Tensor] | None = None,
    ) -> TrainingResult:
        """Return the result of a client's local training: its update, losses and vectors for the server.

        The model of `worker` must be the client's if hooks, buffers or the loss after the training read it.

        Args:
            task: the client's task.
            delta: change of the model [P], or a function that computes it.
            pass_orders: order of the samples and mini-batches of each pass.
            losses: cross-entropies of the samples of all steps, before their step, [samples].
            corrections: corrections of the gradient by client hooks.
            group: object that sums the updates of clients trained at once, and the norm of `delta`; else None.
        """
        worker, n_steps = self.worker, sum(len(batch_ranges) for _, batch_ranges in pass_orders)
        hook_results = finish_hooks(self._list_active_hooks(task), corrections, worker.w, n_steps, task.lr)
        if not self.sends_whole_update(task):
            update, make_codec_rng = delta() if callable(delta) else delta, partial(self._make_task_rng, task, "codec")
            delta = encode_and_decode_update(self.codec, worker.layout, task.tensor_mask, update, make_codec_rng)
        buffers = worker.buffers.clone() if len(worker.buffers) else worker.buffers
        uploads = {n: u for r in hook_results for n, u in r.uploads.items()}
        sent_vectors = [*uploads.values(), *([buffers] if len(buffers) else [])]
        update_norm = torch.linalg.vector_norm(delta() if callable(delta) else delta) if group is None else group[1]
        make_update = partial(
            ClientUpdate,
            client=task.client,
            n_train=int(self.federation.n_train[task.client]),
            steps=n_steps,
            response=self.response(n_steps, task.lr),
            units_done=task.units,
            units_asked=task.units_asked,
            lr=task.lr,
            vector=delta,
            buffers=buffers,
            counters=worker.counters.clone() if len(worker.counters) else worker.counters,
            uploads=uploads,
            duration=task.duration_s,
            loss_after=self._measure_loss(task),
            group=None if group is None else group[0],
        )
        vector_norms = [update_norm, *map(torch.linalg.vector_norm, sent_vectors)]
        stored_vectors = {n: v for r in hook_results for n, v in r.stored.items()}
        n_bytes, pass_results = worker.w.nbytes * (1 + len(uploads)), (self.count_samples(task), pass_orders, losses)
        return TrainingResult(*pass_results, vector_norms, stored_vectors, task.store_losses, n_bytes, make_update)

    def _measure_loss(self, task: ClientTask) -> float:
        """Return the cross-entropy of `worker` on all samples of the client, in nats; NaN if `task` needs none."""
        if not task.needs_final_loss:
            return math.nan
        client = np.array([task.client])
        (loss,) = mean_over_samples(self.worker.network, self.federation.train, client, [cross_entropy])
        return float(loss[0])

    def sends_whole_update(self, task: ClientTask) -> bool:
        """Return whether the server gets the whole update of `task` unchanged."""
        return task.tensor_mask is None and self.codec.identity
