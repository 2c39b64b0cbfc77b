"""No regulariser has no hook."""

from yaml_words import make


def test_nothing_is_added() -> None:
    assert make("regulariser", "none").hooks == ()
