"""Your own dataset: a table of samples, a folder of tables or a folder of images.

    python train.py dataset=folder dataset.path=my_data dataset.label=diagnosis dataset.client=hospital

`fedcohort data my_data` inspects the files and prints the options and the command.

`path` is a folder with train.parquet and test.parquet (or .csv), with one table of any name, with Parquet part files
(Spark, Dask), or with images (train/<class>/*); or one file. Each row is a sample: the label (0, 1, 2, ... or texts),
the features, and optionally the client. With `client` set, the clients are numbered in sorted order, and each has its
own test rows. Otherwise the rows are divided at random into clients. No label is changed without an option for it.

Inputs are all columns of numbers, except for row numbers that pandas writes. Texts and dates are inputs only where
`categories` and `dates` encode them. The start-up table lists the inputs.

valid.parquet or valid.csv, where the folder has one, is the server's validation data, and the clients have all training
rows. valid=none does not read it.

Departures from the paper: none: it follows no paper.
"""

from dataclasses import dataclass

from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.files import release_unused_memory
from fedcohort.dataset.user_table.loading import UserTableLoader
from fedcohort.dataset.user_table.options import TableOptions


@dataclass(frozen=True)
class Folder(TableOptions, Dataset):
    """A user's own dataset: a table of samples, a folder of tables or a folder of images."""

    def load(self, seed: int) -> Raw:
        """Return inputs as float32 [N, *shape], or images as uint8 [N, channels, height, width].

        Args:
            seed: seed from which the test part is drawn, if `test_share` is set.

        Raises:
            DataError: a file can't be read, or values are invalid; the message names file, column and row of each
                problem.
        """
        raw_data = UserTableLoader(self, seed).load()
        release_unused_memory()
        return raw_data
