"""Leave out or pool the clients of a user's table that have few training samples."""

from dataclasses import replace

import numpy as np

from fedcohort.dataset.owners import Owners
from fedcohort.errors import DataError
from fedcohort.types import Ids


def leave_out(owners: Owners, train: Ids, least: int) -> tuple[Ids, str]:
    """Return the training rows of clients with enough samples, and a note on the other clients.

    Args:
        owners: names of the clients, by number.
        train: the client of each training sample, int64 [N].
        least: samples of the smallest client that stays.

    Raises:
        DataError: if no client has enough.
    """
    sizes = np.bincount(train, minlength=len(owners.names))
    small = (sizes > 0) & (sizes < least)
    rows = np.flatnonzero(~small[train])
    if not len(rows):
        raise DataError(
            f"dataset.min_client_samples: no client has {least} samples, the largest has {sizes.max()}; "
            "dataset.pool_small=true makes one client of several small ones"
        )
    if not small.any():
        return rows, ""
    return rows, f"{small.sum():,} clients with fewer than {least} samples left out"


def pool(owners: Owners, train: Ids, least: int) -> tuple[Owners, str]:
    """Pool clients with few training samples, in the order of their names, until each pool has enough.

    The last pool takes the clients that fill none. Test rows go with their client.

    Args:
        owners: clients of the training and test rows.
        train: the client of each training sample, int64 [N], as in `owners`.
        least: samples of the smallest client, or pool, afterwards.

    Raises:
        DataError: if all small clients together don't have enough.
    """
    sizes = np.bincount(train, minlength=len(owners.names))
    small = np.flatnonzero((sizes > 0) & (sizes < least))
    if not len(small):
        return owners, ""
    pools: list[list[int]] = [[]]
    total = 0
    for k in small.tolist():
        if total >= least:
            pools.append([])
            total = 0
        pools[-1].append(k)
        total += int(sizes[k])
    if total < least and len(pools) > 1:
        unfilled = pools.pop()
        pools[-1] += unfilled
    if sum(int(sizes[k]) for k in pools[-1]) < least:
        raise DataError(
            f"dataset.pool_small=true: the {len(small)} clients with fewer than {least} training samples have "
            f"{sizes[small].sum()} together: choose a lower dataset.min_client_samples, or dataset.pool_small=false"
        )
    numbers, names = np.arange(len(owners.names)), list(owners.names)
    for members in pools:
        numbers[members] = members[0]
        names[members[0]] += f" + {len(members) - 1} more" if len(members) > 1 else ""
    note = f"{len(small):,} clients with fewer than {least} samples pooled to {len(pools):,}"
    pooled = replace(
        owners,
        train=numbers[owners.train] if owners.train is not None else None,
        test=numbers[owners.test] if owners.test is not None else None,
        names=tuple(names),
    )
    return compress(pooled), note


def compress(owners: Owners) -> Owners:
    """Renumber the clients without gaps, in the same order."""
    parts = [ids for ids in (owners.train, owners.test) if ids is not None]
    present, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    train, test = np.split(numbers.astype(np.int64), [len(parts[0])])
    names = tuple(owners.names[k] for k in present)
    return Owners(train, test if owners.test is not None else None, names)
