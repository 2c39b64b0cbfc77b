"""FedScale's devices as a table for device=trace: seconds of training on a sample, and speeds of the link.

    python benchmarks/fedscale_devices.py client_device_capacity devices.parquet
    python train.py device=trace device.path=devices.parquet device.unit=kbit/s

FedScale (Lai et al., ICML 2022) keeps them in a pickle, {client: {"computation": ms, "communication": kbit/s}}:
`computation` is the inference on a sample, of which training takes three times as long, `communication` the speed both
ways. What is unpickled is data alone, containers, numbers and texts: a file that names a function or a class, which
unpickling would call, is refused. No run reads a pickle; whoever wants these devices runs this once.
"""

import math
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

TRAINING = 3  # times an inference
FACTS = ("computation", "communication")


class Refused(ValueError):
    """The file isn't what FedScale's are."""


class DataUnpickler(pickle.Unpickler):
    """Makes containers, numbers and texts, which no pickle needs a name for."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise Refused(f"it wants {module}.{name}, and may hold nothing but containers, numbers and texts")

    def persistent_load(self, pid: object) -> NoReturn:
        raise Refused(f"it refers to something outside of the file ({pid!r})")


def unpickle(file: Path) -> object:
    """What the file holds. Raises `Refused` where that is more than data, or no pickle."""
    with file.open("rb") as stream:
        try:
            return DataUnpickler(stream).load()
        except Refused:
            raise
        except Exception as error:  # a damaged pickle raises whatever its bytes happen to mean
            raise Refused(f"it is truncated or no pickle: {error}") from error


def make_table(capacity: object) -> pa.Table:
    """A row for each client. Raises `Refused` with the first client whose facts are no numbers above 0."""
    if not isinstance(capacity, dict) or not capacity:
        raise Refused(f"it holds no clients, but a {type(capacity).__name__}")
    if any(isinstance(client, bool) or not isinstance(client, int) for client in capacity):
        raise Refused("its clients must be integers")
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
    if not (_is_positive(computation) and _is_positive(communication)):
        has = f"it has {computation!r} and {communication!r}"
        raise Refused(f"client {client} must have a {' and a '.join(FACTS)} above 0, {has}")
    return float(computation), float(communication)


def _is_positive(fact: object) -> TypeGuard[float]:
    return isinstance(fact, int | float) and not isinstance(fact, bool) and math.isfinite(fact) and fact > 0


def convert(words: Sequence[str], usage: str, make: Callable[[object], pa.Table], say: str) -> int:
    """Turn a pickle into a table; returns the exit code.

    Args:
        words: the pickle and the table, as they were typed.
        usage: what is said where these can't be.
        make: makes the table. May raise `Refused`.
        say: the line at the end, with {target} and {rows}.
    """
    if len(words) != 2 or not words[1].endswith(".parquet"):
        sys.stderr.write(f"usage: {usage}\n")
        return 2
    source, target = map(Path, words)
    try:
        table = make(unpickle(source))
    except (Refused, OSError) as error:
        sys.stderr.write(f"{source}: {error}\n")
        return 1
    pq.write_table(table, target)
    sys.stdout.write(say.format(target=target, rows=table.num_rows) + "\n")
    return 0


def main(words: Sequence[str]) -> int:
    """The command: the pickle and the table that it becomes."""
    usage = "python benchmarks/fedscale_devices.py client_device_capacity TABLE.parquet"
    done = "{target}: {rows} devices; device=trace device.path={target} device.unit=kbit/s"
    return convert(words, usage, make_table, done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
