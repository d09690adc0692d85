"""Changing models: new nodes at a place, nodes replaced by graphs, rules applied until none does, passes."""

from sabir.rewriting._accumulators import StackAccumulators
from sabir.rewriting._block_sizes import one_size_of_blocks
from sabir.rewriting._body_dims import BodyDimensions, paired
from sabir.rewriting._builder import DetachedBuilder
from sabir.rewriting._constants import constant_node, constant_of, data_of_node, evaluated
from sabir.rewriting._dead import DeadNodes, remove_dead_nodes, remove_released, remove_unread
from sabir.rewriting._driver import Rule, apply_rules
from sabir.rewriting._functions import Convert, InlineFunctions, splice
from sabir.rewriting._merging import merge_equal
from sabir.rewriting._passes import Pass, run_passes
from sabir.rewriting._point import InsertionPoint, enclosing, graph_of
from sabir.rewriting._replacing import erase_node, release, replace_outputs
from sabir.rewriting._rewriter import Rewriter
from sabir.rewriting._subgraph_inputs import SeparatedInput, change_ir_version, separate_inputs

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
    "StackAccumulators",
    "apply_rules",
    "change_ir_version",
    "constant_node",
    "constant_of",
    "data_of_node",
    "enclosing",
    "erase_node",
    "evaluated",
    "graph_of",
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
