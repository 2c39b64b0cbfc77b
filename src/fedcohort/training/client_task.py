"""The training task of one client in one round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from fedcohort.training.upload import TensorMask
from fedcohort.types import Ids, Values

LossStorageFunction = Callable[[Values], tuple[Mapping[str, Tensor], Mapping[str, float]]]


@dataclass(frozen=True)
class ClientTask:
    """The training task of one client in one round.

    Attributes:
        round: round of the global model that the client received, from 0.
        client: id.
        sample_rows: positions among the client's samples of those to train on; None for all.
        units: epochs, or steps, to complete.
        units_asked: epochs, or steps, of the whole job.
        lr: learning rate.
        duration_s: virtual seconds from the broadcast to the arrival of the client's update.
        stored_vectors: vectors that the client kept from earlier rounds, by name.
        uses_only_codec_hooks: whether only the codec's hooks are active.
        tensor_mask: tensors of the network that the client uploads, None for all.
        needs_final_loss: whether the client measures the loss of the trained model.
        store_losses: function from the losses of the trained samples (NaN for others) to vectors that the client
            keeps and values that it reports; None for a client that keeps no losses.
    """

    round: int
    client: int
    sample_rows: Ids | None
    units: int
    units_asked: int
    lr: float
    duration_s: float
    stored_vectors: Mapping[str, Tensor]
    uses_only_codec_hooks: bool = False
    tensor_mask: TensorMask | None = None
    needs_final_loss: bool = False
    store_losses: LossStorageFunction | None = None

    def order_sample_rows(self, sample_order: Ids) -> Ids:
        """Return the positions of the task's samples in the client's data, in the order `sample_order`."""
        return sample_order if self.sample_rows is None else self.sample_rows[sample_order]
