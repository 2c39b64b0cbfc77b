"""The per-client table of a run: one Parquet file per step while it runs, one file for all steps when it has finished.

Rows are ordered by step and client. Step 0 is the untrained model, without available, selected or arrived clients. A
client has a row in a step in which it was queried, selected or measured, or reported a value. Of clients that the
selector only ranked, the 1000 best have a row. The flags of other clients are False and their other columns null. The
journal has their availability (`History.available`). Null means unknown: the client was not queried, or the step did
not measure the column.

    - step, client: int32; number of completed rounds; id of the client
    - available: bool; the client was ready at the start of the round
    - queried: bool; the selector or aggregator queried the client in this round, whether or not it answered.
      A client that left before it answered is charged for the query and has no signal_*
    - selected, arrived: bool; the client was selected to train; its update arrived in time and is finite
    - score, part_*: score by which the selector ranked the client, in the selector's units, and its components
    - probability: selection probability, if the selector draws
    - reward: reward of the client's last update, for selectors that learn from rewards
    - units: local epochs completed (steps if client.steps is set) by a selected client; 0 if it was late
    - units_asked: local epochs or steps requested of a selected client
    - finish_s: virtual seconds from the broadcast to the update's arrival, for the units completed; null if it was late
    - down_s, infer_s: virtual seconds of the client's download and forward passes, with its absence
    - train_s, up_s: virtual seconds of its training and upload; of a late client, for the units requested
    - weight: weight of an arrived update in the aggregate. The weights add up to 1 if the aggregate is a mean, unlike
      in FedNova, FedMGDA+, q-FFL and TERM, and under unbiased selection
    - sent_s: virtual second at which the job of a selected client began. This column and the next two exist only if the
      deadline lets late clients complete their work
    - staleness: server steps between the model that an arrived client received and the round
    - in_flight: 1 for a client that still works after the round, null for another. For clients of earlier rounds,
      finish_s counts from the broadcast of that round
    - attacker: 1 for a client that attacks, 0 for another; only in runs with attackers. Step 0 has all clients, and
      other steps have those that were selected, reported or still work
    - epsilon: of differential privacy, for what the client has reported in the run so far; only of clients that
      reported in the round, and only in runs with `signal_noise`
    - train_loss: nats; mean cross-entropy of the mini-batches, each before its step, as an arrived client reports it.
      An attacker's value may be false
    - signal_*: value of a signal of `fedcohort/signal/` that the client reported; null also if it reported NaN.
      Probes measure the model before the round. Step 0 has values that were reported at registration.
      A signal of up to 400 numbers has the columns signal_*.0, signal_*.1, ...
      Column i of signal_update_gram refers to the i-th arrived client, by id
    - loss: nats; cross-entropy of the round's new global model on the client's training set T_i
    - test_acc: in [0, 1]; accuracy of the round's new global model on the client's test set E_i, null if E_i is empty

Numbers are float64. `loss` and `test_acc` are measured every `eval.clients_every` rounds. Only steps with a line in the
journal count. The line has the digest of the step's file, and the manifest of a finished run that of `clients.parquet`.
"""

import io
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.host import disk, parquet
from fedcohort.record import client_files, digest
from fedcohort.record.folder import write_atomically
from fedcohort.round.client_facts import CLIENT_FLAGS, ClientFacts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROWS_PER_GROUP = 65_536  # rows of a row group: steps of a small population share one
COLUMN_PREFIXES = ("part_", "signal_")
COLUMN_ORDER = (
    *("step", "client", *CLIENT_FLAGS, "score", "part_", "probability", "reward", "units", "units_asked", "finish_s"),
    *("down_s", "infer_s", "train_s", "up_s", "weight", "sent_s", "staleness", "in_flight"),
    *("attacker", "epsilon", "train_loss", "signal_", "loss", "test_acc"),
)


def write_rows(run_path: Path, step: int, columns: Mapping[str, np.ndarray]) -> str:
    """Write the per-client table of a round, such as `clients/000012.parquet`, and return the digest of the file.

    The file is renamed at the end. The rename is on the disk once the journal's line of the round is written.

    Args:
        run_path: the run folder.
        step: number of the round.
        columns: values of all clients by column name, [n_clients] each; False or NaN means that there is no value. Only
            the clients of `ClientFacts.clients_with_rows` are written. NaN is written as null.
    """
    import pyarrow as pa

    client_facts = columns if isinstance(columns, ClientFacts) else ClientFacts.from_client_columns(columns)
    client_ids = client_facts.clients_with_rows
    row_values = client_facts.rows_of_clients(client_ids)
    id_columns = {"step": np.full(len(client_ids), step, dtype=np.int32), "client": client_ids.astype(np.int32)}
    flag_columns = {k: row_values.get(k, np.zeros(len(client_ids), dtype=bool)) for k in CLIENT_FLAGS}
    number_columns = {k: np.asarray(v, dtype=np.float64) for k, v in row_values.items() if k not in CLIENT_FLAGS}
    all_columns = {**id_columns, **flag_columns, **number_columns}
    arrow_table = pa.table({name: parquet.make_column(values) for name, values in all_columns.items()})
    parquet_bytes = io.BytesIO()
    parquet.write_table(arrow_table, parquet_bytes)
    (run_path / client_files.STEP_FILES_FOLDER).mkdir(exist_ok=True)
    write_atomically(client_files.path_of_step(run_path, step), parquet_bytes.getbuffer())
    return digest.digest_of_bytes(parquet_bytes.getbuffer())


