"""Plant small faults in the source of a module (mutation testing).

The operators are those of Cosmic Ray, and `SwapName` and `DropStatement`.
"""

import ast
import difflib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, ClassVar

from cosmic_ray.ast import get_ast
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import Keyword

ROOT = Path(__file__).resolve().parents[1]
OPERATOR_SWAPS = (
    "Add>Sub Sub>Add Mul>Div Div>Mul FloorDiv>Mul FloorDiv>Div Mod>Mul Pow>Mul BitAnd>BitOr BitOr>BitAnd Eq>NotEq"
)
OPERATOR_SWAPS += (
    " NotEq>Eq Lt>LtE Lt>GtE Gt>GtE Gt>LtE LtE>Lt LtE>Gt GtE>Gt GtE>Lt Is>IsNot IsNot>Is In>NotIn NotIn>In"
)
UNARY = ("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub")
EXCLUDED_OPERATORS = r"Variable|RemoveDecorator|ExceptionReplacer|ReplaceUnary"
NAME_SWAPS = "any/all min/max argmin/argmax minimum/maximum floor/ceil ones/zeros mean/sum cumsum/cumprod append/extend"


class SwapName(Operator):
    """Operator that replaces a name by its opposite."""

    names: ClassVar = dict(
        pair for swap_pair in NAME_SWAPS.split() for a, b in [swap_pair.split("/")] for pair in [(a, b), (b, a)]
    )

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "name" and node.value in self.names:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self.names[node.value]
        return node

    @classmethod
    def examples(cls) -> Sequence[Any]:
        return ()


