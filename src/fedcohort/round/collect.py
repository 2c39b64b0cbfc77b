"""The weighted sum of the clients' updates: one by one in float64 on each rank, and over ranks by one all-reduce.

There are no subtotals of slices, so that the sum is bit-equal for any number of slices. A client whose vectors are not
finite, or whose update is too long, is excluded and counted; the weights of the others are normalised again.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.round.arrivals import Arrivals, ClientVectors
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.types import ClientUpdate, Ids, UpdateGroup, Values

CPU_DEVICE = torch.device("cpu")
NUMBERS_PER_CHUNK = 131_072  # numbers of an update that are added at a time on a CPU, so that they stay in its cache

ReduceFunction = Callable[[Tensor], Tensor]  # sums a tensor over ranks


class Collector:
    """Collects the updates of one round in this process (rank).

    Args:
        layout: positions of the model's tensors in its flat vector.
        cohort: sorted ids of all clients that train in this round, over all ranks.
        client_weights: weights of these clients, not normalised.
        collect_options: the parts of updates to keep.
        n_ranks: number of processes that share the cohort.
        device: device of the updates.
    """

    def __init__(
        self,
        layout: Layout,
        cohort: Ids,
        client_weights: Values,
        collect_options: CollectorOptions,
        n_ranks: int = 1,
        device: torch.device = CPU_DEVICE,
    ) -> None:
        def make_zeros(*tensor_shape: int) -> Tensor:
            return torch.zeros(tensor_shape, dtype=torch.float64, device=device)

        upload_names, keeps_updates = collect_options.upload_names, collect_options.keeps_updates
        self.cohort, self.weights, self.options, self.n_ranks = cohort, client_weights, collect_options, n_ranks
        self.row_of_client = {int(client_id): r for r, client_id in enumerate(cohort)}
        self.update_sum = make_zeros(layout.n_params)
        self.upload_sums = {k: make_zeros(layout.n_params) for k in upload_names}
        self.buffer_sum = make_zeros(layout.n_buffers)
        self.counter_max = torch.zeros(sum(b.size for b in layout.counters), dtype=torch.int64, device=device)
        make_vector_matrix = make_zeros if n_ranks > 1 else partial(torch.empty, dtype=torch.float64, device=device)
        # Rows of clients that send nothing are removed in `finish`, so that they need no values on a single rank.
        self.update_matrix = make_vector_matrix(len(cohort), layout.n_params) if keeps_updates else None
        self.chunk_size = NUMBERS_PER_CHUNK if device.type == "cpu" else max(1, layout.n_params)
        self.float64_chunk = torch.empty(self.chunk_size, dtype=torch.float64, device=device)
        self.client_buffers = make_zeros(len(cohort), layout.n_buffers) if keeps_updates else None
        self.client_counters = self.counter_max.new_zeros(len(cohort) if keeps_updates else 0, len(self.counter_max))
        self.client_uploads = (
            {k: make_vector_matrix(len(cohort), layout.n_params) for k in upload_names} if keeps_updates else {}
        )
        self.arrival_table = np.zeros(
            (len(cohort), 2 + len(collect_options.report_readers))
        )  # whether it arrived, samples, reports
        self.group_weights: dict[int, float | None] = {}  # of an incomplete group; None for an excluded client
        self.stored_by_client: dict[int, Mapping[str, Tensor]] = {}
        no_positions = torch.empty(0, dtype=torch.int64)
        mean_and_variance_positions = (
            layout.batch_norm_positions() if collect_options.uses_second_moments else (no_positions, no_positions)
        )
        self.means, self.variances = (buffer_positions.to(device) for buffer_positions in mean_and_variance_positions)

    def add_client_update(self, update: ClientUpdate) -> None:
        """Add `update`, unless it is not finite or too long; updates of one `types.UpdateGroup` must be consecutive."""
        client_row, is_update_valid = self.row_of_client[update.client], self._is_update_valid(update)
        update_weight = float(self.weights[client_row])
        if update.group is not None and self.update_matrix is None:
            self._add_update_of_group(update.group, update.client, update_weight if is_update_valid else None)
        elif is_update_valid:
            update_row = None if self.update_matrix is None else self.update_matrix[client_row]
            self._add_weighted_vector_to_sum(self.update_sum, update.delta, update_weight, update_row)
        if not is_update_valid:
            return
        self.arrival_table[client_row, 0], self.arrival_table[client_row, 1] = 1.0, update.n_used
        self.arrival_table[client_row, 2:] = [
            read_report(update) for read_report in self.options.report_readers.values()
        ]
        for k, upload_sum in self.upload_sums.items():
            upload_row = self.client_uploads[k][client_row] if k in self.client_uploads else None
            upload_weight = update_weight if k in self.options.averaged_uploads else 1.0
            self._add_weighted_vector_to_sum(upload_sum, update.uploads[k], upload_weight, upload_row)
        if len(self.buffer_sum):
            float64_buffers = update.buffers.to(torch.float64, copy=True)  # the update's buffers must not change
            if self.client_buffers is not None:
                self.client_buffers[client_row] = float64_buffers
            float64_buffers[self.variances] += float64_buffers[self.means] ** 2
            self.buffer_sum.add_(float64_buffers, alpha=float(update.n_used))
        if len(self.counter_max):
            self.counter_max = torch.maximum(self.counter_max, update.counters)
            if len(self.client_counters):
                self.client_counters[client_row] = update.counters
        self.stored_by_client[update.client] = update.stored

    def _add_update_of_group(self, update_group: UpdateGroup, client: int, update_weight: float | None) -> None:
        """Record the weight of a client of a group, and add the sum of the whole group after its last client.

        Args:
            update_group: the clients that were trained at once.
            client: id of the client.
            update_weight: weight of the client's update; None if the update is excluded.
        """
        self.group_weights[client] = update_weight
        if len(self.group_weights) == update_group.n_clients:
            weight_by_client = {k: w for k, w in self.group_weights.items() if w is not None}
            self._add_weighted_vector_to_sum(self.update_sum, update_group.weighted_sum(weight_by_client), 1.0)
            self.group_weights = {}

    def _add_weighted_vector_to_sum(
        self, vector_sum: Tensor, vector: Tensor, vector_weight: float, vector_copy: Tensor | None = None
    ) -> None:
        """Add `vector_weight` * `vector` to `vector_sum`, [P] each, and copy `vector` into `vector_copy`, in chunks."""
        for chunk_start in range(0, len(vector_sum), self.chunk_size):
            chunk_range = slice(chunk_start, chunk_start + self.chunk_size)
            vector_chunk = vector[chunk_range]
            float64_chunk = self.float64_chunk[: len(vector_chunk)] if vector_copy is None else vector_copy[chunk_range]
            vector_sum[chunk_range].add_(float64_chunk.copy_(vector_chunk), alpha=vector_weight)

    def _is_update_valid(self, update: ClientUpdate) -> bool:
        """Return whether all vectors of `update` are finite, and its norm is at most `max_update_norm`."""
        return update.norms[0] <= self.options.max_update_norm and all(map(math.isfinite, update.norms))

    def sum_over_ranks(self, reduce_sum: ReduceFunction, reduce_max: ReduceFunction) -> Arrivals:
        """Return the round's updates, summed over all ranks; the result is the same on every rank.

        Args:
            reduce_sum: sums a tensor over ranks.
            reduce_max: takes the maximum of a tensor over ranks.

        Raises:
            ValueError: only a part of the clients that were trained as one group have arrived.
        """
        if self.group_weights:
            raise ValueError(
                f"of clients trained as one group, only {sorted(self.group_weights)} have arrived: add the others first"
            )
        arrival_table = reduce_sum(torch.from_numpy(self.arrival_table)).numpy()
        has_arrived = arrival_table[:, 0] > 0
        arrived_weights = np.where(has_arrived, self.weights, 0.0)
        weight_sum = float(arrived_weights.sum())
        has_weight = bool(has_arrived.any()) and weight_sum > 0
        buffer_means = reduce_sum(self.buffer_sum) / max(float(arrival_table[has_arrived, 1].sum()), 1.0)
        buffer_means[self.variances] -= buffer_means[self.means] ** 2
        arrived_rows = torch.from_numpy(np.flatnonzero(has_arrived))
        return Arrivals(
            clients=self.cohort[has_arrived],
            dropped_ids=self.cohort[~has_arrived],
            mean=reduce_sum(self.update_sum) / weight_sum if has_weight else None,
            totals={
                k: self._average_uploads(k, reduce_sum(upload_sum), weight_sum)
                for k, upload_sum in self.upload_sums.items()
            },
            buffers=buffer_means if has_weight else None,
            counters=reduce_max(self.counter_max) if has_weight else None,
            weights=arrived_weights[has_arrived] / weight_sum if has_weight else np.zeros(int(has_arrived.sum())),
            updates=self._select_client_rows(reduce_sum(self.update_matrix), arrived_rows)
            if self.update_matrix is not None
            else None,
            reports={k: arrival_table[has_arrived, 2 + i].copy() for i, k in enumerate(self.options.report_readers)},
            stored=self._gather_stored_vectors(reduce_sum),
            client_vectors=self._gather_client_vectors(
                arrival_table[has_arrived, 1].copy(), arrived_rows, reduce_sum, reduce_max
            ),
        )

    def _gather_client_vectors(
        self, n_used_samples: Values, arrived_rows: Tensor, reduce_sum: ReduceFunction, reduce_max: ReduceFunction
    ) -> ClientVectors | None:
        """Return buffers and uploads of the clients in `arrived_rows`; None if the matrix of updates is not kept.

        `n_used_samples`: samples of these clients; `reduce_sum`, `reduce_max`: sum and maximum of a tensor over ranks.
        """
        if self.client_buffers is None:
            return None
        return ClientVectors(
            n_used_samples,
            self._select_client_rows(reduce_sum(self.client_buffers), arrived_rows),
            self._select_client_rows(reduce_max(self.client_counters), arrived_rows),
            {k: self._select_client_rows(reduce_sum(m), arrived_rows) for k, m in self.client_uploads.items()},
            self.options.averaged_uploads,
            self.means,
            self.variances,
        )

    def _select_client_rows(self, matrix: Tensor, client_rows: Tensor) -> Tensor:
        """Return the rows `client_rows` of `matrix`, positions [m]; `matrix` itself if these are all of its rows."""
        return matrix if len(client_rows) == len(matrix) else matrix[client_rows.to(matrix.device)]

    def _average_uploads(self, upload_name: str, upload_sum: Tensor, weight_sum: float) -> Tensor:
        return (
            upload_sum / weight_sum if upload_name in self.options.averaged_uploads and weight_sum > 0 else upload_sum
        )

    def _gather_stored_vectors(self, reduce_sum: ReduceFunction) -> Mapping[int, Mapping[str, Tensor]]:
        """Return the vectors that all clients keep, by id and name, on every rank.

        Another rank may train the client in the next round. A row that begins with NaN means that a client does not
        keep this vector, as in the store. `reduce_sum` sums a tensor over ranks.
        """
        if self.n_ranks == 1 or not self.options.vector_lengths:
            return self.stored_by_client
        vector_matrix_by_name = {}
        for vector_name, n_floats in self.options.vector_lengths.items():
            vector_matrix = torch.zeros(
                (len(self.cohort), n_floats), dtype=self.options.stored_dtype, device=self.update_sum.device
            )
            for client, client_vectors in self.stored_by_client.items():
                vector_row = vector_matrix[self.row_of_client[client]]
                if vector_name in client_vectors:
                    vector_row[: len(client_vectors[vector_name])] = client_vectors[vector_name]
                else:
                    vector_row[:1] = math.nan
            vector_matrix_by_name[vector_name] = reduce_sum(vector_matrix)
        is_vector_kept = {k: (~m[:, :1].isnan().any(1)).tolist() for k, m in vector_matrix_by_name.items()}
        return {
            client: {k: m[i].clone() for k, m in vector_matrix_by_name.items() if is_vector_kept[k][i]}
            for client, i in self.row_of_client.items()
        }
