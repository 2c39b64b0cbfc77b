"""The log of the draws by which a selector chooses a cohort, with one meaning for all selectors.

A draw takes clients of a pool one after the other, without replacement. Clients of infinite weight come first, with
certainty. Then follow clients of positive weight, each with the probability w_k / (sum of the weights not drawn yet).
Clients of weight zero are drawn last, uniformly, only if no other client is left.

The k highest scores are such a draw, too: the weight is infinite above the cut, one for clients that are tied at the
cut, and zero below it. `maths/successive_draws.py` has the probability of a drawn set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fedcohort.arrays import Ids, Values
from fedcohort.rng import new_generator

MAX_LOGGED_CLIENTS = 10_000  # a larger population has the weights of a sample in its log
LOGGED_SAMPLE_SIZE = 1_000
EMPTY_IDS: Ids = np.empty(0, np.int64)


@dataclass(frozen=True)
class Draw:
    """One draw of clients without replacement.

    Attributes:
        clients: ids of the drawn clients, in the order of the draw.
        weights: weight of each of `clients`, [len(clients)].
        pool_size: number of clients in the pool.
        n_zero_weights: number of clients in the pool with weight 0.
        weight_sum: sum of the finite weights in the pool.
        pool: sorted ids of the clients in the pool whose weights are logged.
        pool_weights: weight of each client of `pool`, [len(pool)].
        is_query: whether the draw chose clients for a query, before the selection.
        is_dependent: whether the pool shares clients with the pool of an earlier draw of the selection, where draws
            before the first random one do not count. The pool may then depend on which clients were drawn.
    """

    clients: Ids
    weights: Values
    pool_size: int
    n_zero_weights: int
    weight_sum: float
    pool: Ids
    pool_weights: Values
    is_query: bool = False
    is_dependent: bool = False


@dataclass(frozen=True)
class DrawLog:
    """The draws of a round in the order in which they were made.

    Attributes:
        draws: each draw that selected at least one client.
        has_other_randomness: whether the selection also used random numbers outside of these draws, so that they do not
            determine the probability of the cohort.
        logged_ids: sorted ids of the clients whose weights are logged, in each draw whose pool contains them.
    """

    draws: Sequence[Draw] = ()
    has_other_randomness: bool = False
    logged_ids: Ids = field(default_factory=lambda: EMPTY_IDS)

    def append_log(self, later_log: "DrawLog") -> "DrawLog":
        """Return a log of these draws followed by those of `later_log`, which depend on them."""
        later_draws = [replace(draw, is_dependent=draw.is_dependent or bool(self.draws)) for draw in later_log.draws]
        has_other_randomness = self.has_other_randomness or later_log.has_other_randomness
        logged_ids = self.logged_ids if len(self.logged_ids) else later_log.logged_ids
        return DrawLog((*self.draws, *later_draws), has_other_randomness, logged_ids)


EMPTY_DRAW_LOG = DrawLog()


def list_logged_clients(seed: int, n_clients: int) -> Ids:
    """Return the sorted ids of the clients whose weights are logged.

    These are all of `n_clients` up to 10,000 clients, and a random sample of 1,000 by `seed` above.
    """
    if n_clients <= MAX_LOGGED_CLIENTS:
        return np.arange(n_clients)
    return np.sort(new_generator(seed, "logged_weights").choice(n_clients, LOGGED_SAMPLE_SIZE, replace=False))


def is_random_draw(draw: Draw) -> bool:
    """Return whether `draw` could have drawn another set of clients."""
    if n_drawn_zero_weights := int(np.count_nonzero(draw.weights == 0)):
        return n_drawn_zero_weights < draw.n_zero_weights
    return bool(np.isfinite(draw.weights).any()) and len(draw.clients) < draw.pool_size - draw.n_zero_weights


class LoggedGenerator(np.random.Generator):
    """A random generator with the numbers of another one, which logs the draws without replacement made with it.

    Args:
        generator: the generator whose stream of numbers is continued.
        logged_ids: sorted ids of the clients whose weights are logged.
        max_weights: number of weights to log in a round; further draws log the weights of the drawn clients only.
    """

    def __init__(
        self, generator: np.random.Generator, logged_ids: Ids, max_weights: float = MAX_LOGGED_CLIENTS
    ) -> None:
        super().__init__(generator.bit_generator)
        self._logged_ids, self._n_free_weights = logged_ids, max_weights
        self._draws: list[Draw] = []
        self._pools: list[Ids] = []  # those of the selection, from the first random draw on
        self._has_other_randomness, self._is_query = False, True
        self._position = self._read_stream_position()

    def start_selection(self) -> None:
        """Note that the queries have been planned and the selection begins."""
        self._is_query, self._position = False, self._read_stream_position()

    def finish(self) -> DrawLog:
        """Return the log of the draws of the round."""
        self.start_draw()
        return DrawLog(tuple(self._draws), self._has_other_randomness, self._logged_ids)

    def start_draw(self) -> None:
        """Note whether the selection has used random numbers since the previous draw."""
        self._has_other_randomness |= not self._is_query and self._read_stream_position() != self._position

    def end_draw(self, pool: Ids, weights: Values, clients: Ids) -> None:
        """Log a draw of `clients`, in their order, from the sorted ids `pool` with `weights` [len(pool)]."""
        self._position = self._read_stream_position()
        if not len(clients):
            return
        logged_pool, logged_weights = pool, weights
        if len(self._logged_ids) <= self._logged_ids[-1]:  # a sample
            logged_positions = np.searchsorted(pool, self._logged_ids)
            logged_positions = logged_positions[pool[np.minimum(logged_positions, len(pool) - 1)] == self._logged_ids]
            logged_pool, logged_weights = pool[logged_positions], weights[logged_positions]
        if len(logged_pool) > self._n_free_weights:
            logged_pool, logged_weights = pool[:0], weights[:0]
        self._n_free_weights -= len(logged_pool)
        draw = Draw(
            clients=clients.copy(),
            weights=weights[np.searchsorted(pool, clients)],
            pool_size=len(pool),
            n_zero_weights=len(pool) - int(np.count_nonzero(weights)),
            weight_sum=float(weights.sum(where=np.isfinite(weights))),
            pool=logged_pool.copy(),
            pool_weights=logged_weights.copy(),
            is_query=self._is_query,
            is_dependent=any(np.isin(pool, earlier_pool).any() for earlier_pool in self._pools),
        )
        self._draws.append(draw)
        if not self._is_query and (self._pools or is_random_draw(draw)):
            self._pools.append(pool.copy())

    def _read_stream_position(self) -> tuple[bytes, int, int, int]:
        """Return the generator's position in its stream, a tuple that differs after each random number."""
        bit_generator_state = self.bit_generator.state
        return (
            bit_generator_state["state"]["counter"].tobytes(),
            bit_generator_state["buffer_pos"],
            bit_generator_state["has_uint32"],
            bit_generator_state["uinteger"],
        )


def start_draw(generator: np.random.Generator) -> LoggedGenerator | None:
    """Return `generator` if it logs draws, after calling its `start_draw`; None for another generator."""
    if not isinstance(generator, LoggedGenerator):
        return None
    generator.start_draw()
    return generator


def end_draw(draw_logger: LoggedGenerator | None, pool: Ids, weights: Values | float, clients: Ids) -> Ids:
    """Log a draw with `draw_logger` unless it is None, as `LoggedGenerator.end_draw` does, and return `clients`.

    `weights` may be a number, which all clients of `pool` then have.
    """
    if draw_logger is not None:
        draw_logger.end_draw(pool, np.broadcast_to(weights, len(pool)), clients)
    return clients
