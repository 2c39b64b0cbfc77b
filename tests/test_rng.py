"""Every draw is a function of (seed, purpose, round, client), and of nothing else."""

import numpy as np
import torch

from fedcohort.rng import Draws, new_generator, philox_key, seeded_torch


def test_keys_are_the_same_everywhere() -> None:
    # blake2b of b"0/partition/-1/-1", little endian; another number here would change every published fingerprint
    assert philox_key(0, "partition") == 261314017855825213128752185870381186178
    assert philox_key(0, "partition", -1, -1) == philox_key(0, "partition")


def test_every_part_of_the_key_counts() -> None:
    keys: list[tuple[int, str, list[int]]] = [(0, "a", []), (1, "a", []), (0, "b", [])]
    keys += [(0, "a", [0]), (0, "a", [1]), (0, "a", [0, 1])]
    draws = {new_generator(seed, purpose, *arguments).random() for seed, purpose, arguments in keys}
    assert len(draws) == 6


def test_seed_zero_is_a_valid_seed() -> None:
    assert new_generator(0, "x").random() == new_generator(0, "x").random() != new_generator(1, "x").random()


def test_a_clients_draws_do_not_depend_on_the_queried_clients() -> None:
    draws = Draws(3, 100, 7)
    assert np.array_equal(draws.uniform("u")[[4, 9]], Draws(3, 100, 7).uniform("u")[[4, 9]])
    assert not np.array_equal(draws.uniform("u"), Draws(3, 100, 8).uniform("u"))
    assert np.array_equal(draws.draws_of_run().exponential("d"), Draws(3, 100).exponential("d"))


def test_torch_scope_is_keyed_and_restores_the_generator() -> None:
    before = torch.get_rng_state()
    with seeded_torch(5, "weights"):
        a = torch.rand(3)
    with seeded_torch(5, "weights"):
        b = torch.rand(3)
    assert torch.equal(a, b)
    assert torch.equal(before, torch.get_rng_state())
