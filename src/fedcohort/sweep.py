"""What a sweep has come to, said after its last job: how its jobs ended, and the command that compares them."""

import logging
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedcohort.assemble import Composed
from fedcohort.callback import card
from fedcohort.callback.tracking import identity, record, server
from fedcohort.commands import command
from fedcohort.errors import CheckpointError
from fedcohort.roles import Identity, role_of

log = logging.getLogger("fedcohort")
FIRST = {"selector": "random", "agg": "fedavg"}  # what is compared before anything else, and to which baseline
COMPARE_READS = ("sqlite:///logs/mlflow.db", "fedcohort")  # the database and the experiment, where it is told of none


@dataclass(frozen=True)
class Job:
    """One that has finished. sweep: the one that it was run in, None for none. tracked: whether MLflow knows it."""

    made: Composed
    sweep: str | None
    tracked: bool


@dataclass
class Sweep:
    """The jobs of this process so far. id: of the sweep, "" where there is none."""

    id: str = ""
    jobs: list[Job] = field(default_factory=list)
    skipped: int = 0
    failed: list[str] = field(default_factory=list)

    def finished(self, made: Composed) -> None:
        self.jobs.append(Job(made, self.id, _tracks(made)))

    def skip(self, made: Composed, folder: Path) -> None:
        """The run in `folder` had finished before: it keeps the sweep that it was run in."""
        try:
            earlier = card.load(folder).tags.get("sweep_id")
        except CheckpointError:  # it kept no journal
            earlier = None
        self.jobs.append(Job(made, earlier, _tracks(made) and identity.load(folder) is not None))
        self.skipped += 1

    def name_failed(self) -> None:
        """Once more: their own lines have long gone by."""
        for line in self.failed:
            log.error("failed: %s", line)

    def say(self) -> None:
        """Where this was a sweep that came to its end: what failed, then the overview."""
        self.name_failed()
        if self.id and (self.jobs or self.failed):
            log.info("%s", self.overview())

    def overview(self) -> str:
        """The counts, and the command where MLflow has something to compare."""
        counts = {"done": len(self.jobs) - self.skipped, "skipped (finished before)": self.skipped}
        (how, first), *others = [(how, n) for how, n in {**counts, "failed": len(self.failed)}.items() if n]
        told = [f"{first} job{'s' if first > 1 else ''} {how}", *(f"{n} {how}" for how, n in others)]
        tracked = [job for job in self.jobs if job.tracked]
        return " ".join([f"sweep {self.id}: {', '.join(told)}.", *([_comparison(tracked)] if tracked else [])])


def _tracks(made: Composed) -> bool:
    """Whether its logger is the one that `fedcohort.compare` reads."""
    return "tracking_uri" in made.config["logger"]


def _comparison(jobs: Sequence[Job]) -> str:
    """How `jobs` are compared: two of the things that were swept down and across, one value of any other."""
    sweeps = {job.sweep for job in jobs}
    sweep = jobs[0].sweep if len(sweeps) == 1 else None
    swept = _swept([job.made for job in jobs])
    order = sorted(swept, key=lambda key: list(FIRST).index(key) if key in FIRST else len(FIRST))
    shown, held = order[:2], {key: swept[key][0] for key in order[2:]}
    words = [f"sweep={sweep}"] if sweep else []
    words += [f"{option}={key}" for option, key in zip(("rows", "cols"), shown, strict=False)]
    words += [f"baseline={FIRST[key]}" for key in shown if FIRST.get(key) in swept[key]][:1]
    words += ["filter=" + " and ".join(_condition(key, value) for key, value in held.items())] if held else []
    words += _where(jobs[0].made)
    which = f"those of {', '.join(f'{key}={value}' for key, value in held.items())}" if held else "them"
    how = f"Compare {which}"
    if sweep is None:
        how = f"Skipped runs keep the sweep that they were run in; compare {which} with all other runs beside them"
    return f"{how}: {command('python')} -m fedcohort.compare {shlex.join(words)}".rstrip()


def _swept(jobs: Sequence[Composed]) -> dict[str, list[str]]:
    """The parameters that were typed and of which the jobs have several values, with those; the seed is none."""
    typed = [word.lstrip("+").partition("=")[0].split("@")[-1] for made in jobs for word in made.overrides]
    values = {key: [fact for made in jobs if (fact := _fact(made, key)) is not None] for key in dict.fromkeys(typed)}
    distinct = {key: list(dict.fromkeys(of)) for key, of in values.items() if _is_row(key)}
    return {key: of for key, of in distinct.items() if len(of) > 1}


def _is_row(key: str) -> bool:
    """Whether MLflow knows it as a parameter of which a table over seeds can show several values."""
    role = role_of(key)
    return role.tracked and role.identity is not Identity.SEED


def _fact(made: Composed, key: str) -> str | None:
    """The word of a group or the value of an option, as MLflow has it; None for what is neither."""
    if key in made.choices:
        return made.choices[key]
    node: object = made.config
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return None if isinstance(node, dict) else record.text(node)


def _condition(key: str, value: str) -> str:
    """In MLflow's language; the parameter `rounds` of a run that was extended is out of date, its tag is not."""
    return f'{"tags" if key == record.ASKED else "params"}.`{key}` = "{value}"'


def _where(made: Composed) -> list[str]:
    """The options without which `fedcohort.compare` would look elsewhere."""
    logger = made.config["logger"]
    place = server.place(logger["tracking_uri"], logger["experiment"], Path(logger["logs"]))
    uri, experiment = COMPARE_READS
    words = [] if place == server.place(uri, place.experiment, Path("logs")) else [f"tracking_uri={place.uri}"]
    return words + ([] if place.experiment == experiment else [f"experiment={place.experiment}"])