def load_rows(
    run_path: Path, steps: Collection[int], columns: Sequence[str] | None, digest_by_step: Mapping[int, str]
) -> "pd.DataFrame":
    """Return the per-client table of some rounds, ordered by round and client; NaN for unknown values.

    Args:
        run_path: the run folder.
        steps: numbers of the rounds.
        columns: columns in addition to `step` and `client`; those that no file has are left out. None for all columns.
        digest_by_step: digest of each round's file, which the journal has.

    Raises:
        DamagedFile: a file is missing, differs from its digest or cannot be read.
    """
    import pandas as pd
    import pyarrow as pa

    column_names = None if columns is None else ["step", "client", *columns]
    table_paths = client_files.list_table_files(run_path, steps, digest_by_step)
    tables = [_read_table_rows(table_path, steps, column_names, digest_by_step) for table_path in table_paths]
    if not tables:
        return pd.DataFrame(columns=column_names or ["step", "client"])
    arrow_table = pa.concat_tables(tables, promote_options="permissive")
    client_frame: pd.DataFrame = arrow_table.select(sorted(arrow_table.column_names, key=_column_sort_key)).to_pandas()
    return client_frame.sort_values(["step", "client"], kind="stable", ignore_index=True)


def merge_step_files(run_path: Path, steps: Collection[int], digest_by_step: Mapping[int, str]) -> None:
    """Write the per-client tables of all rounds into `clients.parquet`, and remove the folder `clients`.

    If the process is killed in between, both remain and no row is lost.

    Args:
        run_path: the run folder.
        steps: numbers of the rounds.
        digest_by_step: digest of each round's file in the journal.

    Raises:
        DamagedFile: a file is damaged; all files are left unchanged.
    """
    import pyarrow as pa

    table_paths = client_files.list_table_files(run_path, steps, digest_by_step)
    if not table_paths or table_paths == [run_path / client_files.CLIENT_TABLE_FILE]:
        shutil.rmtree(run_path / client_files.STEP_FILES_FOLDER, ignore_errors=True)
        return
    merged_steps = sorted(step for p in table_paths for step in client_files.list_steps_in_table(p))
    open_files = (
        client_files.open_verified_table(p, digest_by_step.get(client_files.step_of_file(p))) for p in table_paths
    )
    schema = pa.unify_schemas([parquet_file.schema_arrow for parquet_file in open_files], promote_options="permissive")
    schema_fields = sorted(schema, key=lambda f: _column_sort_key(f.name))
    schema = pa.schema(schema_fields, metadata={client_files.STEPS_METADATA_KEY: json.dumps(merged_steps)})
    empty_table = pa.Table.from_batches([], schema)
    with disk.write_file_atomically(run_path / client_files.CLIENT_TABLE_FILE) as draft_path:
        with parquet.open_parquet_writer(draft_path, schema) as writer:
            for row_group in _yield_row_groups(table_paths):
                writer.write_table(pa.concat_tables([empty_table, row_group], promote_options="permissive"))
        with draft_path.open("rb") as parquet_file:
            os.fsync(parquet_file.fileno())
    shutil.rmtree(run_path / client_files.STEP_FILES_FOLDER, ignore_errors=True)


def _column_sort_key(column_name: str) -> tuple[int, str]:
    """Return the sort key of the column `column_name` of the per-client table, the same in all rounds and runs."""
    column_family = next((p for p in COLUMN_PREFIXES if column_name.startswith(p)), column_name)
    return (COLUMN_ORDER.index(column_family) if column_family in COLUMN_ORDER else len(COLUMN_ORDER)), column_name


def _read_table_rows(
    table_path: Path, steps: Collection[int], columns: Sequence[str] | None, digest_by_step: Mapping[int, str]
) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    parquet_file = client_files.open_verified_table(
        table_path, digest_by_step.get(client_files.step_of_file(table_path))
    )
    file_columns = parquet_file.schema_arrow.names
    with client_files.name_file_in_errors(table_path):
        table = parquet_file.read(columns=None if columns is None else [k for k in columns if k in file_columns])
        return table.filter(pc.is_in(table["step"], pa.array(sorted(steps), pa.int32())))


def _yield_row_groups(table_paths: Sequence[Path]) -> "Iterator[pa.Table]":
    """Yield the rows of the files `table_paths` in tables of about `ROWS_PER_GROUP` rows, which bounds the memory."""
    import pyarrow as pa

    pending_tables: list[Any] = []
    for table_path in table_paths:
        parquet_file = parquet.open_file(table_path)
        for row_group_number in range(parquet_file.num_row_groups):
            with client_files.name_file_in_errors(table_path):
                pending_tables.append(parquet_file.read_row_group(row_group_number))
            if sum(t.num_rows for t in pending_tables) >= ROWS_PER_GROUP:
                yield pa.concat_tables(pending_tables, promote_options="permissive")
                pending_tables = []
    if pending_tables:
        yield pa.concat_tables(pending_tables, promote_options="permissive")
