"""What ends a run in half a second: options out of their range, aliases beside other words, parts without torch."""

from typing import Any

from fedcohort.startup import assemble
from fedcohort.startup.assemble import Composed


def make_light(composition: Composed) -> dict[str, Any]:
    """Check the options, and return the parts that import no torch, by group. Raises `FedcohortError`."""
    assemble.check_keys(composition)
    assemble.check_numbers(composition.config)
    assemble.check_aliases(composition)
    objects = {group: assemble.part(composition, group) for group in assemble.LIGHT}
    assemble.check_owners(composition, objects["partition"])
    return objects
