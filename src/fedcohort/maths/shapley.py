"""Shapley values of a game: exact, or by permutations with truncation.

    phi_i = sum_{S without i} |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))

L. S. Shapley, "A value for n-person games", 1953. The estimate is the mean of v(prefix + i) - v(prefix) over
permutations of the players (Z. Liu et al., "GTG-Shapley: Efficient and Accurate Participant Contribution Evaluation in
Federated Learning", ACM TIST 2022, arXiv 2109.02053):

    truncation:  all values are 0 if |v(all) - v(none)| < tolerance; a player has 0 if |v(all) - v(prefix)| < tolerance
    order:  each of n consecutive permutations begins with another player, the others follow at random
    end:  the last ten running means differ from the current one by less than 5 % on average over the players
"""

import math
from collections.abc import Callable

import numpy as np

from fedcohort.types import Ids, Values

CoalitionValue = Callable[[Ids], float]
N_COMPARED, MAX_CHANGE, MIN_VALUE = 10, 0.05, 1e-12


def shapley_values(
    value: CoalitionValue, n: int, tolerance: float, max_exact_players: int, per_player: int, rng: np.random.Generator
) -> Values:
    """Return the Shapley value of each player, [n]; a difference with a value that is not finite counts as 0.

    Args:
        value: function of the sorted positions of a coalition's players; it is called once for each coalition.
        n: number of players.
        tolerance: difference of two values below which no player contributes to it.
        max_exact_players: largest number of players of which all coalitions are evaluated.
        per_player: most permutations, divided by n.
        rng: generator of the permutations.
    """
    known_values = dict[frozenset[int], float]()

    def value_of(members: frozenset[int]) -> float:
        if members not in known_values:
            coalition_value = value(np.array(sorted(members), np.int64))
            known_values[members] = coalition_value if math.isfinite(coalition_value) else math.nan
        return known_values[members]

    all_players, phi = frozenset(range(n)), np.zeros(n)
    if not n or abs(value_of(all_players) - value_of(frozenset())) < tolerance:
        return phi
    if n <= max_exact_players:
        for code in range(2**n):
            members = frozenset(i for i in range(n) if code >> i & 1)
            weight = 1 / (n * math.comb(n - 1, len(members))) if len(members) < n else 0.0
            for i in all_players - members:
                phi[i] += weight * _difference(value_of(members | {i}), value_of(members))
        return phi
    running_means = [phi]
    for step in range(per_player * n):
        first_player = step % n
        order = [first_player, *rng.permutation(np.delete(np.arange(n), first_player)).tolist()]
        marginals = walk(value_of, order, tolerance)
        phi = phi + (marginals - phi) / (step + 1)
        scale = np.maximum(np.abs(phi), MIN_VALUE)
        if step >= n and all(np.mean(np.abs(means - phi) / scale) < MAX_CHANGE for means in running_means):
            break
        running_means = [*running_means[1 - N_COMPARED :], phi]
    return phi


def walk(value_of: Callable[[frozenset[int]], float], order: list[int], tolerance: float) -> Values:
    """Return the marginal value of each player in `order`, [n]; 0 once the value of all players is reached."""
    marginals, prefix = np.zeros(len(order)), frozenset[int]()
    final_value = value_of(frozenset(order))
    for i in order:
        if abs(final_value - value_of(prefix)) < tolerance:
            break
        marginals[i] = _difference(value_of(prefix | {i}), value_of(prefix))
        prefix |= {i}
    return marginals


def _difference(with_player: float, without_player: float) -> float:
    difference = with_player - without_player
    return difference if math.isfinite(difference) else 0.0
