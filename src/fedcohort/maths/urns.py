"""Sampling distributions that are filled with the masses of clients, and clusters of Ward's tree that fit into one.

Used by clustered sampling (Fraboni et al., ICML 2021, Algorithms 1 and 2), where an urn is a distribution.
"""

import numpy as np
from jaxtyping import Float64

from fedcohort.arrays import Ids

Urns = tuple[Ids, Ids, Ids]  # client, distribution and mass of each positive entry of W, one row after the other


def fill_urns_in_order(item_masses: Ids, urn_sizes: Ids) -> Urns:
    """Fill urns (sampling distributions) with items (clients), in order; what does not fit goes to the next urn.

    Args:
        item_masses: mass of each item, [items]; the sum is that of `urn_sizes`.
        urn_sizes: mass that each urn takes, [urns].

    Returns:
        Item, urn and mass of each part of an item, [parts] each, in the order of the urns.
    """
    item_ends, urn_ends = np.cumsum(item_masses), np.cumsum(urn_sizes)
    part_ends = np.union1d(item_ends, urn_ends)
    part_ends = part_ends[part_ends > 0]
    return np.searchsorted(item_ends, part_ends), np.searchsorted(urn_ends, part_ends), np.diff(part_ends, prepend=0)


def ward_tree(client_angles: Float64[np.ndarray, "a a"], tree_points: str) -> Float64[np.ndarray, "merges 4"]:
    """Return Ward's tree of n clients as in `scipy.cluster.hierarchy.linkage`, float64 [n - 1, 4].

    Args:
        client_angles: angles between the clients' updates in radians, [n, n].
        tree_points: "rows" clusters the rows of `client_angles`, "condensed" takes the angles as distances.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist, squareform

    distances = pdist(client_angles) if tree_points == "rows" else squareform(client_angles, checks=False)
    return np.asarray(linkage(distances, "ward"))


def cut_ward_tree(client_masses: Ids, client_tree: Float64[np.ndarray, "merges 4"], max_cluster_mass: int) -> Ids:
    """Return each client's cluster number, [n]; clusters are the largest subtrees of at most `max_cluster_mass`.

    The number is that of the subtree's root, so that numbers are not consecutive.

    Args:
        client_masses: mass (samples) of each client that must share an urn with other clients, below
            `max_cluster_mass`, [n].
        client_tree: Ward's tree of the clients (`ward_tree`), [n - 1, 4].
        max_cluster_mass: largest mass of a cluster, the number of samples of all clients.
    """
    merged_nodes = client_tree[:, :2].astype(np.int64)
    node_mass = np.concatenate([client_masses, np.zeros(len(merged_nodes), np.int64)])
    for node_number, child_nodes in enumerate(merged_nodes, len(client_masses)):
        node_mass[node_number] = node_mass[child_nodes].sum()
    cluster_of_node = np.arange(len(node_mass))
    for node_number in range(len(node_mass) - 1, len(client_masses) - 1, -1):
        if node_mass[node_number] <= max_cluster_mass:
            cluster_of_node[merged_nodes[node_number - len(client_masses)]] = cluster_of_node[node_number]
    return cluster_of_node[: len(client_masses)]
