"""The contract of a dataset, and the checks that the data of each go through when a run reads them."""

import logging
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fedcohort.component import Component
from fedcohort.contracts import describe_value
from fedcohort.data.pixels import PixelScale
from fedcohort.data.targets import ONE_CLASS, Labels, Targets
from fedcohort.errors import DataError
from fedcohort.types import Ids

ROWS = 4096  # compared at a time
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
        parts = [part for part in (self.train_attribute, self.test_attribute) if part is not None]
        return int(max(part.max() for part in parts)) + 1 if parts else 0


class Dataset(Component, Protocol):
    """A source of samples."""

    @abstractmethod
    def load(self, seed: int) -> Raw:
        """Read or draw the data; `seed` is `data_seed`. Raises `DataError`."""


def check(raw: Raw) -> Raw:
    """Return the data with float32 inputs and int64 labels, and log a warning that names converted arrays.

    Raises `DataError` that names the dataset, what is wrong and where.
    """
    _check_types(raw)
    raw = replace(raw, **_convert(raw))
    parts = [("train", raw.train_x, raw.train_y), ("test", raw.test_x, raw.test_y)]
    for part, x, y in parts if raw.valid is None else [*parts, ("valid", *raw.valid)]:
        if len(x) != len(y) or len(y) == 0:
            raise DataError(f"dataset={raw.name}: {part} has {len(x)} inputs and {len(y)} labels")
        if x.shape[1:] != raw.train_x.shape[1:] or y.shape[1:] != raw.train_y.shape[1:]:
            shapes = [list(array.shape[1:]) for array in (x, y, raw.train_x, raw.train_y)]
            raise DataError(
                f"dataset={raw.name}: {part} samples have inputs {shapes[0]} and labels {shapes[1]}, training samples "
                f"{shapes[2]} and {shapes[3]}"
            )
        if y.min() < (low := raw.targets.lowest) or y.max() >= raw.n_classes:
            raise DataError(
                f"dataset={raw.name}: {part} labels must be in [{low}, {raw.n_classes - 1}], got {y.min()}..{y.max()}"
            )
        if (row := _find_bad_row(x)) is not None:
            raise DataError(f"dataset={raw.name}: {part} row {row} has a feature that is NaN or infinite")
    if raw.targets.single and len(raw.train_x) > 1 and _are_rows_equal(raw.train_x):
        raise DataError(
            f"dataset={raw.name}: all {len(raw.train_x)} training samples are the same: there is nothing to learn"
        )
    return raw


def _check_types(raw: Raw) -> None:
    """Check that each field of numbers is an array of the right kind and length. Raises `DataError`."""
    valid = {} if raw.valid is None else {"valid": raw.valid}
    pairs = {"train": (raw.train_x, raw.train_y), "test": (raw.test_x, raw.test_y), **valid}
    places = 1 if raw.targets.single else 2
    for part, (x, y) in pairs.items():
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiu" or x.ndim < 2:
            raise DataError(
                f"dataset={raw.name}: {part} inputs must be an array [N, ...] of numbers, got {describe_value(x)}"
            )
        if not _holds_integers(y) or y.ndim != places:
            axes = "[N]" if places == 1 else "[N, places]"
            raise DataError(
                f"dataset={raw.name}: {part} labels must be an integer array {axes}, got {describe_value(y)}"
            )
    for name in ("train_owner", "test_owner", "train_attribute", "test_attribute"):
        values, n = getattr(raw, name), len(raw.train_y if name.startswith("train") else raw.test_y)
        if values is not None and (not _holds_integers(values) or values.shape != (n,) or (n and values.min() < 0)):
            raise DataError(
                f"dataset={raw.name}: {name} must be an integer array [{n}] from 0, got {describe_value(values)}"
            )
    if isinstance(raw.n_classes, bool) or not isinstance(raw.n_classes, int | np.integer) or raw.n_classes < 1:
        raise DataError(
            f"dataset={raw.name}: n_classes must be an integer of at least 1, got {describe_value(raw.n_classes)}"
        )


def _holds_integers(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _convert(raw: Raw) -> dict[str, Any]:
    """Return the fields that need other types: float32 inputs, int64 labels, owners and attributes."""
    arrays = {name: values for name, values in vars(raw).items() if isinstance(values, np.ndarray)}
    dtypes = {name: _type_of(name, values) for name, values in arrays.items()}
    converted: dict[str, Any] = {n: x.astype(dtypes[n]) for n, x in arrays.items() if x.dtype != dtypes[n]}
    if raw.valid is not None:
        x, y = raw.valid
        converted["valid"] = x.astype(_type_of("x", x), copy=False), y.astype(np.int64, copy=False)
    changed = [f"{name} from {arrays[name].dtype} to {converted[name].dtype}" for name in converted if name in arrays]
    if changed:
        log.warning("dataset=%s: converted %s", raw.name, ", ".join(changed))
    return converted


def _type_of(name: str, values: np.ndarray) -> np.dtype[Any]:
    """Return the type that a field needs; inputs of integers keep their type."""
    if not name.endswith("x"):
        return np.dtype(np.int64)
    return np.dtype(np.float32) if values.dtype.kind == "f" else values.dtype


def _are_rows_equal(x: np.ndarray) -> bool:
    """Return whether all rows are equal; the first few are compared first."""
    return bool((x[:9] == x[0]).all()) and all((x[i : i + ROWS] == x[0]).all() for i in range(9, len(x), ROWS))


def _find_bad_row(x: np.ndarray) -> int | None:
    """Return the first row with a feature that is NaN or infinite; None without such a row."""
    if x.dtype.kind != "f":
        return None
    for start in range(0, len(x), ROWS):
        finite = np.isfinite(x[start : start + ROWS].reshape(min(ROWS, len(x) - start), -1)).all(1)
        if not finite.all():
            return start + int(finite.argmin())
    return None
