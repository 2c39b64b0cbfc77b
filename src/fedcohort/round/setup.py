"""The objects that the rounds of a run share: made once, when the network and the data are on their device."""

import copy
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import ClientHook
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.round.aggregate import ServerStep
from fedcohort.round.attackers import falsify_client_labels
from fedcohort.round.average import ModelAverage
from fedcohort.round.components import Components, ServerState
from fedcohort.round.cost import CostModel
from fedcohort.round.dispatch import Dispatcher
from fedcohort.round.queries import ClientReports, QueryAnswerer
from fedcohort.round.sampling import SampleSelection, predict_chosen_samples
from fedcohort.round.score_correlation import ScoreCorrelation
from fedcohort.round.settings import Settings
from fedcohort.round.store import make_client_store
from fedcohort.training.engines import choose_engine
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.training.flops import count_forward_flops
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod
from fedcohort.training.memory_layout import to_channels_last, uses_channels_last
from fedcohort.types import ClientUpdate


class RunSetup:
    """The models, engine, cost model, dispatcher, clients' store and server step of a run.

    Attributes:
        server: the global model; its network is the `network` of the constructor.
        federation: data of the run, with the false labels of attackers; `true_federation` has the true labels.
        average: the average of the global model over rounds, which is evaluated.
        engine: the implementation of local training.
        engine_reason: description of this implementation and why it was chosen.
    """

    def __init__(
        self,
        components: Components,
        settings: Settings,
        federation: Federation,
        network: nn.Module,
        stopwatch: Stopwatch,
        store_folder: Path | None,
    ) -> None:
        """Make the models, the engine, the cost model, the dispatcher and the server step of a run.

        Args:
            components: the components of the run.
            settings: options of the rounds.
            federation: data of the run, on its device.
            network: the network, on its device.
            stopwatch: measures the stages of rounds.
            store_folder: folder for a clients' store that does not fit into memory; None for memory in any case.
        """
        self.components, self.settings, self.true_federation = components, settings, federation
        pass_flops = count_forward_flops(network, federation)
        is_channels_last = choose_memory_layout(settings, network, federation)
        worker_model = FlatModel(copy.deepcopy(network), is_channels_last, settings.precision == "bf16")
        self.server = FlatModel(network, is_channels_last)
        self.average = ModelAverage(self.server, settings.average_decay if settings.average == "ema" else None)
        layout = self.server.layout
        client_reports = ClientReports(components.attack, settings.seed, federation.n_clients, components.signal_noise)
        attackers = np.flatnonzero(client_reports.is_attacker)
        self.federation = federation = falsify_client_labels(components.attack, attackers, federation, settings.seed)
        measurer = SignalMeasurer(
            self.server,
            worker_model,
            federation,
            partial(self._predict_update, self._make_trainer(worker_model, components.codec.hooks)),
        )
        self.cost_model = CostModel(components, federation, layout, pass_flops, worker_model.has_batch_norm)
        self.store = make_client_store(
            store_folder, self.vector_lengths(is_fedavg=False), federation.n_clients, settings.store_limit_gb
        )
        self.samples = SampleSelection(components.samples, federation, components.client.batch, self.store, measurer)
        queries = QueryAnswerer(components.selector.needs, measurer, client_reports, stopwatch)
        self.dispatcher = Dispatcher(components, settings, federation, self.cost_model, queries, self.samples)
        self.server_step = ServerStep(components, self.server, self.store, federation, settings, measurer, pass_flops)
        self.score_correlation = ScoreCorrelation(self.true_federation, self.dispatcher.populations.facts["expected_s"])
        self.engine, self.engine_reason = choose_engine(
            settings.engine, self._make_trainer(worker_model, components.hooks), settings.chunk
        )

    def initial_server_state(self) -> ServerState:
        """Return the server's state before round 0, charged with the signals that clients send when they register."""
        server_state = ServerState.initial_state(
            self.components, self.dispatcher.populations, self.server.layout.n_params
        )
        server_state.spent = self.cost_model.charge_registration(self.dispatcher.populations)
        server_state.joules = self.settings.joules_per_byte * server_state.spent.up_bytes
        return server_state

    def vector_lengths(self, is_fedavg: bool) -> dict[str, int]:
        """Return the number of floats of each vector that a client keeps between rounds, by name.

        Args:
            is_fedavg: whether the round is trained as FedAvg (`Selection.plain`).
        """
        return self.components.vector_lengths(is_fedavg, self.server.layout, int(self.federation.n_train.max()))

    def _make_trainer(self, worker_model: FlatModel, client_hooks: Sequence[ClientHook]) -> LocalTrainer:
        components, settings = self.components, self.settings
        local_method = LocalTrainingMethod(
            components.objective,
            components.client,
            components.codec,
            client_hooks,
            components.regulariser.hooks,
            components.augmentation,
        )
        return LocalTrainer(
            self.server, worker_model, self.federation, local_method, settings.seed, settings.closed_form
        )

    def _predict_update(self, trainer: LocalTrainer, round: int, client: int) -> ClientUpdate:
        """Return the update that the client with id `client` would send if `trainer` trained it in `round`."""
        n_train, draws = self.federation.n_train, self.federation.draws(self.settings.seed, round)
        sample_rows = predict_chosen_samples(self.components.samples, client, int(n_train[client]), draws)
        return trainer.train_whole_job(round, client, sample_rows)


def choose_memory_layout(settings: Settings, network: nn.Module, federation: Federation) -> bool:
    """Put images into the memory layout in which the network trains fastest; return True for channels last.

    It is called before training processes are forked, so that they share the images in this layout.

    Args:
        settings: options of the run, with `engine.channels_last`.
        network: the network.
        federation: data of the run, whose images are changed.
    """
    is_channels_last = uses_channels_last(settings.channels_last, network)
    if is_channels_last:
        to_channels_last(federation)
    return is_channels_last
