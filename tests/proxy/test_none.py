from engine_toy import federation_of
from yaml_words import make


def test_there_are_no_proxy_inputs() -> None:
    proxy = make("proxy", "none")
    assert proxy.inputs(federation_of(), 0) is None
    assert not proxy.has_inputs
