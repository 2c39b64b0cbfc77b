"""What titles and captions of a comparison say about its estimates: one seed has neither interval nor test."""

from fedcohort.results.matching.question import Answer


def name_estimate(answer: Answer) -> str:
    """Return what the figures of `answer` show: a mean with its interval, or one seed, which has none."""
    return "one seed" if answer.has_one_seed else "mean and 95 % interval over seeds"


def choose_caption_texts(answer: Answer) -> tuple[str, str, str]:
    """Return the texts on results, intervals and tests in the captions of `answer`; one seed has only results."""
    if answer.has_one_seed:
        return "Result of one seed", "", ""
    test_text = "; p of the paired t-test after Holm's correction over the methods of a setting"
    return "Mean over seeds [95 % interval]", " [95 % interval]", test_text
