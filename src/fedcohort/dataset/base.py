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

ROWS = 4096  # compared at a time
IDS = ("train_owner", "test_owner", "train_attribute", "test_attribute")
log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Raw:
    """A dataset as arrays.

    Attributes:
        train_x, test_x: float32 [N, ...]; or uint8 images [N, channels, height, width] with `scale`; or sequences of
            tokens, integers counted from 0 of any integer type.
        train_y, test_y: int64 labels in [0, n_classes), [N]; or [N, T] with `targets`.
        train_owner, test_owner: the natural client of each row, int64 counted from 0, or None.
        train_attribute, test_attribute: an attribute of each row besides its class (a background, a colour), int64
            counted from 0; None if the dataset has none; both or neither.
        owner_names: names of the natural clients in the data, by number; empty without names.
        inputs: description of a sample's numbers and of what was left out, for people; may be empty.
        class_names: names of the classes in the data; empty if labels are whole numbers.
        columns: the columns of numbers of a sample, in order; empty if samples are no rows of numbers.
        pooled_test: whether the test split belongs to the server, so that no client has a share of it.
        standard: mean and standard deviation by which each feature was standardised, float32 [...], or None.
        scale: normalisation of uint8 inputs; None for other inputs.
        converted: normalisation by which float32 inputs were computed from pixels, None for other inputs. Pixels of the
            server's proxy set are normalised by it, too.
        targets: what labels are: a class of each sample, or of each position in it.
        valid: inputs and labels of the dataset's own validation part, which is the server's validation data. None
            where the server takes a part of the training data.
        revision: `user/data@commit` of the Hugging Face hub; empty for files.
        categories: the levels of each column that is encoded by one number for each level, as JSON; empty without any.
        small_client_remedy: the options by which clients with too few samples can be left out; empty without any.
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
    standard: tuple[np.ndarray, np.ndarray] | None = None
    scale: PixelScale | None = None
    valid: tuple[np.ndarray, Ids] | None = None
    revision: str = ""
    single_use: bool = False
    owner_names: Sequence[str] = ()
    targets: Targets = ONE_CLASS
    converted: PixelScale | None = None
    categories: str = ""
    small_client_remedy: str = ""

    @property
    def train_class(self) -> Ids:
        """The class of each training sample, int64 [N], in [0, n_strata)."""
        return self.targets.strata(self.train_y, self.n_classes)[0]

    @property
    def test_class(self) -> Ids:
        """The class of each test sample, int64 [N], in [0, n_strata)."""
        return self.targets.strata(self.test_y, self.n_classes)[0]

    @property
    def n_strata(self) -> int:
        """The number of classes of samples: n_classes, or 1 if a sample has several targets."""
        return self.targets.strata(self.test_y, self.n_classes)[1]

    @property
    def n_attributes(self) -> int:
        """The number of attributes; 0 where the dataset has none."""
        attribute_columns = [column for column in (self.train_attribute, self.test_attribute) if column is not None]
        return int(max(column.max() for column in attribute_columns)) + 1 if attribute_columns else 0


class Dataset(Component, Protocol):
    """A dataset: a source of training and test samples with labels."""

    @abstractmethod
    def load(self, seed: int) -> Raw:
        """Read or generate the data. seed: the option `data_seed`. Raises `DataError`."""


def check_generated_clients(clients: int | None, example: int) -> None:
    """Check the option `clients` of a dataset that generates its clients. Raises `OptionError`."""
    if clients is None:  # it follows the option `clients` of the run
        what = "clients must be an integer in [1, inf), got null: clients=null is for datasets with natural clients"
        raise OptionError(f"{what}, and this one generates its clients: set their number, such as clients={example}")
    ranges.integer("clients", clients, "[1, inf)")


def check(raw: Raw) -> Raw:
    """Return the data with float32 inputs and int64 labels, and log a warning that names converted arrays.

    Raises `DataError` that names the dataset, what is wrong and where.
    """
    _check_ids(raw)
    x, y = _check_part(raw, "train", raw.train_x, raw.train_y)
    test_x, test_y = _check_part(raw, "test", raw.test_x, raw.test_y)
    ids = {name: getattr(raw, name) for name in IDS if getattr(raw, name) is not None}
    converted: dict[str, np.ndarray] = {"train_x": x, "train_y": y, "test_x": test_x, "test_y": test_y}
    converted |= {name: values.astype(np.int64, copy=False) for name, values in ids.items()}
    dtypes = {name: (getattr(raw, name).dtype, array.dtype) for name, array in converted.items()}
    if changed_names := [f"{name} from {old} to {new}" for name, (old, new) in dtypes.items() if old != new]:
        log.warning("dataset=%s: converted %s", raw.name, ", ".join(changed_names))
    if raw.targets.single and len(raw.train_x) > 1 and _are_rows_equal(raw.train_x):
        what = f"all {len(raw.train_x)} training samples are the same: there is nothing to learn"
        raise DataError(f"dataset={raw.name}: {what}")
    valid = None if raw.valid is None else _check_part(raw, "valid", *raw.valid)
    return replace(raw, **converted, valid=valid)  # type: ignore[arg-type]  # mypy takes one type for all fields


def _check_part(raw: Raw, part_name: str, x: Any, y: Any) -> tuple[np.ndarray, Labels]:  # noqa: ANN401  checked here
    """Check the inputs and labels of a part, and return them as float32 (integers keep their type) and int64."""
    where = f"dataset={raw.name}: {part_name}"
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu" or x.ndim < 2:
        raise DataError(f"{where} inputs must be an array [N, ...] of numbers, got {describe_value(x)}")
    if not _holds_integers(y) or y.ndim != (1 if raw.targets.single else 2):
        axes = "[N]" if raw.targets.single else "[N, positions]"
        raise DataError(f"{where} labels must be an integer array {axes}, got {describe_value(y)}")
    if len(x) != len(y) or len(y) == 0:
        raise DataError(f"{where} has {len(x)} inputs and {len(y)} labels")
    if x.shape[1:] != raw.train_x.shape[1:] or y.shape[1:] != raw.train_y.shape[1:]:
        shapes, train = ([list(array.shape[1:]) for array in arrays] for arrays in ((x, y), (raw.train_x, raw.train_y)))
        samples = f"inputs {shapes[0]} and labels {shapes[1]}, training samples {train[0]} and {train[1]}"
        raise DataError(f"{where} samples have {samples}")
    if y.min() < (lowest_label := raw.targets.lowest) or y.max() >= raw.n_classes:
        raise DataError(f"{where} labels must be in [{lowest_label}, {raw.n_classes - 1}], got {y.min()}..{y.max()}")
    x = x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
    if (row := _find_bad_row(x)) is not None:
        raise DataError(f"{where} row {row} has a feature that is NaN or infinite")
    return x, y.astype(np.int64, copy=False)


def _check_ids(raw: Raw) -> None:
    """Check owners, attributes and the number of classes. Raises `DataError`."""
    for name in IDS:
        ids, y = getattr(raw, name), raw.train_y if name.startswith("train") else raw.test_y
        n = len(y) if isinstance(y, np.ndarray) else 0
        if ids is not None and (not _holds_integers(ids) or ids.shape != (n,) or (n and ids.min() < 0)):
            what = f"{name} must be an integer array [{n}] from 0, got {describe_value(ids)}"
            raise DataError(f"dataset={raw.name}: {what}")
    if isinstance(raw.n_classes, bool) or not isinstance(raw.n_classes, int | np.integer) or raw.n_classes < 1:
        what = f"n_classes must be an integer of at least 1, got {describe_value(raw.n_classes)}"
        raise DataError(f"dataset={raw.name}: {what}")


def _holds_integers(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _are_rows_equal(x: np.ndarray) -> bool:
    """Return whether all rows are equal; the first few are compared first."""
    return bool((x[:9] == x[0]).all()) and all((x[i : i + ROWS] == x[0]).all() for i in range(9, len(x), ROWS))


def _find_bad_row(x: np.ndarray) -> int | None:
    """Return the first row with a feature that is NaN or infinite; None without such a row."""
    for start in range(0, len(x) if x.dtype.kind == "f" else 0, ROWS):
        finite = np.isfinite(x[start : start + ROWS]).reshape(min(ROWS, len(x) - start), -1).all(1)
        if not finite.all():
            return start + int(finite.argmin())
    return None