class DropStatement(Operator):
    """Operator that removes a statement with a side effect: a call, `x += ...` or `x[i] = ...`."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.parent is None or node.parent.type != "simple_stmt":
            return
        last = node.get_last_leaf().value
        if node.type == "expr_stmt":
            last = node.children[0].get_last_leaf().value if node.children[1].type == "operator" else ""
            last = "]" if node.children[1].type == "operator" and node.children[1].value != "=" else last
        if (node.type, last) in (("atom_expr", ")"), ("expr_stmt", "]")):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return Keyword("pass", node.start_pos, node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> Sequence[Any]:
        return ()


@dataclass(frozen=True)
class Mutant:
    """A module with one fault.

    Attributes:
        path: path of the module.
        code: source of the module with the fault.
        before: changed lines without the fault.
        after: changed lines with the fault.
    """

    path: Path
    code: str
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        return str(self.path.relative_to(ROOT)), self.before, self.after

    def plant(self) -> None:
        """Make Python import the faulty source, without reading or writing caches."""
        read, stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

        def get_data(loader: SourceFileLoader, path: str) -> bytes:
            return self.code.encode() if path == str(self.path) else read(loader, path)

        def path_stats(loader: SourceFileLoader, path: str) -> Any:
            if path == str(self.path):
                raise OSError("a mutant is in no cache")
            return stats(loader, path)

        for function in (get_data, path_stats):
            setattr(SourceFileLoader, function.__name__, function)

    def difference(self) -> str:
        lines = difflib.unified_diff(self.path.read_text().splitlines(), self.code.splitlines(), n=2, lineterm="")
        return "\n".join(list(lines)[2:])


@cache
def list_operators() -> list[tuple[str, Any]]:
    """Return the pairs (family, operator)."""
    named_operators: list[tuple[str, Any]] = [("Swap", SwapName()), ("Drop", DropStatement())]
    for name in sorted(operator_names()):
        short_name = name.removeprefix("core/")
        family, *pair = short_name.split("_")
        is_included = (
            ">".join(pair) in OPERATOR_SWAPS.split() if len(pair) == 2 else not re.match(EXCLUDED_OPERATORS, short_name)
        )
        if is_included or short_name in UNARY:
            named_operators.append((family, get_operator(name)()))
    return named_operators


@dataclass(frozen=True)
class Place:
    """A position in a module for faults of one family.

    Attributes:
        variants: operators, each with the index of its occurrence.
    """

    path: Path
    position: Any
    family: str
    variants: tuple[tuple[Any, int], ...]

    def mutant(self, seed: int) -> Mutant | None:
        """Return a variant by seed and position; None if all variants have the meaning of the original."""
        code = self.path.read_text()
        draw = random.Random(f"{seed} {self.path.relative_to(ROOT)} {self.position} {self.family}")
        faulty = _mutate(code, *draw.choice(self.variants))
        return None if _normalise_code(faulty) in (None, _normalise_code(code)) else _mutant(self.path, code, faulty)


def find_places(path: Path) -> list[Place]:
    """Return all positions for faults in a module, in order."""
    tree, results = get_ast(path.read_text()), defaultdict(list)
    for family, operator in list_operators():
        for index, (_, _, position) in enumerate(_positions(tree, operator)):
            results[position, family].append((operator, index))
    return [Place(path, position, family, tuple(item)) for (position, family), item in sorted(results.items())]


def draw_mutants(paths: Iterable[Path], number: int, seed: int) -> list[Mutant]:
    """Return `number` faults of different meaning from random places; 0 returns one at every place."""
    all_places = [place for path in paths for place in find_places(path)]
    shuffled_places = random.Random(seed).sample(all_places, len(all_places))
    mutant_by_place: dict[tuple[Path, str | None], Mutant] = {}
    for place in shuffled_places if number else sorted(shuffled_places, key=lambda place: place.family == "AddNot"):
        mutant = place.mutant(seed)
        if mutant is not None:
            mutant_by_place.setdefault((place.path, _normalise_code(mutant.code)), mutant)
        if 0 < number <= len(mutant_by_place):
            break
    return list(mutant_by_place.values())


def _positions(tree: Any, operator: Any) -> Iterator[tuple[Any, int, Any]]:
    for index, position in enumerate(operator.mutation_positions(tree)):
        yield tree, index, position
    for child in getattr(tree, "children", ()):
        yield from _positions(child, operator)


def _mutate(code: str, operator: Any, occurrence: int) -> str:
    tree = get_ast(code)
    node, index, _ = list(_positions(tree, operator))[occurrence]
    parent = node.parent
    changed_node = operator.mutate(node, index)
    if changed_node is not node:
        place = parent.children.index(node)
        parent.children[place] = changed_node
        changed_node.parent = parent
    return str(tree.get_code())


def _mutant(path: Path, code: str, faulty_code: str) -> Mutant:
    a, b = code.splitlines(), faulty_code.splitlines()
    blocks = [block for block in difflib.SequenceMatcher(None, a, b, False).get_opcodes() if block[0] != "equal"]
    before = " ".join(line.strip() for _, i, j, _, _ in blocks for line in a[i:j])
    return Mutant(path, faulty_code, before, " ".join(line.strip() for _, _, _, i, j in blocks for line in b[i:j]))


@lru_cache(maxsize=8)
def _normalise_code(code: str) -> str | None:
    """Return the syntax tree without annotations, decorators, docstrings and code for type checkers.

    Return None if the code is not valid Python, because `**` before keywords was replaced like a power.
    """
    try:
        tree = _Negated().visit(ast.parse(code))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for name, value in (("annotation", None), ("returns", None), ("decorator_list", [])):
            if hasattr(node, name):
                setattr(node, name, value)
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [item for item in body if not _is_idle(item)]
    return ast.dump(tree)


class _Negated(ast.NodeTransformer):
    """Transform `not a == b` into `a != b`."""

    opposite_operators: ClassVar = {
        ast.Eq: ast.NotEq,
        ast.Is: ast.IsNot,
        ast.In: ast.NotIn,
        ast.Lt: ast.GtE,
        ast.LtE: ast.Gt,
    }

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        comparison, opposite_operators = (
            node.operand,
            {**self.opposite_operators, **{b: a for a, b in self.opposite_operators.items()}},
        )
        if isinstance(node.op, ast.Not) and isinstance(comparison, ast.Compare) and len(comparison.ops) == 1:
            return ast.Compare(comparison.left, [opposite_operators[type(comparison.ops[0])]()], comparison.comparators)
        return node


def _is_idle(node: ast.AST) -> bool:
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
