"""Your own dataset: a table of samples, a folder of tables or a folder of images.

    python train.py dataset=folder dataset.path=my_data dataset.label=diagnosis dataset.client=hospital

`fedcohort data my_data` looks at the files and prints the options and the command.

`path` is a folder with train.parquet and test.parquet (or .csv), with one table of any name, with Parquet part files
(Spark, Dask), or with images (train/<class>/*); or one file. Each row is a sample: the label (0, 1, 2, ... or texts),
the features, and optionally the client. With `client` set, the clients are numbered in sorted order, and each has its
own test rows; otherwise clients are made, each a random sample. No label is changed, unless an option asks for it.

Inputs are all columns of numbers. Row numbers that pandas writes are none, and neither are texts and dates, unless
`categories` and `dates` encode them. The start-up table says which columns were taken.

valid.parquet or valid.csv, where the folder has one, is the server's validation data, and all training rows are the
clients' then; valid=none does not read it.

Departures from the paper: none (of no paper).
"""

from dataclasses import dataclass

from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.user_table.loading import Loading
from fedcohort.dataset.user_table.options import TableOptions


@dataclass(frozen=True)
class Folder(TableOptions, Dataset):
    """The dataset, with the options of `TableOptions`."""

    def load(self, seed: int) -> Raw:
        """Return float32 inputs [N, *shape], or images of bytes; only a test part is drawn.

        Raises:
            DataError: that names file, column and row of each problem.
        """
        return Loading(self, seed).load()
