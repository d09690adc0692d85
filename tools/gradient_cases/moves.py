"""What moves elements: gathering, scattering, selection, padding, layout."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

DATA, UPDATES = between(-2, 2, 3, 4), between(-3, 3, 2, 3)
PLACES = [[0, 2, 1], [2, 2, 0]]  # (1, 0) is written twice along axis 0
MIXED = [[1.0, 2.0], [0.5, -1.0]]
_REDUCED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _gather_nd(x, i):
    return x[tuple(i.movedim(-1, 0))]


def _scatter_nd(x, i, u):
    return x.index_put(tuple(i.movedim(-1, 0)), u)


def _pad(mode, pads, torch_mode, torch_pads, shape=(1, 2, 4, 5)):
    return case(f"Pad {mode} {pads}", f'y = Pad <mode = "{mode}"> (x, p)',
                lambda x, p: functional.pad(x, torch_pads, torch_mode), x=shape, p=pads)  # fmt: skip


def _reversed(x, n):
    return torch.cat([torch.cat([x[: n[b], b].flip(0), x[n[b] :, b]])[:, None] for b in range(len(n))], 1)


def _one_hot(i, d, v):
    return torch.where(functional.one_hot(i, int(d)).bool(), v[1], v[0])


CASES = [
    case("Concat", "y = Concat <axis = 1> (a, b, c)", lambda *v: torch.cat(v, 1), a=(2, 1), b=(2, 3), c=(2, 2)),
    case("Split", "y, z = Split <axis = 1> (x, sizes)", lambda x, s: x.split(s.tolist(), 1), outputs="y z",
         x=(2, 5), sizes=[2, 3]),
    case("Slice", "y = Slice (x, s, e, a, p)", lambda x, *_: x[1:, 0:4:2], x=(3, 5), s=[1, 0], e=[3, 4], a=[0, 1], p=[1, 2]),
    case("Slice backwards", "y = Slice (x, s, e, a, p)", lambda x, *_: x.flip(1)[:, ::2], x=(2, 5), s=[-1], e=[-9], a=[1], p=[-2]),
    case("Gather", "y = Gather <axis = 1> (x, i)", lambda x, i: x[:, i], x=(2, 4, 2), i=[[0, 3], [3, 1]]),
    case("Gather rows", "y = Gather (x, i)", lambda x, i: functional.embedding(i, x), x=(5, 3), i=[1, 1, 4]),
    case("Gather negative", "y = Gather <axis = -1> (x, i)", lambda x, i: x[:, i], x=(2, 4), i=-1),
    case("GatherElements", "y = GatherElements <axis = 0> (x, i)", lambda x, i: x.gather(0, i), x=(3, 4), i=PLACES),
    case("GatherND", "y = GatherND (x, i)", _gather_nd, x=(3, 4, 2), i=[[0, 1], [2, 3], [0, 1]]),
    case("GatherND batches", "y = GatherND <batch_dims = 1> (x, i)",
         lambda x, i: torch.stack([_gather_nd(a, b) for a, b in zip(x, i, strict=True)]), x=(2, 3, 2), i=[[[2], [0]], [[1], [1]]]),
    case("ScatterElements", "y = ScatterElements <axis = 1> (x, i, u)", lambda x, i, u: x.scatter(1, i, u),
         x=(2, 4), i=[[0, 2, 1], [3, 1, 0]], u=(2, 3)),
    *(
        case(f"ScatterElements {r}", f'y = ScatterElements <axis = 0, reduction = "{r}"> (x, i, u)',
             lambda x, i, u, n=n: x.scatter_reduce(0, i, u, n), x=DATA, i=PLACES, u=UPDATES)
        for r, n in _REDUCED.items()
    ),
    *(
        case(f"ScatterElements {r} ties", f'y = ScatterElements <axis = 0, reduction = "{r}"> (x, i, u)',
             lambda x, i, u, n=n: x.scatter_reduce(0, i, u, n), x=MIXED, i=[[0, 0], [0, 1]], u=[[1.0, 2.0], [1.0, -1.0]])
        for r, n in _REDUCED.items() if r in {"max", "min"}
    ),
    case("ScatterElements mul zeros", 'y = ScatterElements <axis = 0, reduction = "mul"> (x, i, u)',
         lambda x, i, u: x.scatter_reduce(0, i, u, "prod"), x=[[2.0, 0.0], [3.0, 1.0]], i=[[0, 0], [0, 1]],
         u=[[0.0, 4.0], [5.0, 0.0]]),
    case("ScatterND", "y = ScatterND (x, i, u)", _scatter_nd, x=(3, 4), i=[[0, 1], [2, 3]], u=(2,)),
    case("ScatterND rows", "y = ScatterND (x, i, u)", _scatter_nd, x=(3, 4), i=[[2], [0]], u=(2, 4)),
    case("ScatterND add", 'y = ScatterND <reduction = "add"> (x, i, u)',
         lambda x, i, u: x.index_put((i[..., 0],), u, accumulate=True), x=(3, 2), i=[[2], [0], [2]], u=(3, 2)),
    *(
        case(f"ScatterND {r}", f'y = ScatterND <reduction = "{r}"> (x, i, u)',
             lambda x, i, u, n=n: x.index_reduce(0, i[:, 0], u, n), x=DATA, i=[[2], [0]], u=between(-3, 3, 2, 4))
        for r, n in [("mul", "prod"), ("max", "amax"), ("min", "amin")]
    ),
    case("TensorScatter", "y = TensorScatter (x, u, i)", lambda x, u, i: torch.stack(
        [torch.cat([a[:n], b, a[n + 2 :]]) for a, b, n in zip(x, u, i, strict=True)]), x=(2, 4, 2), u=(2, 2, 2), i=[1, 2]),
    case("TopK", "y, i = TopK (x, k)", lambda x, k: x.topk(2)[0], x=between(-1, 1, 2, 5), k=[2]),
    case("TopK least", "y, i = TopK <axis = 0, largest = 0> (x, k)", lambda x, k: x.topk(2, 0, largest=False)[0],
         x=between(-1, 1, 3, 2), k=[2]),
    _pad("constant", [0, 0, 1, 2, 0, 1, 0, 3], "constant", (2, 3, 1, 0, 0, 1)),
    _pad("constant", [0, 0, -1, 2, 0, 0, 1, -1], "constant", (2, -1, -1, 1)),
    _pad("reflect", [0, 0, 1, 2, 0, 0, 3, 4], "reflect", (2, 4, 1, 3)),
    _pad("edge", [0, 0, 1, 2, 0, 0, 0, 6], "replicate", (2, 6, 1, 0)),
    _pad("wrap", [0, 0, 1, 2, 0, 0, 3, 4], "circular", (2, 4, 1, 3)),
    case("Pad with a value", "y = Pad (x, p, v)", lambda x, p, v: torch.cat([v.expand(2, 2), x, v.expand(2, 1)], 1),
         x=(2, 3), p=[0, 2, 0, 1], v=0.5),
    case("Expand", "y = Expand (x, s)", lambda x, s: x.expand(4, 2, 3), x=(2, 1), s=[4, 1, 3]),
    case("Tile", "y = Tile (x, r)", lambda x, r: x.tile(2, 3), x=(2, 2), r=[2, 3]),
    case("Transpose", "y = Transpose <perm = [2, 0, 1]> (x)", lambda x: x.permute(2, 0, 1), x=(2, 3, 2)),
    case("Reshape", "y = Reshape (x, s)", lambda x, s: x.reshape(2, -1), x=(2, 3, 2), s=[0, -1]),
    case("Flatten", "y = Flatten <axis = 2> (x)", lambda x: x.flatten(0, 1), x=(2, 3, 2)),
    case("Squeeze", "y = Squeeze (x, a)", lambda x, a: x.squeeze(1), x=(2, 1, 2), a=[1]),
    case("Unsqueeze", "y = Unsqueeze (x, a)", lambda x, a: x[None, :, None], x=(2,), a=[0, 2]),
    case("Trilu lower", "y = Trilu <upper = 0> (x, k)", lambda x, k: x.tril(-1), x=(2, 3, 3), k=-1),
    case("Trilu upper", "y = Trilu (x)", torch.triu, x=(3, 4)),
    case("Compress", "y = Compress <axis = 1> (x, c)", lambda x, c: x[:, c], x=(2, 3), c=[True, False, True]),
    case("Compress flat", "y = Compress (x, c)", lambda x, c: x.flatten()[:4][c], x=(2, 3), c=[True, False, True, True]),
    case("OneHot", "y = OneHot (i, d, v)", _one_hot, i=[[0, 2], [1, 1]], d=3, v=(2,)),
    case("ReverseSequence", "y = ReverseSequence <time_axis = 0, batch_axis = 1> (x, n)", _reversed, x=(4, 3), n=[1, 3, 4]),
    case("DepthToSpace CRD", 'y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)', lambda x: functional.pixel_shuffle(x, 2),
         x=(1, 8, 2, 1)),
    case("DepthToSpace DCR", "y = DepthToSpace <blocksize = 2> (x)", lambda x: x.reshape(1, 2, 2, 2, 2, 1).permute(
        0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 2), x=(1, 8, 2, 1)),
    case("SpaceToDepth", "y = SpaceToDepth <blocksize = 2> (x)", lambda x: x.reshape(1, 2, 1, 2, 2, 2).permute(
        0, 3, 5, 1, 2, 4).reshape(1, 8, 1, 2), x=(1, 2, 2, 4)),
    case("CenterCropPad", "y = CenterCropPad <axes = [0, 1]> (x, s)", lambda x, s: functional.pad(x[1:3], (1, 1)), x=(4, 3), s=[2, 5]),
    case("Range", "y = Range (a, b, d)", lambda a, b, d: a + d * torch.arange(3), a=0.5, b=2.9, d=1.0),
    case("Sequences", "q = SplitToSequence <axis = 1> (x, s) i = Constant <value_int = 1> () e = SequenceAt (q, i) "
         "r = SequenceInsert (q, e) y = ConcatFromSequence <axis = 1> (r)", lambda x, s: torch.cat([x, x[:, 2:4]], 1),
         x=(2, 5), s=2),
]  # fmt: skip
