"""The distance of a selector's choices from uniform draws.

For every cohort S_t a reference cohort U_t of the same size is drawn uniformly from the same available clients A_t. The
draw is keyed by (seed, "uniform", round), whatever the selector.

    select/uniform_overlap:  |S_t and U_t| / |S_t| of this round
    select/uniform_overlap_mean:  mean of the overlaps of the rounds so far
    select/departure:  1/2 sum_k |c_k - e_k| / sum_k c_k, e_k = sum of |S_t| / |A_t| over t with k in A_t
    select/departure_uniform:  the departure of the reference cohorts

c_k counts how often k was selected, e_k is its expectation under uniform draws. The departure is in [0, 1): 0 if
all clients had an equal share of the rounds in which they were available, and 1 - m/K if the same m of K always train.
That of the reference cohorts shrinks with the number of rounds. A uniform selector departs as far as they do, a fair
one less, and one with favourites more.

The overlap is the share of choices that a uniform run on the same draws has, too. It does not show whether a selector
prefers some clients: every choice independent of U_t overlaps with it by |S_t| / |A_t| on average. Rounds without a
cohort do not count.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.maths.order import nth_smallest
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class UniformReference:
    """The uniform reference cohorts of the rounds so far.

    Attributes:
        expected: e_k, [n_clients].
        drawn: number of reference cohorts with each client, [n_clients].
        overlaps: sum of the overlaps over all rounds with a cohort.
        rounds: number of rounds with a cohort.
        last: overlap of the latest round, NaN without a cohort.
    """

    expected: Values
    drawn: Ids
    overlaps: float = 0.0
    rounds: int = 0
    last: float = float("nan")

    @classmethod
    def fresh(cls, n_clients: int) -> "UniformReference":
        return cls(np.zeros(n_clients), np.zeros(n_clients, dtype=np.int64))

    def with_round(self, selected: Ids, available: Ids, reference: Ids) -> "UniformReference":
        """Return the record of uniform reference cohorts after another round.

        Args:
            selected: ids of the cohort.
            available: ids of the available clients.
            reference: ids of the reference cohort (`draw_uniform`).
        """
        if not len(selected):
            return UniformReference(self.expected, self.drawn, self.overlaps, self.rounds)
        share, times_drawn = len(selected) / len(available), self.drawn.copy()
        if len(available) == len(self.expected):
            expected = self.expected + share
        else:
            expected = self.expected.copy()
            expected[available] += share
        times_drawn[reference] += 1
        overlap = float(np.isin(selected, reference).mean())
        return UniformReference(expected, times_drawn, self.overlaps + overlap, self.rounds + 1, overlap)

    def metrics(self, times_selected: Ids) -> dict[str, float]:
        """Return the metrics of the distance from uniform draws, by name; {} before the first cohort."""
        if not self.rounds:
            return {}
        latest = {} if np.isnan(self.last) else {"select/uniform_overlap": self.last}
        return latest | {
            "select/uniform_overlap_mean": self.overlaps / self.rounds,
            "select/departure": self._departure_from_uniform(times_selected),
            "select/departure_uniform": self._departure_from_uniform(self.drawn),
        }

    def _departure_from_uniform(self, counts: Ids) -> float:
        """Return how far counts of selections [n_clients] depart from their expectation under uniform draws.

        c_k and e_k have the same sum, so that half of the sum of |c_k - e_k| is the sum of the positive differences.
        """
        selected = np.flatnonzero(counts)
        excess = counts[selected] - self.expected[selected]
        return float(excess[excess > 0].sum() / counts[selected].sum())


def draw_uniform(available: Ids, count: int, draws: Draws) -> Ids:
    """Draw `count` of the available clients, every set with the same probability; the draw ignores the selector."""
    if count >= len(available):
        return available
    noise = draws.uniform("uniform")
    if len(available) < len(noise):
        noise = noise[available]
    return available[np.flatnonzero(noise <= nth_smallest(noise, count))[:count]] if count else available[:0]
