"""Changing models: new nodes at a place, nodes replaced by graphs, rules applied until none does, passes."""

from sabir.rewrite._builder import DetachedBuilder
from sabir.rewrite._dead import DeadNodes, remove_dead_nodes, remove_unread
from sabir.rewrite._driver import Rule, apply_rules
from sabir.rewrite._passes import Pass, run_passes
from sabir.rewrite._point import InsertionPoint
from sabir.rewrite._replacing import release, replace_outputs
from sabir.rewrite._rewriter import Rewriter

__all__ = [
    "DeadNodes",
    "DetachedBuilder",
    "InsertionPoint",
    "Pass",
    "Rewriter",
    "Rule",
    "apply_rules",
    "release",
    "remove_dead_nodes",
    "remove_unread",
    "replace_outputs",
    "run_passes",
]
