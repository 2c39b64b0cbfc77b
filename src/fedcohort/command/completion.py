"""fedcohort completion bash|zsh: the lines that make a shell complete verbs, groups, words and options.

    eval "$(fedcohort completion bash)"        for this shell; put it into ~/.bashrc for every one

Groups and their words are those of the folder configs/ where the command is typed.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedcohort import ranges
from fedcohort.command.line import VERBS
from fedcohort.command.new import KINDS
from fedcohort.errors import OptionError

SHELLS = {
    "bash": """_fedcohort() {
  local IFS=$'\\n'
  COMPREPLY=($(fedcohort completion words "${COMP_LINE:0:$COMP_POINT}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _fedcohort fedcohort""",
    "zsh": "autoload -U +X bashcompinit && bashcompinit\n",
}
SHELLS["zsh"] += SHELLS["bash"]
COMPOSED = ("run", "replay", "profile", "data")  # verbs that take the words of configs/


def candidates(line: str, configs: Path) -> Iterator[str]:
    """What the last word of `line` may go on as; a shell takes what stands behind a = for a word of its own."""
    *before, last = line.split(" ")
    verb = next((word for word in before[1:] if word), None)
    if verb is None:
        yield from (word for word in VERBS if word.startswith(last))
    elif verb in COMPOSED:
        group, chosen, start = last.partition("=")
        if chosen:
            words = (path.stem for path in (configs / group).glob("*.yaml"))
            yield from sorted(word for word in words if word.startswith(start))
        else:
            yield from sorted(f"{path.name}=" for path in configs.glob(f"{last}*") if path.is_dir())
    elif verb == "methods":
        yield from sorted(path.name for path in configs.glob(f"{last}*") if path.is_dir())
    elif verb == "new":
        yield from (kind for kind in KINDS if kind.startswith(last))


def main(words: Sequence[str]) -> int:
    """Print the lines for a shell, or, called by them, the words that fit. Raises `OptionError`."""
    if len(words) == 2 and words[0] == "words":
        sys.stdout.write("".join(f"{word}\n" for word in candidates(words[1], Path("configs"))))
        return 0
    if len(words) != 1:
        raise OptionError("name the shell: fedcohort completion bash, or zsh")
    ranges.choice("the shell", words[0], *SHELLS)
    sys.stdout.write(f"{SHELLS[words[0]]}\n")
    return 0
