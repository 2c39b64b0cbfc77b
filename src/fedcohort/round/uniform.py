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

from fedcohort.maths.order_statistics import nth_smallest
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class UniformReference:
    """The uniform reference cohorts of the rounds so far.

    The overlap of a round is the share of its cohort that is in the reference cohort.

    Attributes:
        expected: expected number of selections of each client under uniform draws, [n_clients].
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
    def without_rounds(cls, n_clients: int) -> "UniformReference":
        return cls(np.zeros(n_clients), np.zeros(n_clients, dtype=np.int64))

    def add_round(self, selected_ids: Ids, available_ids: Ids, uniform_cohort_ids: Ids) -> "UniformReference":
        """Return the record of uniform reference cohorts after another round.

        Args:
            selected_ids: ids of the cohort.
            available_ids: ids of the available clients.
            uniform_cohort_ids: ids of the reference cohort (`draw_uniform_cohort`).
        """
        if not len(selected_ids):
            return UniformReference(self.expected, self.drawn, self.overlaps, self.rounds)
        expected_selections, times_drawn = self.expected.copy(), self.drawn.copy()
        are_all_available = len(available_ids) == len(self.expected)
        expected_selections[... if are_all_available else available_ids] += len(selected_ids) / len(available_ids)
        times_drawn[uniform_cohort_ids] += 1
        overlap = float(np.isin(selected_ids, uniform_cohort_ids).mean())
        return UniformReference(expected_selections, times_drawn, self.overlaps + overlap, self.rounds + 1, overlap)

    def metrics(self, times_selected: Ids) -> dict[str, float]:
        """Return the metrics of the distance from uniform draws, by name; {} before the first cohort.

        `times_selected` has the number of selections of each client, [n_clients].
        """
        if not self.rounds:
            return {}
        latest_overlap_metric = {} if np.isnan(self.last) else {"select/uniform_overlap": self.last}
        return latest_overlap_metric | {
            "select/uniform_overlap_mean": self.overlaps / self.rounds,
            "select/departure": self._compute_departure_from_uniform(times_selected),
            "select/departure_uniform": self._compute_departure_from_uniform(self.drawn),
        }

    def _compute_departure_from_uniform(self, times_selected: Ids) -> float:
        """Return the distance in [0, 1) of the numbers of selections c_k from those expected under uniform draws, e_k.

        It is the sum of |c_k - e_k| over clients k, divided by twice the sum of c_k. As c_k and e_k have the same sum,
        this equals the sum of the positive differences, divided by the sum of c_k.

        Args:
            times_selected: number of selections of each client, c_k, [n_clients].
        """
        selected_ids = np.flatnonzero(times_selected > 0)
        excess_selections = times_selected[selected_ids] - self.expected[selected_ids]
        return float(excess_selections[excess_selections > 0].sum() / times_selected[selected_ids].sum())


def draw_uniform_cohort(available_ids: Ids, cohort_size: int, round_draws: Draws) -> Ids:
    """Return `cohort_size` of the sorted `available_ids`, [n_drawn], drawn uniformly without replacement.

    `round_draws` has the random numbers of the round; the selector has no effect. If fewer clients are available, all
    are returned.
    """
    if cohort_size >= len(available_ids):
        return available_ids
    uniform_numbers = round_draws.uniform("uniform")
    if len(available_ids) < len(uniform_numbers):
        uniform_numbers = uniform_numbers[available_ids]
    return (
        available_ids[np.flatnonzero(uniform_numbers <= nth_smallest(uniform_numbers, cohort_size))[:cohort_size]]
        if cohort_size
        else available_ids[:0]
    )
