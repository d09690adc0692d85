"""Changing models: new nodes at a place, nodes replaced by graphs, rules applied until none does, passes."""

from sabir.rewrite._block_sizes import one_size_of_blocks
from sabir.rewrite._body_dims import BodyDimensions, paired
from sabir.rewrite._builder import DetachedBuilder
from sabir.rewrite._constants import constant_node, constant_of
from sabir.rewrite._dead import DeadNodes, remove_dead_nodes, remove_released, remove_unread
from sabir.rewrite._driver import Rule, apply_rules
from sabir.rewrite._functions import Convert, InlineFunctions, splice
from sabir.rewrite._merging import merge_equal
from sabir.rewrite._passes import Pass, run_passes
from sabir.rewrite._point import InsertionPoint, enclosing
from sabir.rewrite._replacing import erase_node, release, replace_outputs
from sabir.rewrite._rewriter import Rewriter
from sabir.rewrite._subgraph_inputs import SeparatedInput, change_ir_version, separate_inputs

__all__ = [
    "BodyDimensions",
    "Convert",
    "DeadNodes",
    "DetachedBuilder",
    "InlineFunctions",
    "InsertionPoint",
    "Pass",
    "Rewriter",
    "Rule",
    "SeparatedInput",
    "apply_rules",
    "change_ir_version",
    "constant_node",
    "constant_of",
    "enclosing",
    "erase_node",
    "merge_equal",
    "one_size_of_blocks",
    "paired",
    "release",
    "remove_dead_nodes",
    "remove_released",
    "remove_unread",
    "replace_outputs",
    "run_passes",
    "separate_inputs",
    "splice",
]
