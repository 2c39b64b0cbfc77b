"""Unclear phrases that plain English replaces, and sentences that are too long."""

import re

MAX_WORDS = 30
PHRASES = {
    name: re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    for name, pattern in {
        "a person-word for a client or a method": r"\b(?:nobody|everybody|somebody|whoever|anybody)\b",
        "a clause without a subject": r"(?:^|[.,;:(] )\(?whom? (?:is|are|has|have|was|leaves|never|isn't)\b",
        "'word' for an option": r"\b(?:a|the|any|each|another|other|these|those|which|of) words?\b",
        "'yardstick' for an oracle": r"\byardsticks?\b",
        "'what there is', 'what came'": r"\bwhat (?:there (?:is|was)|came|it|they|clients|each|selecting)\b",
        "'is said', 'says so'": r"\b(?:is|are|was) said\b|\bsays? so\b",
        "'beside' for next to": r"\bbeside\b",
        "'goes on' for resumes": r"\b(?:goes?|going|went) on\b",
        "'anew', 'in vain', 'alike'": r"\banew\b|\bin vain\b|\balike\b",
        "'by itself', 'of its own'": r"\bby (?:itself|themselves)\b|\bof (?:its|their|your|one's) own\b",
        "'to win' for headroom": r"\bto (?:win|be won)\b",
        "'ours', 'yours' as a noun": r"\b(?:ours|yours|theirs)\b",
        "an inverted clause (as it ...)": r", as (?:it|they|all|the|what|nobody|everybody)\b",
    }.items()
}


def violations(text: str) -> list[str]:
    """Return a description of each unclear phrase and of each sentence of more than `MAX_WORDS` words."""
    hits = [f"{name}: {match.group(0).strip()!r}" for name, rule in PHRASES.items() for match in rule.finditer(text)]
    for sentence in split_sentences(text):
        words = len(sentence.split())
        if words > MAX_WORDS:
            hits.append(f"a sentence of {words} words: {' '.join(sentence.split()[:6])} ...")
    return hits


def split_sentences(text: str) -> list[str]:
    """Return the sentences of prose: they end at a full stop, a question mark, a blank line or the next list item."""
    paragraphs = re.split(r"\n\s*\n|\n\s*(?=[-*+] |\d+\. |\w+: )", text)
    return [sentence for paragraph in paragraphs for sentence in re.split(r"(?<=[.!?:])\s+", paragraph) if sentence]


def strip_markdown(text: str) -> str:
    """Return the prose of a Markdown page: without fenced code, tables, headings, pictures and inline code."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.strip().startswith(("|", "#", "![", "[!"))]
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "X", "\n".join(lines)))
