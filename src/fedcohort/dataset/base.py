"""The contract of a dataset, and the checks that the data of each go through when a run reads them."""

import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.contracts import describe_value
from fedcohort.data.pixels import PixelScale
from fedcohort.data.targets import ONE_CLASS, Labels, Targets
from fedcohort.errors import DataError, OptionError
from fedcohort.types import Ids

ROWS_PER_BLOCK = 4096  # compared at a time
ID_FIELDS = ("train_owner", "test_owner", "train_attribute", "test_attribute")
log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Raw:
    """The arrays of a dataset, with their description.

    Attributes:
        train_x, test_x: float32 [N, ...]; or uint8 images [N, channels, height, width] with `scale`; or sequences of
            tokens, integers counted from 0 of any integer type.
        train_y, test_y: int64 labels in [0, n_classes), [N]; or [N, T] with `targets`.
        name: name of the dataset, as in dataset=NAME.
        n_classes: number of classes.
        train_owner, test_owner: number of the natural client of each row, int64 [N] from 0; None without natural
            clients.
        train_attribute, test_attribute: an attribute of each row besides its class (a background, a colour), int64 [N]
            from 0; None if the dataset has none; both or neither.
        owner_names: names of the natural clients in the data, by number; empty without names.
        inputs: description of a sample's numbers and of what was left out, for people; may be empty.
        class_names: names of the classes in the data; empty if labels are whole numbers.
        columns: names of the numbers of a sample, in order; empty if samples are no rows of numbers.
        pooled_test: whether the test split belongs to the server, so that no client has a share of it.
        feature_moments: mean and standard deviation by which each feature was standardised, each float32 with the shape
            of a sample; None if features were not standardised.
        scale: normalisation of uint8 inputs; None for other inputs.
        converted_scale: normalisation by which float32 inputs were computed from pixels, None for other inputs. Pixels
            of the server's proxy set are normalised by it, too.
        targets: whether a label is one class, or one class per position of the sample.
        valid: inputs [n, ...] and labels [n] of the dataset's validation part, which becomes the server's validation
            data; None if the server takes a part of the training data.
        revision: `user/data@commit` or `user/data:configuration@commit` of the Hugging Face hub; empty for files.
        categories: levels of each one-hot encoded column, as JSON; empty without such columns.
        small_client_remedy: options with which clients with too few samples can be left out, for messages; may be
            empty.
        single_use: whether the caller may change train_x and train_y in place, since nothing else uses them.
    """

    name: str
    train_x: np.ndarray
    train_y: Labels
    test_x: np.ndarray
    test_y: Labels
    n_classes: int
    train_owner: Ids | None = None
    test_owner: Ids | None = None
    inputs: str = ""
    train_attribute: Ids | None = None
    test_attribute: Ids | None = None
    class_names: Sequence[str] = ()
    columns: Sequence[str] = ()
    pooled_test: bool = False
    feature_moments: tuple[np.ndarray, np.ndarray] | None = None
    scale: PixelScale | None = None
    valid: tuple[np.ndarray, Ids] | None = None
    revision: str = ""
    single_use: bool = False
    owner_names: Sequence[str] = ()
    targets: Targets = ONE_CLASS
    converted_scale: PixelScale | None = None
    categories: str = ""
    small_client_remedy: str = ""

    @property
    def train_class(self) -> Ids:
        """Class of each training sample, int64 [N]; 0 for all samples if a sample has one class per position."""
        return self.targets.strata(self.train_y, self.n_classes)[0]

    @property
    def test_class(self) -> Ids:
        """Class of each test sample, int64 [N]; 0 for all samples if a sample has one class per position."""
        return self.targets.strata(self.test_y, self.n_classes)[0]

    @property
    def n_strata(self) -> int:
        """Number of classes by which samples are grouped: n_classes, or 1 if a sample has one class per position."""
        return self.targets.strata(self.test_y, self.n_classes)[1]

    @property
    def n_attributes(self) -> int:
        """Number of different values of the attribute; 0 for a dataset without attribute."""
        attribute_arrays = [
            attribute for attribute in (self.train_attribute, self.test_attribute) if attribute is not None
        ]
        return int(max(attribute.max() for attribute in attribute_arrays)) + 1 if attribute_arrays else 0


class Dataset(Component, Protocol):
    """A dataset: a source of training and test samples with labels."""

    @abstractmethod
    def load(self, seed: int) -> Raw:
        """Read or generate the data.

        Args:
            seed: value of the option `data_seed`, from which all random draws of the dataset follow.

        Raises:
            DataError: the data are missing, damaged or invalid.
        """


def check_clients_option(n_clients: int | None, suggested_n_clients: int) -> None:
    """Raise `OptionError` if the option `n_clients` of a dataset that generates its clients is not an integer above 0.

    Args:
        n_clients: value of the option.
        suggested_n_clients: number of clients that the message suggests.
    """
    if n_clients is None:  # it follows the option `clients` of the run
        raise OptionError(
            "clients must be an integer in [1, inf), got null: this dataset has no natural clients, but generates "
            f"clients. Set their number, such as clients={suggested_n_clients}"
        )
    ranges.integer("clients", n_clients, "[1, inf)")


