"""What the compiler makes of a model between lowering and kernels: expressions, groups, the builder of a plan."""

import numpy as np

import sabir
from sabir.compilation.backends.cpu.building import PlanBuilder
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.engine.worth import PlanCost
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.prepare import prepare
from sabir.compilation.fusion.grouping import Grouping
from sabir.compilation.native import target_named
from sabir.compilation.passes import run_pipeline
from sabir.compilation.protocol import Request
from sabir.compilation.settings import DEFAULT
from sabir.opsets import STANDARD

CORES = 4  # that plans share work for
HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


class Middle:
    """A model, lowered and grouped; a size is that of its symbol in `sizes`, else the declared one."""

    def __init__(self, text, target="x86-64-v3", **sizes):
        self._lower(sabir.parse(text if text.startswith("<") else HEADER + text), target, sizes)

    @classmethod
    def of(cls, model, target="x86-64-v3", **sizes):
        """The same of a model."""
        made = cls.__new__(cls)
        made._lower(model, target, sizes)
        return made

    def _lower(self, model, target, sizes):
        types = [value.type for value in model.graph.inputs]
        feeds = [np.zeros([sizes.get(str(d), d) for d in t.shape], t.element.dtype) for t in types]
        pattern, found = pattern_of(types, feeds)
        self.prepared = prepare(model, pattern, found, STANDARD, newer_opsets=False)
        self.lowered = lower(self.prepared, found)
        self.lowered.expressions = run_pipeline(self.lowered.expressions, PIPELINE, verify=True)
        self.names = {v.name: v.slot for v in self.prepared.program.values}
        self.results = list(self.prepared.plan.results)
        self.request = Request(self.lowered, found, DEFAULT, PlanCost(), lambda *_: None, lambda _: None)
        self.grouping = Grouping(self.lowered, families(), HEURISTICS)
        self.grouping.run(self.results)
        self.builder = PlanBuilder(self.request, self.grouping, target_named(target), CORES, HEURISTICS)

    def __getitem__(self, name):
        """The expression of a value."""
        return self.lowered.expressions[self.names[name]]

    def group(self, name):
        """The group that computes a value."""
        return self.grouping.of[self[name]]

    def groups(self):
        """The groups, each by its kind and the operations of its members."""
        return [
            f"{g.kind}: {' '.join(getattr(x, 'op', type(x).__name__.lower()) for x in g.members)}"
            for g in self.grouping.groups
            if g.kind != "gone"
        ]

    def plan(self):
        """The plan."""
        return self.builder.run()
