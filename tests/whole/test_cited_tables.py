"""Tables cited from papers are protected by digests, so that a change of one digit fails.

The digest covers the `repr` of the table. After a correction, enter the new digest here with the source.
"""

import hashlib

import pytest

from config_options import load_options
from fedcohort.device import phones
from fedcohort.model import inverted, mobilenet_v2_gn

FLASH = "Yang et al., WWW 2021, the FLASH benchmark's simulator"
SANDLER = "Sandler et al., CVPR 2018, Table 2"
TABLES = [  # name, table, source, digest
    ("speeds of 19 links, KiB a second", phones.LINK_SPEEDS.tolist(), FLASH, "d5895201d269bc27"),
    (
        "seconds of a batch on phones, ms",
        sorted((w, t.batch_size, t.phone_ms) for w, t in phones.BATCH_TIMES.items()),
        FLASH,
        "91d37612e0c5a241",
    ),
    ("numbers of phones of each class", load_options("device", "phones")["proportions"], FLASH, "990b13aff58a53a5"),
    ("stages of MobileNetV2", inverted.MOBILENET_STAGES, SANDLER, "cfa3de6d6f6e7256"),
    ("channels of MobileNetV2", mobilenet_v2_gn.CHANNELS_AT_WIDTH_1, SANDLER, "44d5745c70e5a1a0"),
]


@pytest.mark.parametrize(("name", "table", "source", "digest"), TABLES, ids=[name for name, *_ in TABLES])
def test_a_cited_table_has_the_digits_of_its_source(name: str, table: object, source: str, digest: str) -> None:
    assert hashlib.sha256(repr(table).encode()).hexdigest()[:16] == digest, f"{name}: compare with {source}"
