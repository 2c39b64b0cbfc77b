from config_options import make_component
from engine_harness import make_federation


def test_there_are_no_proxy_inputs() -> None:
    proxy = make_component("proxy", "none")
    assert proxy.inputs(make_federation(), 0) is None
    assert not proxy.has_inputs
