"""What has to be known to read a study's page: what a result is, what the marks mean, who was tuned."""

from collections.abc import Mapping

from fedcohort.results.metric import MetricUnit
from fedcohort.study import behaviour
from fedcohort.study.definition import BOUND, Study
from fedcohort.study.places import clock_of, is_early
from fedcohort.study.results import Results
from fedcohort.study.sheets import OTHER_CODE
from fedcohort.study.verdict import Verdict, over_of
from fedcohort.study.wording import count, points, spell_worth


def cautions(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Return what has to be known to read the tables, a line each."""
    least = study.least * u.factor
    late = f"the mean of {study.metric} over the last {study.late} evaluated rounds of a run{tell_clock(study)}"
    return [
        f"A result is {late}; differences are to {study.baseline} on the same seed, which shares data, "
        "partition and first model, with 95 % intervals of the paired t.",
        f"▲ and ▼: a difference whose p, corrected by Holm for the methods of the regime, is below {study.alpha:g}, "
        f"of {least:g} {points(u, least)} or more, over {study.enough} seeds or more. {warn_of_many(study, verdict)}",
        *tell_collapsing(study, verdict, u),
        *tell_variants(study),
        "‡ is a yardstick, no method: it reads what no server can know. The gap is that of the regime's "
        "oracle; of several, that of the one which is best on the other seeds, seed by seed (five seeds or more).",
        "The greedy oracle is myopic and no upper bound: it takes who helps the next model most. Full participation, "
        "and the bound, the same federation without its heterogeneity, may lie well above it.",
        f"Seeds: how many show a true difference of {spell_worth(study, u)} with a chance of 80 %, from the median "
        f"spread of the methods' paired differences, in one test at {study.alpha:g}: a mark, which Holm corrects, "
        "takes more. The formula is in `results/power.py`.",
        "To target: median rounds, virtual time and bytes to the regime's target, each separately, of an even number "
        "of seeds the geometric middle of the middle two; where half of the seeds never met it, how many did.",
        *tell_regimes(study, verdict, u),
        *tell_tuned(study),
        *study.notes,
    ]


def tell_regimes(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Say what a test over regimes takes for granted; nothing where there is none."""
    if verdict.ranks is None:
        return []
    return [
        "The test over these regimes takes the seed as its unit, as regimes of one study share seeds and partitions: "
        "each seed's mean difference over the families of regimes, and over the regimes of a family. A method is "
        f"better than {study.baseline} over them where p is below {study.alpha:g} after Holm over the methods, and the "
        f"mean is {study.least * u.factor:g} {points(u, study.least * u.factor)} or more. This holds for these "
        "regimes. For others like them the test takes the family as its unit, with one mean difference each."
    ]


def tell_clock(study: Study) -> str:
    """Say what a result is where a clock ends runs; "" where none does."""
    if not any(clock_of((*study.common, *cell.words)) for cell in study.cells.values()):
        return ""
    return ", or, where a clock ends them (until.virtual_s), over the last sixth of its time, of the newest model"


def tell_early(study: Study, found: Results) -> list[str]:
    """Say which runs had all of their rounds before the clock that was to end them; none or one line."""
    counts: dict[str, dict[str, list[bool]]] = {}
    for (cell, row, _), facts in found.done():
        if cell in study.cells and clock_of(facts["words"].split()) is not None:
            early = is_early(facts["words"], facts["virtual_s"])
            counts.setdefault(study.cells[cell].label, {}).setdefault(row, []).append(early)
    where = {
        label: ", ".join(
            f"{row.replace(BOUND, 'bound ')} ({sum(of)} of {len(of)})" for row, of in rows.items() if any(of)
        )
        for label, rows in sorted(counts.items())
    }
    named = "; ".join(f"{label}: {rows}" for label, rows in where.items() if rows)
    if not named:
        return []
    return [
        "Runs that had all of their rounds before the clock ended, so that `rounds` and not the clock stopped them; "
        f"their last model counts from then on, and more rounds might have made it better: {named}."
    ]


def list_other_code(found: Results) -> list[str]:
    """Describe which runs were computed by code that behaves differently; none or one line."""
    rows = [row for _, row in found.done() if row["differs"]]
    if not rows:
        return []
    compared = ", ".join(sorted({row["compared"][:10] for row in rows}))
    return [
        f"{OTHER_CODE} marks numbers computed by code that behaves differently from commit {compared}: "
        f"{count(len(rows), 'run')}, of which the table gives the number of seeds. The first {behaviour.ROUNDS} rounds "
        "differ in the cohorts, the metric, the virtual time or the bytes."
    ]


def warn_of_many(study: Study, verdict: Verdict) -> str:
    """Return the number of regimes in which chance alone would give a mark: the correction is within a regime."""
    n = len(verdict.cells)
    return (
        f"The correction is within a regime: were no method different, up to {n * study.alpha:.2g} of the {n} regimes "
        "would have a mark by chance. The opening counts those that are left after one correction over all methods and "
        "regimes."
    )


def tell_collapsing(study: Study, verdict: Verdict, u: MetricUnit) -> list[str]:
    """Return a line on methods whose differences have a long left tail, with each one's worst seed; none for none."""
    if not verdict.collapsing:
        return []
    worst = {
        row: min(over_of(cell.rows[row]).worst for cell in verdict.cells.values() if row in cell.rows)
        for row in sorted(verdict.collapsing)
    }
    methods = ", ".join(f"{row} (worst seed {value * u.factor:+.1f})" for row, value in worst.items())
    return [f"Collapses on some seeds, so that wins in single regimes are not safe without more seeds: {methods}."]


def tell_variants(study: Study) -> list[str]:
    """Say whose p are corrected together, and who isn't asked for in each regime or on each seed; a line each."""
    lines = [
        f"{name} are {len(rows)} tries of one idea, {', '.join(rows)}: in a count over regimes their p is "
        "corrected by Holm for the regimes of all of them together."
        for name, rows in study.variants.items()
    ]
    if some := [cell.label for cell in study.cells.values() if cell.rows is not None]:
        where = "each of the regimes" if len(some) == len(study.cells) else "; ".join(some)
        lines.append(f"Asked for some of the rows alone (`rows` of a regime; others have a dash there): {where}.")
    if study.few:
        rows = ", ".join(f"{row} ({n})" for row, n in study.few.items())
        lines.append(
            f"Asked for fewer seeds than the others, the first of them: {rows}. A yardstick that "
            f"has less than half of {study.baseline}'s seeds is no gap."
        )
    return lines


def tell_tuned(study: Study) -> list[str]:
    """Say who was tuned with what, a line each."""
    if not study.tuned:
        return ["Nobody was tuned: all methods have their default options."]
    lines = ["Tuned, each on seeds of its own; all others have their default options:"]
    for name, each in study.tuned.items():
        seeds, cells = ", ".join(map(str, each.seeds)), ", ".join(each.cells)
        lines.append(
            f"{name}: `{' '.join(each.words)}`, the best of {count(each.trials, 'trial')} (seeds {seeds} in {cells}; "
            f"{each.metric} {each.value:.4f}, {each.default:.4f} with its defaults; {_spell_commits(each.commits)})."
        )
    return lines


def _spell_commits(commits: Mapping[str, int]) -> str:
    """`commit c0ffee`, or `commits c0ffee (15), decade (5)`."""
    if len(commits) == 1:
        return f"commit {next(iter(commits))}"
    return f"commits {', '.join(f'{name} ({n})' for name, n in commits.items())}"
