"""Convert FedScale's devices to a table for device=trace: training time per sample and link speeds.

    python benchmarks/fedscale_devices.py client_device_capacity devices.parquet
    python train.py device=trace device.path=devices.parquet device.unit=kbit/s

FedScale (Lai et al., ICML 2022) stores a pickle, {client: {"computation": ms, "communication": kbit/s}}.
`computation` is the inference time of one sample; training takes three times as long. `communication` is the speed in
both directions. Only containers, numbers and strings are unpickled. A file that names a function or a class, which
unpickling would call, is rejected. Runs read only the table, never the pickle.
"""

import math
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

TRAINING = 3  # training time of a sample, in inference times
FACTS = ("computation", "communication")


class InvalidFile(ValueError):
    """The file does not have FedScale's format."""


class DataUnpickler(pickle.Unpickler):
    """Unpickler of containers, numbers and strings; these need no class by name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Reject a named class or function, because unpickling may call it."""
        raise InvalidFile(f"the pickle names {module}.{name}, but only containers, numbers and strings are allowed")

    def persistent_load(self, pid: object) -> NoReturn:
        """Reject a reference to an object outside of the file."""
        raise InvalidFile(f"the pickle refers to an object outside of the file ({pid!r})")


def unpickle(file: Path) -> object:
    """Return the content of a pickle.

    Raises:
        InvalidFile: the file is no pickle, is truncated, or contains more than data.
    """
    with file.open("rb") as stream:
        try:
            return DataUnpickler(stream).load()
        except InvalidFile:
            raise
        except Exception as error:  # the bytes of a damaged pickle can raise any exception
            raise InvalidFile(f"the file is truncated or no pickle: {error}") from error


def make_table(capacity: object) -> pa.Table:
    """Return a table with a row for each client, sorted by client.

    Raises:
        InvalidFile: a client's identifier or values are invalid.
    """
    if not isinstance(capacity, dict) or not capacity:
        raise InvalidFile(f"expected a dictionary of clients, got a {type(capacity).__name__}")
    if any(isinstance(client, bool) or not isinstance(client, int) for client in capacity):
        raise InvalidFile("client identifiers must be integers")
    facts = {client: _read_facts(client, capacity[client]) for client in sorted(capacity)}
    speed = [communication for _, communication in facts.values()]
    return pa.table(
        {
            "client": pa.array(list(facts), pa.int64()),
            "seconds": [TRAINING * computation / 1000 for computation, _ in facts.values()],
            "down": speed,
            "up": speed,
        }
    )


def _read_facts(client: int, facts: object) -> tuple[float, float]:
    computation, communication = (facts.get(name) if isinstance(facts, dict) else None for name in FACTS)
    if not (is_not_negative(computation) and is_not_negative(communication) and computation and communication):
        values = f"got {computation!r} and {communication!r}"
        raise InvalidFile(f"client {client}: {' and '.join(FACTS)} must be numbers above 0, {values}")
    return float(computation), float(communication)


def is_not_negative(value: object) -> TypeGuard[float]:
    """Return whether the value is a finite number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def convert(arguments: Sequence[str], usage: str, make: Callable[[object], pa.Table], message: str) -> int:
    """Convert a pickle to a table, and return the exit code.

    Args:
        arguments: paths of the pickle and of the table.
        usage: command to print if the arguments are wrong.
        make: converts the pickle's content; may raise `InvalidFile`.
        message: line to print at the end, with {target} and {rows}.
    """
    if len(arguments) != 2 or not arguments[1].endswith(".parquet"):
        sys.stderr.write(f"usage: {usage}\n")
        return 2
    source, target = map(Path, arguments)
    try:
        table = make(unpickle(source))
    except (InvalidFile, OSError) as error:
        sys.stderr.write(f"{source}: {error}\n")
        return 1
    pq.write_table(table, target)
    sys.stdout.write(message.format(target=target, rows=table.num_rows) + "\n")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Convert the pickle of the first argument to the table of the second, and return the exit code."""
    usage = "python benchmarks/fedscale_devices.py client_device_capacity TABLE.parquet"
    message = "{target}: {rows} devices. Use them with device=trace device.path={target} device.unit=kbit/s"
    return convert(arguments, usage, make_table, message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
