"""A user's table of devices: seconds of training and link speeds, a row for each device.

    t_i:  max(mu_i / 10, N(mu_i, c_i mu_i)), seconds of training on a sample
    v_i:  max(u_i / 10, N(u_i, d_i u_i)), bytes a second, down and up
    T_i:  bytes / v_down + E n_i t_i + bytes / v_up

    python train.py device=trace device.path=devices.csv device.unit=kbit/s

Client k is the k-th device in the order of names: numbers by value, texts alphabetically, without gaps where names are
numbers from 0 or 1. With draw=true a device is drawn for each client once a run. Speeds are drawn for each client
and round where the table has columns of deviations.

Departures from the paper: none (no paper). `benchmarks/fedscale_devices.py` makes such a table from FedScale's file.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from fedcohort import ranges
from fedcohort.dataset import trace_table
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.device.measured import MIN_RELATIVE_SPEED, DeviceSpeeds, LinkSpeeds
from fedcohort.errors import DataError
from fedcohort.rng import Draws
from fedcohort.types import Ids

BYTES_PER_SPEED_UNIT = {"KiB/s": 1024.0, "kB/s": 1000.0, "kbit/s": 125.0, "bytes/s": 1.0}
CLIENT_OPTION = "client"  # the option that names the column of names
MEAN_OPTIONS = ("seconds", "down", "up")
DEVIATION_OPTIONS = ("seconds_cv", "down_cv", "up_cv")
SECONDS_RANGE = "[1e-12, 1e9]"
SPEED_RANGE = "[1e-6, 1e15]"
DEVIATION_RANGE = "[0, 100]"


@dataclass(frozen=True)
class Trace(Device):
    """A device model that reads a user's table of training times and link speeds.

    Attributes:
        path: path of the table.
        client: column of device names.
        seconds: column of mean seconds of training on `batch` samples.
        batch: number of samples that `seconds` are for; None stands for one sample.
        down: column of mean download speeds.
        up: column of mean upload speeds.
        unit: unit of both speeds.
        seconds_cv: column of relative standard deviations of `seconds` between rounds; None if seconds are constant.
        down_cv: column of relative standard deviations of the download speed; None if the speed is constant.
        up_cv: column of relative standard deviations of the upload speed; None if the speed is constant.
        draw: whether a random row is drawn for each client; otherwise client k has the k-th device.
    """

    path: str
    client: str
    seconds: str
    batch: int | None
    down: str
    up: str
    unit: str
    seconds_cv: str | None
    down_cv: str | None
    up_cv: str | None
    draw: bool

    def __post_init__(self) -> None:
        trace_table.check_trace_path_option(self.path)
        for option_name in (CLIENT_OPTION, *MEAN_OPTIONS):
            ranges.text(option_name, getattr(self, option_name))
        for option_name in DEVIATION_OPTIONS:
            ranges.text(option_name, getattr(self, option_name), allow_null=True)
        for link_direction, option_name in product(("down", "up"), DEVIATION_OPTIONS):  # some may share a column
            distinct_options = (CLIENT_OPTION, "seconds", link_direction, option_name)
            ranges.check_distinct_columns({option_name: getattr(self, option_name) for option_name in distinct_options})
        ranges.integer("batch", self.batch, "[1, 1e9]", allow_null=True)
        ranges.choice("unit", self.unit, *BYTES_PER_SPEED_UNIT)
        ranges.flag("draw", self.draw)

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work, as means over rounds.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the run, which decide each client's device if `draw` is true.

        Raises:
            DataError: the table has an error.
        """
        return self._read_table[0].select_rows(self._assign_device_rows(clients, draws)).expect(work)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work in one round.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the round, for the speeds.

        Raises:
            DataError: the table has an error.
        """
        return self._read_table[0].select_rows(self._assign_device_rows(clients, draws)).sample(clients, work, draws)

    def _assign_device_rows(self, clients: Ids, draws: Draws) -> Ids:
        """Return the row of each client's device among the devices in the order of names, [len(clients)].

        Args:
            clients: ids of the clients.
            draws: random numbers of the run, from which devices are drawn if `draw` is true.

        Raises:
            DataError: without `draw`, the table has too few devices, or a gap in their numbers.
        """
        device_speeds, (n_clients_without_gap, id_gap_text) = self._read_table
        n_rows = len(device_speeds.mean_s)
        if self.draw:
            return np.asarray((n_rows * draws.draws_of_run().uniform("device")[clients]).astype(np.int64))
        if n_rows < draws.n_clients:
            raise DataError(
                f"device.path: {self.path} has {n_rows} rows, too few for {draws.n_clients} clients: set "
                "device.draw=true, which draws a row for each client"
            )
        if draws.n_clients > n_clients_without_gap:
            raise DataError(f"{id_gap_text}, or set device.draw=true, which draws a row for each client")
        return clients

    def _find_column_range(self, option_name: str) -> tuple[str, str]:
        """Return the allowed interval and the unit of the numbers in the column that the option `option_name` names."""
        if option_name in DEVIATION_OPTIONS:
            return DEVIATION_RANGE, "times the mean"
        return (SECONDS_RANGE, "seconds") if option_name == "seconds" else (SPEED_RANGE, self.unit)

    @cached_property
    def _read_table(self) -> tuple[DeviceSpeeds, tuple[float, str]]:
        """Speeds of all devices in the order of names, and the limit of the number of clients; read once.

        The limit holds with draw=false. It is the number of devices before the first gap in their numbers, inf without
        a gap, and the message for runs with more clients. Raises `DataError` for an invalid table.
        """
        column_options = (CLIENT_OPTION, *DEVIATION_OPTIONS, *MEAN_OPTIONS)
        column_by_option = {option: getattr(self, option) for option in column_options}
        device_table = trace_table.read_table("device", self.path, column_by_option)
        row_order, row_counts, id_gap = trace_table.sort_by_name(device_table, self.client)
        if (row_counts > 1).any():
            original_row, duplicate_row = row_order[np.cumsum(row_counts)[row_counts.argmax()] - row_counts.max() :][:2]
            raise DataError(
                f"device.{CLIENT_OPTION}: {self.path}: row {duplicate_row} has the name of row {original_row}: rename "
                "it"
            )
        values_by_option = {}
        for option in (*MEAN_OPTIONS, *DEVIATION_OPTIONS):
            column_name = getattr(self, option)
            values_by_option[option] = np.zeros(len(row_order))
            if column_name is not None:
                column_numbers = trace_table.read_numbers(device_table, column_name, *self._find_column_range(option))
                values_by_option[option] = column_numbers[row_order]
        link_speeds = []
        for link_direction in ("down", "up"):
            mean_speed = values_by_option[link_direction] * BYTES_PER_SPEED_UNIT[self.unit]
            link_speeds.append(
                LinkSpeeds.from_moments(mean_speed, values_by_option[f"{link_direction}_cv"] * mean_speed)
            )
        mean_s = values_by_option["seconds"] / (self.batch or 1)
        deviation_s, min_s = values_by_option["seconds_cv"] * mean_s, MIN_RELATIVE_SPEED * mean_s
        return DeviceSpeeds.from_moments(mean_s, deviation_s, min_s, *link_speeds), id_gap
