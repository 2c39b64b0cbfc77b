"""Load a user's tables in steps: read, choose columns, select rows, clients, labels, inputs."""

import json
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fedcohort.dataset.base import Raw
from fedcohort.dataset.clients import Owners, read_natural_clients
from fedcohort.dataset.labels import read_labels
from fedcohort.dataset.messages import ErrorList, join_names
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table import column_kinds, input_columns, inputs, rows
from fedcohort.dataset.user_table.find import load_tables
from fedcohort.dataset.user_table.input_columns import InputColumns
from fedcohort.dataset.user_table.options import TableOptions
from fedcohort.rng import new_generator
from fedcohort.types import Ids

CELL_REMEDY = "; correct it, or choose dataset.missing=drop, which leaves such rows out"
NUMBER_REMEDY = ", or dataset.missing=mean, which takes the feature's mean over the training rows"
CLIENT_REMEDY = "dataset.min_client_samples=10 leaves small clients out, or pools them with dataset.pool_small=true"
log = logging.getLogger("fedcohort")


class UserTableLoader:
    """Loader of a dataset from a user's files.

    Attributes:
        options, seed: options of the dataset, and the seed from which a test part is drawn.
        notes: notes on the data for the start-up table, to which each step adds.
        problems: errors of independent checks, which are raised together.
        window: rows of a sample.
    """

    def __init__(self, options: TableOptions, seed: int) -> None:
        self.options, self.seed = options, seed
        self.notes: list[str] = []
        self.problems = ErrorList(f"fedcohort data {options.path} proposes options for these files")
        self.window = options.window or 1

    def load(self) -> Raw:
        """Return the dataset. Raises `DataError` with all problems that are found."""
        options = self.options
        frames = self._read_tables()
        columns = self._choose_input_columns(frames)
        frames = self._select_complete_rows(frames, columns)
        owners, frames = self._pool_or_drop_small_clients(frames)
        with self.problems.collect_data_errors():
            labels = read_labels(frames, options.label, options.n_classes)
            y = [part_labels[:: self.window] for part_labels in labels.labels_by_part]
            if options.test_share is not None:
                frames, owners, y = self._split_test(frames, owners, y)
        with self.problems.collect_data_errors():
            levels = input_columns.find_category_levels(frames[0], columns)
            frames, features, notes = input_columns.encode_columns(frames, columns, levels, options.missing == "mean")
            x, pixel_scale = inputs.read_inputs(options, frames, features, columns.lists, self._input_divisor(columns))
        self.problems.raise_collected_errors()
        self.notes += [*notes, *labels.notes]
        x, feature_moments = self._fill_and_standardise(frames[0], features, columns, x)
        self._log_notices(column_kinds.make_label_case_notices(labels.class_names, options.label))
        has_uint8_inputs = x[0].dtype == np.uint8
        self.notes += ["kept as bytes"] * has_uint8_inputs
        self.notes += ["only the server holds test rows: no metrics clients/acc_*"] * (options.test == "server")
        self.notes += [f"{len(part_labels):,} validation rows are the server's" for part_labels in y[2:]]
        return Raw(
            "folder",
            *(x[0], y[0], x[1], y[1], labels.n_classes, owners.train_clients, owners.test_clients),
            owner_names=owners.client_names,
            inputs=self._describe_inputs(frames[0], columns, x[0].shape[1:]),
            class_names=tuple(labels.class_names),
            columns=tuple(features) if self.window == 1 and not columns.lists else (),
            pooled_test=options.test == "server",
            feature_moments=feature_moments,
            scale=pixel_scale if has_uint8_inputs else None,
            converted_scale=None if has_uint8_inputs else pixel_scale,
            valid=(x[2], y[2]) if len(x) > 2 else None,
            single_use=True,
            categories=json.dumps(levels, ensure_ascii=False) if levels else "",
            small_client_remedy=CLIENT_REMEDY,
        )

    def _fill_and_standardise(
        self, train_frame: Frame, feature_names: Sequence[str], chosen_inputs: InputColumns, x: list[np.ndarray]
    ) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray] | None]:
        """Fill gaps and standardise inputs, if the options demand it.

        Args:
            train_frame: the training table, for messages.
            feature_names: names of the columns of numbers; empty if inputs are lists.
            chosen_inputs: the columns that are inputs.
            x: inputs of each part, [N, ...].

        Returns:
            The inputs, and each feature's mean and deviation; None if the inputs are not standardised.
        """
        options, feature_moments = self.options, None
        if options.missing == "mean" and x[0].dtype != np.uint8:
            x, filled_cells_note = inputs.fill_nans(train_frame, feature_names or chosen_inputs.lists, x)
            self.notes.append(filled_cells_note)
        if options.standardises_inputs:
            feature_moments = inputs.standardise_inputs(x)
            self.notes.append(f"standardised by mean and deviation of the {len(x[0])} training rows")
        elif feature_names and self.window == 1 and options.scale == 1:
            self._log_notices(column_kinds.make_feature_scale_notices(x[0], feature_names))
        return x, feature_moments

    def _read_tables(self) -> list[Frame]:
        """Read the tables, the training rows first, and note the files' format. Raises `DataError` without one."""
        options = self.options
        draws_test, reads_valid = options.test_share is not None, options.valid == "server"
        frames = load_tables(options.path, draws_test, reads_valid, options.decimal, options.id_columns, self.problems)
        if not frames:
            self.problems.raise_collected_errors()
        columns = {options.label: "label", options.client: "client", options.series: "series"}
        columns |= dict.fromkeys(options.list_columns, "features")
        option_by_column = {name: f"dataset.{option_name}" for name, option_name in columns.items() if name is not None}
        self.notes += dict.fromkeys(file_note for frame in frames for file_note in frame.notes)
        return [
            replace(frame, option_by_column=option_by_column, remedy=CELL_REMEDY, number_cell_remedy=NUMBER_REMEDY)
            for frame in frames
        ]

    def _choose_input_columns(self, frames: Sequence[Frame]) -> InputColumns:
        """Choose the columns that are inputs, and check that all tables have the columns that options name."""
        options, table = self.options, frames[0]
        for option_name in ("leave_out", "categories", "dates"):
            named_columns = getattr(options, option_name)
            for name in named_columns if not isinstance(named_columns, str) else ():
                with self.problems.collect_data_errors():
                    replace(table, option_by_column={name: f"dataset.{option_name}"}).require_column(name)
        for frame in frames:
            required_columns = [options.label, options.series, *options.list_columns]
            for name in filter(None, [*required_columns, options.client] if frame is table else required_columns):
                if frame is table or name in table.names:  # otherwise the training table's problem says so
                    with self.problems.collect_data_errors():
                        frame.require_column(name)
        chosen_inputs = InputColumns()
        with self.problems.collect_data_errors():
            non_inputs = [name for name in (options.label, options.client, options.series, *options.leave_out) if name]
            has_images = table.names == ["image", "label"] and column_kinds.find_column_kind(table, "image") == "images"
            list_columns = ("image",) if options.features is None and has_images else options.list_columns
            chosen_inputs = InputColumns(lists=tuple(list_columns))
            if not list_columns:
                chosen_inputs = input_columns.choose_input_columns(table, non_inputs, options.categories, options.dates)
            self._log_notices(column_kinds.input_notices(table, chosen_inputs.names, non_inputs, bool(list_columns)))
            if self.window == 1:
                self._log_notices(column_kinds.make_long_table_notices(table, options.label, non_inputs))
        if self.problems.errors:  # the message lists the problems of labels, clients and cells, too
            if options.label in table.names:
                with self.problems.collect_data_errors():
                    read_labels(frames, options.label, options.n_classes)
            with self.problems.collect_data_errors():
                read_natural_clients(frames[:2], options.client)
            for frame in frames if options.missing == "error" else ():
                with self.problems.collect_data_errors():
                    frame.read_matrix(chosen_inputs.numbers)
        self.problems.raise_collected_errors()
        return chosen_inputs

    def _select_complete_rows(self, frames: list[Frame], columns: InputColumns) -> list[Frame]:
        """Return the tables with the rows of whole windows only, and without rows in which a cell is missing."""
        options = self.options
        row_filters: list[Callable[[Frame], tuple[Frame, str]]] = []
        if options.window is not None:
            constant_columns = [name for name in (options.series, options.label, options.client) if name]
            row_filters.append(partial(rows.cut_series, window=options.window, constant_columns=constant_columns))
        if options.missing == "drop":
            scalars = [options.label, *filter(None, [options.client]), *columns.categories, *columns.dates]
            row_filters.append(partial(rows.drop_incomplete_rows, columns=scalars, inputs=columns, window=self.window))
        for row_filter in row_filters:
            frames_and_notes = [row_filter(frame) for frame in frames]
            frames = [frame for frame, _ in frames_and_notes]
            self.notes += [row_selection_note for _, row_selection_note in frames_and_notes]
        return frames

    def _pool_or_drop_small_clients(self, frames: list[Frame]) -> tuple[Owners, list[Frame]]:
        """Return the client of each sample, and the tables; small clients are pooled or left out.

        Small clients have fewer training samples than the option `min_client_samples`. If a test part is cut later,
        the samples that remain after the cut are counted. The tables lack the rows of clients that are left out.

        Args:
            frames: the tables, the training rows first.
        """
        options, owners = self.options, Owners()
        with self.problems.collect_data_errors():
            owners = read_natural_clients(frames[: 1 if options.test_share else 2], options.client)
        if owners.train_clients is None:
            return owners, frames
        client_of_sample = owners.train_clients[:: self.window]
        test_clients = None if owners.test_clients is None else owners.test_clients[:: self.window]
        owners = replace(owners, train_clients=client_of_sample, test_clients=test_clients)
        if options.min_client_samples is None:
            return owners, frames
        min_samples = math.ceil(options.min_client_samples / (1 - (options.test_share or 0)))
        if options.pool_small:
            owners, pool_note = rows.pool_small_clients(owners, client_of_sample, min_samples)
        else:
            kept_rows, pool_note = rows.drop_small_clients(owners, client_of_sample, min_samples)
            frames = [frames[0].select_rows_at(self._rows_of_samples(kept_rows)), *frames[1:]] if pool_note else frames
            owners = rows.renumber_clients(replace(owners, train_clients=client_of_sample[kept_rows]))
        cut_note = f" ({options.min_client_samples} remain after the test part is cut)" if options.test_share else ""
        self.notes += [pool_note + cut_note] if pool_note else []
        return owners, frames

    def _split_test(self, frames: list[Frame], owners: Owners, y: list[Ids]) -> tuple[list[Frame], Owners, list[Ids]]:
        """Draw a test part from the training samples, and return tables, clients and labels with it in second place.

        `owners` and `y` are the clients and labels of the samples. Raises `DataError` if no sample can be drawn.
        """
        options, rng, clients = self.options, new_generator(self.seed, "test_part"), owners.train_clients
        test_ids = rows.draw_test_rows(y[0], clients, options.test_share or 0, rng, options.min_client_samples or 0)
        train_ids = np.setdiff1d(np.arange(len(y[0])), test_ids)
        self.notes.append(f"{len(test_ids)} {'rows' if self.window == 1 else 'windows'} cut for the test part")
        if clients is not None:
            owners = replace(owners, train_clients=clients[train_ids], test_clients=clients[test_ids])
        train_part, test_part = (frames[0].select_rows_at(self._rows_of_samples(ids)) for ids in (train_ids, test_ids))
        return [train_part, test_part, *frames[1:]], owners, [y[0][train_ids], y[0][test_ids], *y[1:]]

    def _rows_of_samples(self, sample_ids: Ids) -> Ids:
        """Return the rows of the training table that make up the samples at the positions `sample_ids`, int64."""
        return (sample_ids[:, None] * self.window + np.arange(self.window)).ravel()

    def _input_divisor(self, chosen_inputs: InputColumns) -> float:
        """Return the number that divides the inputs: 255 for a folder of images, unless the option `scale` is set."""
        options = self.options
        if chosen_inputs.lists and not options.list_columns and options.scale == 1 and not options.standardises_inputs:
            self.notes.append("pixels divided by 255")
            return 255.0
        return options.scale

    def _describe_inputs(self, table: Frame, chosen_inputs: InputColumns, sample_shape: Sequence[int]) -> str:
        """Describe the inputs and list the notes, as in `8: x0 ... x7 (left out: comment); 120 rows dropped`.

        The text begins with `sample_shape`, the shape of a sample. `table` is the training table.
        """
        unused_columns = [name for name in table.names if name not in {*chosen_inputs.names, self.options.label}]
        shape_text = " x ".join(str(axis_size) for axis_size in sample_shape)
        unused_text = f" (left out: {join_names(unused_columns)})" if unused_columns else ""
        return "; ".join([f"{shape_text}: {join_names(chosen_inputs.names)}{unused_text}", *filter(None, self.notes)])

    def _log_notices(self, notices: Iterable[str]) -> None:
        for notice in notices:
            log.warning("dataset=folder: %s", notice)
