"""Options of a user's own table, with their ranges (`dataset/folder.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.dataset.labels import MAX_CLASSES
from fedcohort.dataset.user_table.input_columns import AUTO_OPTION_VALUE


@dataclass(frozen=True)
class TableOptions:
    """The options of a user's own dataset (dataset=folder).

    Attributes:
        path: the folder, or one table.
        label: name of the column of labels.
        client: name of the column that says which client owns a row; None to divide the rows at random.
        features: column or columns of lists or images, where several become channels; None to use the columns of single
            values.
        categories: columns to encode as one input for each value (one-hot), or "auto" for texts of 2 to 20 values.
        dates: columns to encode as days since 1970, or "auto" for all dates.
        leave_out: columns of numbers that are not inputs.
        decimal: decimal mark of CSV files: "point", "comma", or "auto" for a comma unless commas separate the columns.
        series: column that says to which time series a row belongs, in a table with one row per time step; None
            without such a column.
        window: rows of a sample in such a table; None if each row is a sample.
        n_classes: number of classes; None to count the classes of the labels.
        shape: shape of one sample; empty for the shape that the columns give.
        scale: divisor of the inputs.
        standardise: "train" or True for mean 0 and deviation 1 of each feature over the training rows, else "none".
        missing: for missing cells, "error" stops, "drop" leaves the rows out, "mean" fills in the feature's mean.
        test_share: share of the training rows that becomes the test part, where the folder has none; else None.
        test: who holds the test rows: "clients", or "server" if they are of other people than the clients.
        valid: use of a validation file: "server" (the server's validation data) or "none".
        min_client_samples: clients with fewer training samples are left out, or pooled; None to keep all clients.
        pool_small: whether such small clients are pooled instead of left out.
        pixels: images in memory, "float32", "uint8" (converted batch by batch; scale must be 255), or "auto" for uint8
            where float32 would take more than 2 GB.
    """

    path: str
    features: str | Sequence[str] | None
    label: str
    client: str | None
    categories: str | Sequence[str]
    dates: str | Sequence[str]
    leave_out: Sequence[str]
    decimal: str
    series: str | None
    window: int | None
    n_classes: int | None
    shape: Sequence[int]
    scale: float
    standardise: str | bool
    missing: str
    test_share: float | None
    test: str
    valid: str
    min_client_samples: int | None
    pool_small: bool
    pixels: str

    def __post_init__(self) -> None:
        ranges.text("path", self.path)
        ranges.text("label", self.label)
        ranges.text("client", self.client, allow_null=True)
        ranges.text("series", self.series, allow_null=True)
        self._check_column_options()
        ranges.choice("decimal", self.decimal, "auto", "point", "comma")
        ranges.integer("window", self.window, "[2, inf)", allow_null=True)
        if self.window is not None and self.list_columns:
            raise ranges.range_error("window", "null where features names columns of lists", self.window)
        ranges.integer("n_classes", self.n_classes, f"[2, {MAX_CLASSES}]", allow_null=True)
        ranges.numbers("shape", self.shape, "[1, inf)")
        for axis_size in self.shape:
            ranges.integer("each of shape", axis_size, "[1, inf)")
        ranges.number("scale", self.scale, "(0, inf)")
        if not isinstance(self.standardise, bool):
            ranges.choice("standardise", self.standardise, "none", "train")
        if self.standardises_inputs and self.scale != 1:
            raise ranges.range_error("scale", "1 with standardise=train, which cancels a scale", self.scale)
        ranges.choice("missing", self.missing, "error", "drop", "mean")
        ranges.number("test_share", self.test_share, "(0, 0.5]", allow_null=True)
        ranges.choice("test", self.test, "clients", "server")
        ranges.choice("valid", self.valid, "server", "none")
        ranges.integer("min_client_samples", self.min_client_samples, "[3, inf)", allow_null=True)
        ranges.flag("pool_small", self.pool_small)
        if self.pool_small and self.min_client_samples is None:
            raise ranges.range_error("min_client_samples", "an integer in [3, inf) where pool_small=true", None)
        ranges.choice("pixels", self.pixels, "auto", "float32", "uint8")
        if self.pixels == "uint8" and not (self.list_columns and self.scale == 255 and not self.standardises_inputs):
            allowed_text = "auto or float32 (uint8 needs image columns in features, scale=255 and no standardisation)"
            raise ranges.range_error("pixels", allowed_text, self.pixels)

    @property
    def list_columns(self) -> tuple[str, ...]:
        """Names of the columns of lists or images in `features`."""
        return (self.features,) if isinstance(self.features, str) else tuple(self.features or ())

    @property
    def id_columns(self) -> list[str]:
        """Names of the columns whose cells are names, also where these are numbers: labels, clients, categories."""
        categories = [] if self.categories == AUTO_OPTION_VALUE else self.categories
        return [name for name in (self.label, self.client, self.series, *categories) if name is not None]

    @property
    def standardises_inputs(self) -> bool:
        """Whether inputs are standardised."""
        return self.standardise in ("train", True)

    def _check_column_options(self) -> None:
        """Raise `OptionError` for an invalid option that names columns, or a column with two uses."""
        if self.features is not None:
            ranges.texts("features", self.list_columns)
            if not self.list_columns or not all(column_name.strip() for column_name in self.list_columns):
                raise ranges.range_error("features", "text, a list of texts, or null", self.features)
        columns_by_option = {"features": self.list_columns, "leave_out": self.leave_out}
        for option_name in ("categories", "dates"):
            if (option_columns := getattr(self, option_name)) != AUTO_OPTION_VALUE:
                ranges.texts(option_name, option_columns)
                columns_by_option[option_name] = option_columns
        ranges.texts("leave_out", self.leave_out)
        if self.leave_out and self.list_columns:
            raise ranges.range_error("leave_out", "[] where features names one column", self.leave_out)
        label_and_client_columns = {"label": self.label, "client": self.client}
        ranges.check_distinct_columns(label_and_client_columns)
        ranges.check_distinct_columns({"label": self.label, "series": self.series})  # a series may be a client
        for option_name, option_columns in columns_by_option.items():
            for column_name in option_columns:
                ranges.check_distinct_columns({**label_and_client_columns, option_name: column_name})
