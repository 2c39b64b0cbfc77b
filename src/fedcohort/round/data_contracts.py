"""Checks of the results of partitions, noise, proxy sets, augmentations, datasets and models (`round/contracts.py`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcohort.contracts import check_array, check_ids, check_tensor, check_type, contract_error
from fedcohort.data.ragged import RaggedPositions
from fedcohort.dataset.base import Raw
from fedcohort.rng import Draws
from fedcohort.types import Ids

AnyComponent = Any  # of the group that the check stands for
Result = Any
ResultCheck = Callable[..., Result]


def check_split(
    component: AnyComponent,
    result: Result,
    sample_pool: Any,  # noqa: ANN401
    client_sizes: Any,  # noqa: ANN401
    *args: object,
) -> RaggedPositions:
    """Return the positions of the clients' samples as a `RaggedPositions` after checking them.

    Args:
        component: the partition.
        result: positions that it returned for each client.
        sample_pool: the samples that it distributes.
        client_sizes: number of clients, None for any number; or the sizes of the clients.
        args: other arguments of the partition's method.

    Raises:
        ComponentError: a position or the number of clients is invalid.
    """
    n_clients = client_sizes if client_sizes is None or isinstance(client_sizes, int) else len(client_sizes)
    if isinstance(result, RaggedPositions):
        sample_rows = result
    else:
        for client_id, rows_of_client in enumerate(check_type("the result", result, Sequence)):  # type: ignore[type-abstract]
            check_ids(f"the samples of client {client_id}", rows_of_client, len(sample_pool))
        sample_rows = RaggedPositions.from_client_rows(result)
    if not len(sample_rows) or (n_clients is not None and len(sample_rows) != n_clients):
        raise contract_error(
            "the number of clients", "at least 1" if n_clients is None else f"{n_clients}", len(sample_rows)
        )
    check_ids("the samples of all clients", np.sort(sample_rows.rows), len(sample_pool), min_length=1)
    return sample_rows


def check_noise_rates(component: AnyComponent, result: Result, draws: Draws) -> Result:
    return check_array("the result", result, (draws.n_clients,), "if", 0, 1)


def check_noise_levels(component: AnyComponent, result: Result, draws: Draws) -> Result:
    return check_array("the result", result, (draws.n_clients,), "if", min_value=0)


def check_flipped_labels(
    component: AnyComponent, result: Result, labels: Ids, noise_rate: float, n_classes: int, rng: object
) -> Result:
    return check_array("the result", result, labels.shape, "i", 0, n_classes - 1)


def check_disturbed_inputs(component: AnyComponent, result: Result, x: np.ndarray, *args: object) -> Result:
    return check_array("the result", result, x.shape, "f")


def check_proxy_inputs(component: AnyComponent, result: Result, federation: Any, seed: int) -> Result:  # noqa: ANN401  a `Federation`
    if component.has_inputs or result is not None:
        test_inputs = federation.server_test.x
        inputs_shape = tuple(getattr(result, "shape", (0,)))
        sample_shape = tuple(test_inputs.shape[1:])
        if not inputs_shape[:1] > (0,) or inputs_shape[1:] != sample_shape or result.dtype != test_inputs.dtype:
            expected_text = f"a {test_inputs.dtype} tensor [n, {', '.join(map(str, sample_shape))}]"
            raise contract_error("the result", expected_text, result)
    return result


def check_augmented_images(component: AnyComponent, result: Result, x: Any, rng: object) -> Result:  # noqa: ANN401  a tensor
    if getattr(result, "shape", None) != x.shape or result.dtype != x.dtype:
        raise contract_error("the result", f"a tensor {list(x.shape)} of type {x.dtype}, like the inputs", result)
    return result


def check_loaded_data(component: AnyComponent, result: Result, seed: int) -> Raw:
    return check_type("the result", result, Raw)


def check_network(component: AnyComponent, result: Result, *args: object) -> Result:
    from torch import nn  # noqa: PLC0415

    return check_type("the result", result, nn.Module)


def check_changed_update(component: Any, result: Result, update: Any, *args: object) -> Result:  # noqa: ANN401  a tensor
    return check_tensor("the result", result, tuple(update.shape))


def check_false_labels(component: Any, result: Result, labels: Ids, n_classes: int, rng: object) -> Result:  # noqa: ANN401
    return check_array("the result", result, labels.shape, "i", 0, n_classes - 1)


def check_noisy_values(component: Any, result: Result, true_values: np.ndarray, rng: object) -> Result:  # noqa: ANN401
    return check_array("the result", result, true_values.shape, "f", allow_nan=True)


ATTACK_CHECKS: Mapping[str, ResultCheck] = {"send": check_changed_update, "relabel": check_false_labels}
DATA_CHECKS: Mapping[str, Mapping[str, ResultCheck]] = {
    "partition": {"split": check_split, "deal": check_split},
    "label_noise": {"rates": check_noise_rates, "flip": check_flipped_labels},
    "feature_noise": {"levels": check_noise_levels, "disturb": check_disturbed_inputs},
    "proxy": {"inputs": check_proxy_inputs},
    "signal_noise": {"perturb": check_noisy_values},
    "augmentation": {"change": check_augmented_images},
    "dataset": {"load": check_loaded_data},
    "model": {"build": check_network},
}
