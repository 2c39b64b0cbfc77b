"""What the language and size lints count: one function per rule, each returning its hits."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lints import prose

NOT_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
    of found known own each some there here said told asked mine theirs wanted left others rest whole one far late
    early it kept given made held by at so more most much many both such same other another anew alone beside
    shown seen gone come came ran typed again what who
    """,
    )
)
MAX_FUNCTION_LINES, MAX_FILE_LINES, MAX_PARAMETERS = 40, 250, 7
MIN_MESSAGE_WORDS = 4  # shorter strings are keys, formats and names
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Hit:
    """One violation: its position and its description."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True)
class Source:
    """A parsed Python file."""

    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> "Source":
        """Read and parse the file."""
        text = path.read_text(encoding="utf-8")
        return cls(path, text, ast.parse(text))

    def docstring_nodes(self) -> Iterator[ast.Constant]:
        """Yield the string nodes that document a module, class, function or attribute."""
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield node.value


def pronoun_names(source: Source) -> Iterator[Hit]:
    """Yield assigned names, parameters, functions and classes that are pronouns, articles, participles or adverbs."""
    for node in ast.walk(source.tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                if name.strip("_").lower() in NOT_NAMES:
                    yield Hit(source.path, node.lineno, name)


def docstring_prose(source: Source) -> Iterator[Hit]:
    """Yield unclear phrases and long sentences of docstrings."""
    for node in source.docstring_nodes():
        for phrase in prose.violations(str(node.value)):
            yield Hit(source.path, node.lineno, phrase)


def message_prose(source: Source) -> Iterator[Hit]:
    """Yield unclear phrases and long sentences of strings that users may read."""
    skipped = {id(node) for node in source.docstring_nodes()}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in ast.walk(node) if inner is not node}
    for node in ast.walk(source.tree):
        text = "" if id(node) in skipped else _string(node)
        if len(text.split()) >= MIN_MESSAGE_WORDS:
            for phrase in prose.violations(text):
                yield Hit(source.path, getattr(node, "lineno", 0), phrase)


def _string(node: ast.AST) -> str:
    """Return the text of a string or an f-string, whose values read `X`; other nodes have none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return ""


def markdown_prose(path: Path) -> Iterator[Hit]:
    """Yield unclear phrases and long sentences of a Markdown page, without its code and tables."""
    for phrase in prose.violations(prose.strip_markdown(path.read_text(encoding="utf-8"))):
        yield Hit(path, 1, phrase)


def long_files(source: Source) -> Iterator[Hit]:
    """Yield files of more than `MAX_FILE_LINES` lines."""
    lines = len(source.text.splitlines())
    if lines > MAX_FILE_LINES:
        yield Hit(source.path, 1, f"{lines} lines")


def long_functions(source: Source) -> Iterator[Hit]:
    """Yield functions of more than `MAX_FUNCTION_LINES` code lines (no blank lines, comments or docstrings)."""
    code = set(_code_lines(source))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = len(code.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
            if lines > MAX_FUNCTION_LINES:
                yield Hit(source.path, node.lineno, f"{node.name}: {lines} code lines")


def many_parameters(source: Source) -> Iterator[Hit]:
    """Yield functions of more than `MAX_PARAMETERS` parameters."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in arguments)
            if count > MAX_PARAMETERS:
                yield Hit(source.path, node.lineno, f"{node.name}: {count} parameters")


def logical_lines(source: Source) -> Iterator[Hit]:
    """Yield every logical line of code: a statement that a long name wraps counts once, a docstring not at all."""
    docstring_lines = {node.end_lineno for node in source.docstring_nodes()}
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.NEWLINE and token.start[0] not in docstring_lines:
            yield Hit(source.path, token.start[0], "")


def _code_lines(source: Source) -> Iterator[int]:
    documented = {
        line for node in source.docstring_nodes() for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for number, line in enumerate(source.text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#") and number not in documented:
            yield number


SOURCE_RULES = {
    "names that are pronouns or participles": pronoun_names,
    "unclear phrases in docstrings": docstring_prose,
    "unclear phrases in messages": message_prose,
    f"files above {MAX_FILE_LINES} lines": long_files,
    f"functions above {MAX_FUNCTION_LINES} code lines": long_functions,
    f"functions with more than {MAX_PARAMETERS} parameters": many_parameters,
    "logical lines of code": logical_lines,
}
LANGUAGE_RULES = ("names that are pronouns or participles", "unclear phrases in docstrings")
