"""The serialised vectors that travel in addition to the model have the bytes that rounds are charged and papers state.

Downloads and uploads are in vectors of P floats, reported numbers in bytes.
"""

from typing import Any

import numpy as np
import pytest

from agg_harness import make_population
from config_options import list_options, make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.component import PROXY_INPUTS
from fedcohort.signal.base import Measured, Reported, find_signal
from round_harness import run_without_files

P, M = 64 * 10 + 10, 4  # logistic regression on 8x8 digits, clients a round
TABLE = {
    "fedavg": (0, 0, 0),
    "fedbio": (0, 0, 0),
    "fedbio agg.variant=second_order": (1, 1, 0),
    "feddf": (0, 0, 0),
    "fednova": (0, 0, 8),
    "scaffold": (1, 1, 0),
    "rhfl": (0, 0, 4),
    "fedmaba": (0, 0, 4),
    "fedmaba agg.loss=loss_post": (0, 0, 4),
    "qffl": (0, 0, 4),
    "afl": (0, 0, 4),
    "term": (0, 0, 4),
    "fedmgda_plus": (0, 0, 0),
}
SHORT_RUN = ("rounds=1", "eval.clients_every=0", "split.limit=120", "client.epochs=1")
CASES = [*list_options("agg"), "fedbio agg.variant=second_order", "fedmaba agg.loss=loss_post"]


def measure_extra_bytes(agg: Any) -> tuple[int, int, int]:
    """(bytes down, bytes up) in addition to a toy model, in model sizes, and bytes of the reported numbers."""
    trainer = make_trainer(make_federation(), make_network(), hooks=agg.hooks)
    n = trainer.server.layout.n_params
    down = agg.broadcast(agg.init(make_population(3), n))
    uploaded = trainer.train(make_task(0), down).uploads
    downloaded = {name: down[name] for hook in agg.hooks for name in hook.downloads}
    sizes = [
        sum(len(v.float().numpy().tobytes()) for v in vectors.values()) / (4 * n) for vectors in (downloaded, uploaded)
    ]
    signals = [find_signal(signal) for signal in agg.needs]
    # what the server reads off an update (the learning rate that it has set itself) is not sent: bytes_up = 0
    reported = [s for s in signals if isinstance(s, Measured | Reported) and s.bytes_up]
    numbers = len(np.zeros(len(reported), dtype=np.float32).tobytes())
    return int(sizes[0]), int(sizes[1]), numbers


@pytest.mark.parametrize("case", CASES)
def test_additional_vectors_are_charged_with_their_serialised_size(case: str) -> None:
    choice, *options = case.split()
    changes = dict(option.removeprefix("agg.").split("=") for option in options)
    down, up, numbers = measure_extra_bytes(make_component("agg", choice, **changes))
    assert (down, up, numbers) == TABLE.get(case, (down, up, numbers))
    few_steps = {"feddf": ["agg.steps=1"], "rhfl": ["agg.batches=1"]}.get(choice, [])
    proxy = ["proxy=noise"] if PROXY_INPUTS in make_component("agg", choice).requirements else []
    run = run_without_files(f"agg={choice}", *options, *few_steps, *proxy, *SHORT_RUN)
    before, after = (report.metrics for report in run.reports)
    assert after["comm/down_bytes"] - before["comm/down_bytes"] == M * 4 * P * (1 + down)
    assert after["comm/up_bytes"] - before["comm/up_bytes"] == M * (4 * P * (1 + up) + numbers)


def test_a_codec_encodes_only_the_update() -> None:
    # SCAFFOLD's delta_c travels as it is beside an update of round(.25 * 640) + round(.25 * 10) numbers and a seed
    run = run_without_files("agg=scaffold", "codec=subsample", *SHORT_RUN)
    assert run.last.metrics["comm/up_bytes"] == M * (4 * P + 4 * (160 + 2) + 8)
