"""Facts of a round by client: read whole they are columns, written they are the rows of those whom they concern."""

import numpy as np
import pytest

from fedcohort.round.client_facts import MAX_RANKED_CLIENTS, ClientFacts

NAN = float("nan")


def facts(n_clients: int = 6, **numbers: tuple[np.ndarray | None, np.ndarray]) -> ClientFacts:
    flags = {"available": np.array([0, 1, 2, 4]), "selected": np.array([1, 4]), "arrived": np.array([4])}
    return ClientFacts(n_clients, flags, numbers)


def test_full_columns_have_false_or_nan_for_missing_values() -> None:
    client_facts = facts(units=(np.array([1, 4]), np.array([0.0, 5.0])))
    assert list(client_facts) == ["available", "selected", "arrived", "units"]
    assert client_facts["available"].tolist() == [True, True, True, False, True, False]
    np.testing.assert_array_equal(client_facts["units"], [NAN, 0.0, NAN, NAN, 5.0, NAN])


def test_rows_exist_for_selected_queried_or_measured_clients() -> None:
    assert facts().clients_with_rows.tolist() == [1, 4]
    round_facts = facts(signal_loss=(np.array([0, 2]), np.array([1.0, NAN])))
    assert round_facts.clients_with_rows.tolist() == [0, 1, 2, 4], "queried clients that did not answer, too"
    assert (round_facts | {"loss": np.array([NAN] * 5 + [2.0])}).clients_with_rows.tolist() == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("row_ids", [[1, 4], [0, 1, 2, 3, 4, 5]])
def test_rows_agree_with_the_full_columns(row_ids: list[int]) -> None:
    client_facts = facts(units=(np.array([1, 4]), np.array([3.0, 5.0])), loss=(None, np.arange(6.0)))
    for name, column in client_facts.rows_of_clients(np.array(row_ids)).items():
        np.testing.assert_array_equal(column, client_facts[name][row_ids], err_msg=name)


def test_of_clients_that_were_only_ranked_the_best_have_rows() -> None:
    score = np.arange(4.0 * MAX_RANKED_CLIENTS)
    score[:10] = NAN
    client_facts = facts(
        4 * MAX_RANKED_CLIENTS, score=(None, score), part_explore=(None, np.ones(4 * MAX_RANKED_CLIENTS))
    )
    assert client_facts.clients_with_rows.tolist() == [1, 4, *range(3 * MAX_RANKED_CLIENTS, 4 * MAX_RANKED_CLIENTS)]


def test_full_columns_and_facts_are_equivalent() -> None:
    client_facts = facts(units=(np.array([1, 4]), np.array([3.0, 5.0])))
    repeat = ClientFacts.from_client_columns(dict(client_facts))
    assert repeat.n_clients == 6
    for name in client_facts:
        np.testing.assert_array_equal(repeat[name], client_facts[name])
    assert not len(ClientFacts.from_client_columns({}))
