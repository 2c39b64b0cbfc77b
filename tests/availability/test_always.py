from fedcohort.availability.always import Always
from fedcohort.rng import Draws


def test_all_clients_are_ready() -> None:
    assert Always().ready(Draws(0, 4, 2)).tolist() == [True] * 4