def check_raw_data(raw_data: Raw) -> Raw:
    """Check the arrays of a dataset, and return it with float32 inputs, unless they are integers, and int64 labels.

    A warning names the arrays that were converted.

    Args:
        raw_data: dataset as its loader returned it.

    Raises:
        DataError: an array has a wrong type, shape or value, `n_classes` is invalid, or all training samples are equal;
            the message names the dataset.
    """
    _check_owners_and_attributes(raw_data)
    x, y = _check_part(raw_data, "train", raw_data.train_x, raw_data.train_y)
    test_x, test_y = _check_part(raw_data, "test", raw_data.test_x, raw_data.test_y)
    id_arrays = {field: getattr(raw_data, field) for field in ID_FIELDS if getattr(raw_data, field) is not None}
    arrays_by_field: dict[str, np.ndarray] = {"train_x": x, "train_y": y, "test_x": test_x, "test_y": test_y}
    arrays_by_field |= {field: id_array.astype(np.int64, copy=False) for field, id_array in id_arrays.items()}
    if dtype_changes := [
        f"{field_name} from {getattr(raw_data, field_name).dtype} to {checked_array.dtype}"
        for field_name, checked_array in arrays_by_field.items()
        if checked_array.dtype != getattr(raw_data, field_name).dtype
    ]:
        log.warning("dataset=%s: converted %s", raw_data.name, ", ".join(dtype_changes))
    if raw_data.targets.single and len(raw_data.train_x) > 1 and _are_all_samples_equal(raw_data.train_x):
        raise DataError(
            f"dataset={raw_data.name}: all {len(raw_data.train_x)} training samples are the same: there is nothing to "
            "learn, check the data"
        )
    validation_part = None if raw_data.valid is None else _check_part(raw_data, "valid", *raw_data.valid)
    return replace(raw_data, **arrays_by_field, valid=validation_part)  # type: ignore[arg-type]  # mypy takes one type for all fields


def _check_part(raw_data: Raw, split_name: str, x: Any, y: Any) -> tuple[np.ndarray, Labels]:  # noqa: ANN401  checked here
    """Check the inputs and labels of one part of a dataset.

    Args:
        raw_data: the dataset; all parts must have the sample shape of its training part.
        split_name: train, test or valid, for messages.
        x: inputs, [N, ...].
        y: labels, [N], or [N, positions] if a sample has one class per position.

    Returns:
        Inputs as float32, unless they are integers; labels as int64.

    Raises:
        DataError: an array has the wrong type, shape or values.
    """
    message_start = f"dataset={raw_data.name}: {split_name}"
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu" or x.ndim < 2:
        raise DataError(f"{message_start} inputs must be an array [N, ...] of numbers, got {describe_value(x)}")
    if not _is_integer_array(y) or y.ndim != (1 if raw_data.targets.single else 2):
        expected_axes = "[N]" if raw_data.targets.single else "[N, positions]"
        raise DataError(f"{message_start} labels must be an integer array {expected_axes}, got {describe_value(y)}")
    if len(x) != len(y) or len(y) == 0:
        raise DataError(f"{message_start} has {len(x)} inputs and {len(y)} labels: the numbers must be equal")
    if x.shape[1:] != raw_data.train_x.shape[1:] or y.shape[1:] != raw_data.train_y.shape[1:]:
        raise DataError(
            f"{message_start} samples have inputs {list(x.shape[1:])} and labels {list(y.shape[1:])}, training samples "
            f"{list(raw_data.train_x.shape[1:])} and {list(raw_data.train_y.shape[1:])}: all must be equal"
        )
    if y.min() < (lowest_label := raw_data.targets.min_label) or y.max() >= raw_data.n_classes:
        raise DataError(
            f"{message_start} labels must be in [{lowest_label}, {raw_data.n_classes - 1}], got {y.min()}..{y.max()}"
        )
    x = x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
    if (nan_row := _find_nonfinite_row(x)) is not None:
        raise DataError(f"{message_start} row {nan_row} has a feature that is NaN or infinite: correct or remove it")
    return x, y.astype(np.int64, copy=False)


def _check_owners_and_attributes(raw_data: Raw) -> None:
    """Raise `DataError` for invalid owners, attributes or number of classes in `raw_data`."""
    for field in ID_FIELDS:
        id_array, labels = getattr(raw_data, field), raw_data.train_y if field.startswith("train") else raw_data.test_y
        n_samples = len(labels) if isinstance(labels, np.ndarray) else 0
        if id_array is not None and (
            not _is_integer_array(id_array) or id_array.shape != (n_samples,) or (n_samples and id_array.min() < 0)
        ):
            problem_text = f"{field} must be an integer array [{n_samples}] from 0, got {describe_value(id_array)}"
            raise DataError(f"dataset={raw_data.name}: {problem_text}")
    n_classes: object = raw_data.n_classes
    if isinstance(n_classes, bool) or not isinstance(n_classes, int | np.integer) or n_classes < 1:
        problem_text = f"n_classes must be an integer of at least 1, got {describe_value(n_classes)}"
        raise DataError(f"dataset={raw_data.name}: {problem_text}")


def _is_integer_array(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iu"


def _are_all_samples_equal(x: np.ndarray) -> bool:
    """Return whether all samples in `x` [N, ...] are equal; nine samples are compared first, which is faster."""
    return bool((x[:9] == x[0]).all()) and all(
        (x[block_start : block_start + ROWS_PER_BLOCK] == x[0]).all()
        for block_start in range(9, len(x), ROWS_PER_BLOCK)
    )


def _find_nonfinite_row(x: np.ndarray) -> int | None:
    """Return the first row of the inputs `x` [N, ...] with a value that is NaN or infinite; None if there is none."""
    for block_start in range(0, len(x) if x.dtype.kind == "f" else 0, ROWS_PER_BLOCK):
        input_block = x[block_start : block_start + ROWS_PER_BLOCK]
        is_finite_row = np.isfinite(input_block).reshape(len(input_block), -1).all(1)
        if not is_finite_row.all():
            return block_start + int(is_finite_row.argmin())
    return None
