"""A rewrite rule: its pattern, its replacement, its conditions, and the models that prove it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.base import SchemaError, quote
from sabir.patterns._conditions import Condition
from sabir.patterns._pattern import Pattern
from sabir.patterns._replacement import TextReplacement
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Value
    from sabir.patterns._match import Match
    from sabir.rewriting import DetachedBuilder

    PatternSource: TypeAlias = str | Pattern | Callable[..., Any]
    Build: TypeAlias = Callable[[DetachedBuilder, Match], Value | tuple[Value, ...] | None]
    Where: TypeAlias = str | Callable[[Match], bool]


@dataclass(frozen=True, eq=False)
class RewriteRule:
    """Calls that match `pattern` become `replacement`, where all conditions in `where` hold.

    `pattern` is a text, a Python function (see `Pattern`), or a list of alternatives with the same outputs.
    `replacement` is a text, or a function of a builder and the match that returns the value, or a tuple of
    them, for the outputs of the pattern. It returns None, or raises Unconvertible with the reason, where the
    rule does not apply. A condition is a text (`rank(x) == 2`) or a function of the match.

    A value inside of the pattern must have no other reader, unless the rule is `shared`. Where the rule is
    `exact`, both sides have the same bits for all inputs, NaN and infinities included; else they differ by
    rounding. `examples` are models that it changes, `near_misses` similar ones that it leaves alone: texts of
    models, or of the nodes of a graph from `x`, float[6,2], to `y`. `since` is the operator set of the
    default domain that the replacement needs, `until` the first one in which the pattern is no valid call.
    `imports` are the operator sets of other domains that the replacement calls, 1 where they are not listed.

    Raises ParseError for a text that has errors, SchemaError for a rule without a meaning.

    >>> rule = sabir.RewriteRule('swish', 'y = Mul (x, Sigmoid (x))', 'y = Swish (x)')
    >>> rule.patterns[0].anchor.op
    'Mul'
    """

    name: str
    pattern: PatternSource | Sequence[PatternSource]
    replacement: str | Build
    where: Sequence[Where] = ()
    says: str = ""
    exact: bool = field(default=False, kw_only=True)
    shared: bool = field(default=False, kw_only=True)
    examples: Sequence[str] = field(default=(), kw_only=True)
    near_misses: Sequence[str] = field(default=(), kw_only=True)
    since: int = field(default=1, kw_only=True)
    until: int | None = field(default=None, kw_only=True)
    imports: Mapping[str, int] = field(default_factory=dict[str, int], kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise SchemaError("a rewrite rule needs a name")
        outputs = {pattern.output_names for pattern in self.patterns}
        if len(outputs) > 1 and any(len(names) > 1 for names in outputs):
            raise SchemaError(f"rule {quote(self.name)}: all alternatives must have the same outputs")
        if isinstance(self.where, str):
            raise SchemaError(f"rule {quote(self.name)}: the conditions are a list")
        _ = self.build, self.conditions

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The alternatives of the pattern."""
        if isinstance(self.pattern, (str, Pattern)) or callable(self.pattern):
            return (_pattern(self.pattern),)
        if not self.pattern:
            raise SchemaError(f"rule {quote(self.name)} has no pattern")
        return tuple(map(_pattern, self.pattern))

    @cached_property
    def build(self) -> Build:
        """The function that builds the replacement."""
        if isinstance(self.replacement, str):
            return TextReplacement.parse(self.replacement, self.patterns)
        return self.replacement

    @cached_property
    def conditions(self) -> tuple[Condition | Callable[[Match], bool], ...]:
        """The conditions, read."""
        names = frozenset[str]().union(*(pattern.names for pattern in self.patterns))
        references = frozenset[str]().union(*(pattern.references for pattern in self.patterns))
        return tuple(Condition.parse(w, names, references) if isinstance(w, str) else w for w in self.where)

    @cached_property
    def domains(self) -> Mapping[str, int]:
        """The operator sets of other domains that the replacement calls."""
        called = self.build.domains if isinstance(self.build, TextReplacement) else ()
        return {**dict.fromkeys(called, 1), **self.imports}

    def require(self, match: Match) -> None:
        """Raise Unconvertible, with the reason, for a match for which a condition does not hold."""
        for condition in self.conditions:
            if isinstance(condition, Condition):
                condition.require(match)
            elif not condition(match):
                name = getattr(condition, "__name__", "of the rule")
                raise Unconvertible(f"the condition {name} does not hold")


def _pattern(source: PatternSource) -> Pattern:
    if isinstance(source, Pattern):
        return source
    return Pattern.parse(source) if isinstance(source, str) else Pattern.build(source)
