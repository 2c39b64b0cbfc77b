"""Load a user's tables in steps: read, choose columns, select rows, clients, labels, inputs."""

import json
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from fedcohort.dataset.base import Raw
from fedcohort.dataset.labels import labels_of
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.owners import Owners, owners_of
from fedcohort.dataset.problems import Problems
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table import columns, encode, notices, rows, small_clients, windows
from fedcohort.dataset.user_table.columns import Inputs
from fedcohort.dataset.user_table.find import load_tables
from fedcohort.dataset.user_table.inputs import Reader, are_images
from fedcohort.dataset.user_table.options import TableOptions
from fedcohort.errors import DataError
from fedcohort.rng import generator
from fedcohort.types import Ids

REMEDY = "; correct it, or choose dataset.missing=drop, which leaves such rows out"
FOR_NUMBERS = ", or dataset.missing=mean, which takes the feature's mean over the training rows"
SMALL_CLIENTS = "dataset.min_client_samples=10 leaves small clients out, or pools them with dataset.pool_small=true"
log = logging.getLogger("fedcohort")


class Loading:
    """Load a dataset from files to arrays; each step adds its notes for the start-up table."""

    def __init__(self, options: TableOptions, seed: int) -> None:
        self.options, self.seed = options, seed
        self.notes: list[str] = []
        self.problems = Problems(f"fedcohort data {options.path} proposes options for these files")
        self.window = options.window or 1

    def load(self) -> Raw:
        """Return the dataset. Raises `DataError`."""
        options = self.options
        frames = self._read()
        inputs = self._choose(frames)
        frames = self._select_rows(frames, inputs)
        owners, frames = self._owners(frames)
        if options.test_share is not None:
            frames, owners = self._cut_test(frames, owners)
        with self.problems.collect():
            labels = labels_of(frames, options.label, options.n_classes)
        with self.problems.collect():
            levels = encode.find_levels(frames[0], inputs)
            frames, names, encoding_notes = encode.encode(frames, inputs, levels, gaps=options.missing == "mean")
            self.notes += encoding_notes
            x, pixels = self._reader(names, inputs, frames[0]).read(frames)
        self.problems.raise_all()
        y = [part[:: self.window] for part in labels.parts]
        self.notes += labels.notes
        x, standard = self._finish_inputs(frames[0], names or inputs.lists, x, scalars=bool(names) and self.window == 1)
        kept_as_bytes = x[0].dtype == np.uint8
        self._warn(notices.of_labels(labels.names, options.label))
        self.notes += ["kept as bytes"] * kept_as_bytes
        self.notes += ["only the server holds test rows: no metrics clients/acc_*"] * (options.test == "server")
        self.notes += [f"{len(part):,} validation rows are the server's" for part in y[2:]]
        return Raw(
            "folder",
            *(x[0], y[0], x[1], y[1], labels.n_classes, owners.train, owners.test),
            owner_names=owners.names,
            inputs=self._describe(frames[0], inputs, x[0].shape[1:]),
            class_names=tuple(labels.names),
            columns=tuple(names) if self.window == 1 and not inputs.lists else (),
            pooled_test=options.test == "server",
            standard=standard,
            scale=pixels if kept_as_bytes else None,
            converted=None if kept_as_bytes else pixels,
            valid=(x[2], y[2]) if len(x) > 2 else None,
            single_use=True,
            categories=json.dumps(levels, ensure_ascii=False) if levels else "",
            small_client_remedy=SMALL_CLIENTS,
        )

    def _finish_inputs(
        self, train: Frame, names: Sequence[str], x: list[np.ndarray], scalars: bool
    ) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray] | None]:
        """Return inputs without gaps, and the mean and deviation by which they were standardised, None without.

        scalars: whether each feature is a column, whose scale is checked.
        """
        options, standard = self.options, None
        if options.missing == "mean" and x[0].dtype != np.uint8:
            x, note = rows.fill(train, names, x)
            self.notes += [note] if note else []
        if options.standardises:
            standard = rows.standardise(x)
            self.notes.append(f"standardised by mean and deviation of the {len(x[0])} training rows")
        elif scalars and options.scale == 1:
            self._warn(notices.of_scale(x[0], names))
        return x, standard

    def _read(self) -> list[Frame]:
        """Return the tables, and note how they are written."""
        options = self.options
        frames = load_tables(
            options.path, options.test_share is not None, options.valid == "server", options.decimal, self.problems
        )
        names = {"label": options.label, "client": options.client, "series": options.series}
        named = {name: f"dataset.{option}" for option, name in names.items() if name is not None}
        named |= dict.fromkeys(options.lists, "dataset.features")
        if not frames:
            self.problems.raise_all()
        frames = [replace(frame, named=named, remedy=REMEDY, for_numbers=FOR_NUMBERS) for frame in frames]
        self.notes += dict.fromkeys(chain.from_iterable(frame.notes for frame in frames))
        return frames

    def _choose(self, frames: Sequence[Frame]) -> Inputs:
        """Choose the columns that are inputs, and check that all tables have the columns that are named."""
        options, train = self.options, frames[0]
        excluded = [name for name in (options.label, options.client, options.series) if name] + list(options.leave_out)
        named = {"leave_out": options.leave_out, "categories": options.categories, "dates": options.dates}
        for option, names in named.items():
            for name in names if not isinstance(names, str) else ():
                if name not in train.names:
                    all_columns = list_names(train.names)
                    self.problems.add(
                        DataError(f"dataset.{option}: {train.where} has no column {name!r}; it has {all_columns}")
                    )
        for frame in frames:
            required = [options.label, options.series, *options.lists, *([options.client] if frame is train else [])]
            for name in filter(None, required):
                if frame is not train and name not in train.names:
                    continue  # the training table's problem says so
                with self.problems.collect():
                    frame.chunks(name)
        inputs = Inputs()
        with self.problems.collect():
            is_folder_of_images = options.features is None and train.names == ["image", "label"]
            features = ("image",) if is_folder_of_images and are_images(train, "image") else options.lists
            inputs = columns.choose_inputs(train, excluded, features, options.categories, options.dates)
            self._warn(notices.of_columns(train, inputs, options.label, excluded))
            if self.window == 1:
                self._warn(notices.of_series(train, options.label, excluded))
        if self.problems:
            self._check_values(frames, inputs)
        self.problems.raise_all()
        return inputs

    def _check_values(self, frames: Sequence[Frame], inputs: Inputs) -> None:
        """Collect the problems of labels, clients and cells, too, where the columns have problems already."""
        options = self.options
        if all(options.label in frame.names for frame in frames):
            with self.problems.collect():
                labels_of(frames, options.label, options.n_classes)
        if options.client in frames[0].names:
            with self.problems.collect():
                owners_of(frames[0], frames[-1], options.client)
        for frame in frames if options.missing == "error" else ():
            with self.problems.collect():
                encode.encode([frame], Inputs(dates=inputs.dates), {}, gaps=False)
            with self.problems.collect():
                frame.numbers(list(inputs.numbers))

    def _select_rows(self, frames: list[Frame], inputs: Inputs) -> list[Frame]:
        """Return the tables without rows outside of windows and without incomplete samples."""
        options = self.options
        if options.window is not None:
            constant = [name for name in (options.series, options.label, options.client) if name]
            pieces = [windows.cut(frame, options.window, constant) for frame in frames]
            frames = [frame for frame, _ in pieces]
            self.notes += [note for _, note in pieces]
        if options.missing == "drop":
            scalars = [options.label, *([options.client] if options.client else []), *inputs.categories, *inputs.dates]
            pieces = [rows.complete(frame, scalars, inputs.numbers, inputs.lists, self.window) for frame in frames]
            frames = [frame for frame, _ in pieces]
            self.notes += [note for _, note in pieces if note]
        return frames

    def _cut_test(self, frames: list[Frame], owners: Owners) -> tuple[list[Frame], Owners]:
        """Return the tables and clients with a test part cut of the training rows. Raises `DataError`."""
        options, train = self.options, frames[0]
        labels = labels_of([train], options.label, options.n_classes).parts[0][:: self.window]
        rng = generator(self.seed, "test_part")
        test = rows.held_out(labels, owners.train, float(options.test_share or 0), rng)
        training = np.setdiff1d(np.arange(len(labels)), test)
        self.notes.append(f"{len(test)} {'rows' if self.window == 1 else 'windows'} cut for the test part")
        if owners.train is not None:
            owners = replace(owners, train=owners.train[training], test=owners.train[test])
        return [train.take(self._rows(training)), train.take(self._rows(test)), *frames[1:]], owners

    def _rows(self, samples: Ids) -> Ids:
        """Return the rows of samples."""
        return (samples[:, None] * self.window + np.arange(self.window)).ravel()

    def _owners(self, frames: list[Frame]) -> tuple[Owners, list[Frame]]:
        """Return the clients of the samples, and the tables without the rows of clients that are left out.

        Where a test part is cut afterwards, small clients are those with too few samples after the cut.
        """
        options = self.options
        owners = Owners()
        with self.problems.collect():
            owners = owners_of(frames[0], frames[0 if options.test_share else 1], options.client)
        if owners.train is None:
            return owners, frames
        train = owners.train[:: self.window]
        test = None if owners.test is None or options.test_share else owners.test[:: self.window]
        owners, least = replace(owners, train=train, test=test), options.min_client_samples
        if least is None:
            return owners, frames
        least = math.ceil(least / (1 - (options.test_share or 0)))
        if options.pool_small:
            owners, note = small_clients.pool(owners, train, least)
        else:
            remaining, note = small_clients.leave_out(owners, train, least)
            frames = [frames[0].take(self._rows(remaining)), *frames[1:]] if note else frames
            owners = small_clients.compress(replace(owners, train=train[remaining]))
        after = f" ({options.min_client_samples} remain after the test part is cut)" if options.test_share else ""
        self.notes += [note + after] if note else []
        return owners, frames

    def _reader(self, names: Sequence[str], inputs: Inputs, train: Frame) -> Reader:
        """Return the reader of the inputs; images of a folder are divided by 255 unless `scale` says otherwise."""
        options = self.options
        scale = options.scale
        if inputs.lists and not options.lists and scale == 1 and not options.standardises:
            scale = 255.0
            self.notes.append("pixels divided by 255")
        shape = tuple(int(length) for length in options.shape)
        gaps, pixels = options.missing == "mean", options.pixels
        return Reader(names, inputs.lists, self.window, gaps, shape, scale, pixels, options.standardises)

    def _describe(self, train: Frame, inputs: Inputs, shape: Sequence[int]) -> str:
        """Return `8: x0 ... x7 (left out: comment, site); 120 rows cut for the test part`."""
        remaining = [name for name in train.names if name not in {*inputs.names, self.options.label}]
        size = " x ".join(str(length) for length in shape)
        left_out = f" (left out: {list_names(remaining)})" if remaining else ""
        return "; ".join([f"{size}: {list_names(inputs.names)}{left_out}", *self.notes])

    def _warn(self, lines: Iterable[str]) -> None:
        for line in lines:
            log.warning("dataset=folder: %s", line)
