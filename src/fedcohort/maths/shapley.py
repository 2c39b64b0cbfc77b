"""Shapley values of a game: exact, or by permutations with truncation.

    phi_i = sum_{S without i} |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))

L. S. Shapley, "A value for n-person games", 1953. The estimate is the mean of v(prefix + i) - v(prefix) over
permutations of the players (Z. Liu et al., "GTG-Shapley: Efficient and Accurate Participant Contribution Evaluation in
Federated Learning", ACM TIST 2022, arXiv 2109.02053):

    truncation:  all values are 0 if |v(all) - v(none)| < tolerance; a player has 0 if |v(all) - v(prefix)| < tolerance
    order:  each of n consecutive permutations begins with another player, the others follow at random
    end:  the running means of the last ten permutations differ from the current one by less than 5 %, on average over
        the players, but not before permutation n + 1
"""

import math
from collections.abc import Callable

import numpy as np

from fedcohort.types import Ids, Values

CoalitionValue = Callable[[Ids], float]
N_COMPARED_ESTIMATES, MAX_RELATIVE_CHANGE, MIN_VALUE_SCALE = 10, 0.05, 1e-12


def shapley_values(
    value_function: CoalitionValue,
    n: int,
    tolerance: float,
    max_exact_players: int,
    permutations_per_player: int,
    rng: np.random.Generator,
) -> Values:
    """Return the Shapley value of each player, [n]; a value difference that is not finite counts as 0.

    Args:
        value_function: function of a coalition, as sorted positions of its players, that returns the coalition's value.
            It is called at most once for each coalition.
        n: number of players.
        tolerance: difference below which two values count as equal.
        max_exact_players: largest number of players for which all coalitions are evaluated.
        permutations_per_player: largest number of permutations per player.
        rng: random generator of the permutations.
    """
    value_by_coalition = dict[frozenset[int], float]()

    def value_of(member_set: frozenset[int]) -> float:
        if member_set not in value_by_coalition:
            value_of_coalition = value_function(np.array(sorted(member_set), np.int64))
            value_by_coalition[member_set] = value_of_coalition if math.isfinite(value_of_coalition) else math.nan
        return value_by_coalition[member_set]

    all_players, phi = frozenset(range(n)), np.zeros(n)
    if not n or abs(value_of(all_players) - value_of(frozenset())) < tolerance:
        return phi
    if n <= max_exact_players:
        for coalition_bits in range(2**n):
            member_set = frozenset(i for i in range(n) if coalition_bits >> i & 1)
            coalition_weight = 1 / (n * math.comb(n - 1, len(member_set))) if len(member_set) < n else 0.0
            for i in all_players - member_set:
                phi[i] += coalition_weight * _marginal_difference(value_of(member_set | {i}), value_of(member_set))
        return phi
    running_means = [phi]
    for permutation_number in range(permutations_per_player * n):
        first_player = permutation_number % n
        player_order = [first_player, *rng.permutation(np.delete(np.arange(n), first_player)).tolist()]
        phi = phi + (player_marginals(value_of, player_order, tolerance) - phi) / (permutation_number + 1)
        value_scales = np.maximum(np.abs(phi), MIN_VALUE_SCALE)
        if permutation_number >= n and all(
            np.mean(np.abs(earlier_phi - phi) / value_scales) < MAX_RELATIVE_CHANGE for earlier_phi in running_means
        ):
            break
        running_means = [*running_means[1 - N_COMPARED_ESTIMATES :], phi]
    return phi


def player_marginals(value_of: Callable[[frozenset[int]], float], player_order: list[int], tolerance: float) -> Values:
    """Return the value that each player adds to the players before it in `player_order`, [n].

    Players after the first coalition whose value is within `tolerance` of that of all players add 0.

    `value_of` returns the value of a coalition.
    """
    marginal_contributions, preceding_players = np.zeros(len(player_order)), frozenset[int]()
    value_of_all = value_of(frozenset(player_order))
    for i in player_order:
        if abs(value_of_all - value_of(preceding_players)) < tolerance:
            break
        marginal_contributions[i] = _marginal_difference(value_of(preceding_players | {i}), value_of(preceding_players))
        preceding_players |= {i}
    return marginal_contributions


def _marginal_difference(value_with_player: float, value_without_player: float) -> float:
    value_difference = value_with_player - value_without_player
    return value_difference if math.isfinite(value_difference) else 0.0
