"""FedDF: the mean model is trained on a proxy towards the joint prediction of all clients' models (Lin et al. 2020).

Lin, Kong, Stich, Jaggi, "Ensemble Distillation for Robust Model Fusion in Federated Learning", NeurIPS 2020, arXiv
2006.07242, Alg. 1; with details of the authors' code.

    student:  s <- w_t + sum_i p_i D_i
    teachers:  w_t + D_i with their own buffers;  t(x) = softmax(mean_i z_i(x) / tau), z_i their logits
    each step:  x ~ proxy,  s <- Adam(s, gradient of the batch's mean KL(t(x) || softmax(s(x) / tau)))
    learning rate:  falls to 0 along a cosine
    direction:  s - w_t, s the student with the best accuracy on server_val, or the last

The proxy has no labels (proxy=...); the teachers' predictions are computed once a round. steps=0 is FedAvg. All
teachers count equally, as in the paper: weights, also those that a selector advises, define the first student only.

Departures from the paper:
- The student stays in eval mode: its batch-norm statistics are the clients' average, not those of the proxy.
- The default is 200 steps instead of 10,000, for small models.
- Batches on which the student agrees with the teachers to 1e-6 are skipped.
- Teachers whose logits are not finite are left out.
- The student's gradient is not clipped; the code clips it at a norm of 5.
- drop_worst leaves out teachers no better than chance. The code leaves out those below 1.2 times chance or, where there
  are none, those 1.5 standard deviations below the mean of all but the best.
"""

import copy
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, ServerModels, StatelessSampleWeighted
from fedcohort.component import (
    ONE_CLASS_PER_SAMPLE,
    PROXY_INPUTS,
    RELATIVE_ADVICE,
    SAME_MODEL,
    UNADVISED_WEIGHTS,
    Requirement,
)
from fedcohort.maths.distil import distillation_step, draw_batches, predict_logits, trainable_parameters
from fedcohort.maths.optimizers import uncompiled_optimizer


@dataclass(frozen=True)
class FedDf(StatelessSampleWeighted):
    """FedDF, an aggregator that distils all clients' models into the mean model on the server's proxy inputs.

    Attributes:
        steps: steps of the distillation in a round.
        batch: samples of the proxy in a step.
        lr: learning rate of Adam at the first step.
        tau: temperature of the softmax.
        eval_every: steps between evaluations on the server's validation set, None to take the last student.
        patience: steps without a better student after which the distillation ends.
        drop_worst: whether teachers no better than chance on the server's validation set are left out.
    """

    steps: int
    batch: int
    lr: float
    tau: float
    eval_every: int | None
    patience: int
    drop_worst: bool

    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("steps", self.steps, "[0, inf)")
        ranges.integer("batch", self.batch, "[1, inf)")
        ranges.number("lr", self.lr, "(0, 1e30]")
        ranges.number("tau", self.tau, "(0, inf)")
        ranges.integer("eval_every", self.eval_every, "[1, inf)", allow_null=True)
        ranges.integer("patience", self.patience, "[1, inf)")
        ranges.flag("drop_worst", self.drop_worst)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({UNADVISED_WEIGHTS} if self.steps else ())

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({PROXY_INPUTS, ONE_CLASS_PER_SAMPLE, *((RELATIVE_ADVICE, SAME_MODEL) if self.steps else ())})

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        mean_direction = arrived.combine(arrived.weights)
        if self.steps == 0:
            return mean_direction, None
        server_models = arrived.required_server_models
        proxy_inputs, positions_by_step = self._draw_proxy_batches(server_models)
        teacher_probs = self._predict_with_teachers(arrived, proxy_inputs)
        if teacher_probs is None:
            return mean_direction, None
        mean_model = server_models.model(mean_direction.displacement, None)
        student = self._train_student(server_models, mean_model, proxy_inputs, teacher_probs, positions_by_step)
        return Direction(server_models.update_of(student), mean_direction.weights), None

    def _draw_proxy_batches(self, server_models: ServerModels) -> tuple[Tensor, list[Tensor]]:
        """Return the proxy inputs that the distillation uses, [n, ...], and each step's positions in them, [batch].

        `server_models` has the proxy and the random generator.
        """
        n_proxy_inputs = len(server_models.proxy)
        proxy_rows_by_step = list(draw_batches(server_models.rng("distil"), n_proxy_inputs, self.batch, self.steps))
        used_proxy_rows, proxy_positions = np.unique(np.concatenate(proxy_rows_by_step), return_inverse=True)
        first_position_of_step = np.cumsum([len(proxy_rows_of_step) for proxy_rows_of_step in proxy_rows_by_step])[:-1]
        device = server_models.proxy.device
        positions_by_step = [torch.from_numpy(p).to(device) for p in np.split(proxy_positions, first_position_of_step)]
        return server_models.proxy[torch.from_numpy(used_proxy_rows).to(device)], positions_by_step

    def _predict_with_teachers(self, arrived: Arrived, proxy_inputs: Tensor) -> Float[Tensor, "n c"] | None:
        """Return the teachers' joint class probabilities for `proxy_inputs`, [n, C]; None without a valid teacher.

        The teachers are the models of the clients in `arrived`.
        """
        mean_logits, n_teachers = torch.zeros(()), 0
        for i in np.flatnonzero(arrived.weights):
            teacher = arrived.model_of(int(i))
            teacher_logits = predict_logits(teacher, proxy_inputs, self.batch)
            if not torch.isfinite(teacher_logits).all():
                continue
            if self.drop_worst and arrived.required_server_models.accuracy(teacher) <= 1 / teacher_logits.shape[1]:
                continue
            n_teachers += 1
            mean_logits = (
                teacher_logits if n_teachers == 1 else mean_logits + (teacher_logits - mean_logits) / n_teachers
            )
        return F.softmax(mean_logits / self.tau, 1) if n_teachers else None

    def _train_student(
        self,
        server_models: ServerModels,
        student: nn.Module,
        proxy_inputs: Tensor,
        teacher_probs: Tensor,
        positions_by_step: list[Tensor],
    ) -> nn.Module:
        """Train the student on the teachers' probabilities; return its best state by validation accuracy, or the last.

        Args:
            server_models: the networks on the server.
            student: network to train.
            proxy_inputs: inputs of the proxy, [n, ...].
            teacher_probs: the teachers' probabilities on `proxy_inputs`, [n, C].
            positions_by_step: positions in `proxy_inputs` of each step's mini-batch.
        """
        student.eval()
        optimizer = uncompiled_optimizer(torch.optim.Adam)(trainable_parameters(student), lr=self.lr)
        best_accuracy, best_student, steps_without_gain = -math.inf, student, 0
        for step_number, batch_positions in enumerate(positions_by_step):
            optimizer.param_groups[0]["lr"] = self.lr * 0.5 * (1 + math.cos(math.pi * step_number / self.steps))
            distillation_step(
                optimizer, teacher_probs[batch_positions], student(proxy_inputs[batch_positions]), self.tau
            )
            steps_without_gain += 1
            if self.eval_every is None or ((step_number + 1) % self.eval_every and step_number + 1 < self.steps):
                continue
            accuracy = server_models.accuracy(student)
            if accuracy > best_accuracy:
                best_accuracy, best_student, steps_without_gain = accuracy, copy.deepcopy(student), 0
            elif steps_without_gain >= self.patience:
                break
        return best_student
