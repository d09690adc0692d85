"""The thresholds by which plans for CPUs are made, each with its unit and its reason.

A backend has one value of them, which fusion and the families of kernels read: so a test, or another
processor, has other ones. Bytes are compared with a cache of 1 to 2 MiB for each core, which the processors
have on which these numbers were measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.compilation.fusion.grouping import Grouping


@dataclass(frozen=True, slots=True)
class Heuristics:
    """The thresholds of planning; the defaults are those of the processors that Sabir was measured on."""

    # ------------------------------------------------------------ fusion

    most_members: int = 48
    """Expressions of a group: the code of its kernel must stay small."""
    inlined_bytes: int = 2
    """Bytes of an element of a narrow tensor, which each reader widens instead of reading floats."""
    inlined_steps: int = 16
    """Operations of a scalar that each reader computes for itself."""
    update_tensors: int = 2
    """Tensors that an optimizer reads and changes: a parameter, and at least one that it keeps for it."""

    # ------------------------------------------------------------ loops over elements

    short_fold: int = 16
    """Elements of a fold: a vector along so few is combined more slowly than it is filled."""
    short_folds: int = 4
    """Elements of each of several folds in a kernel: their passes read again what has gaps."""

    # ------------------------------------------------------------ operands of products

    few_rows: int = 4
    """Rows up to which a product runs at the speed of memory: it reads its matrix once, without a copy."""
    near_stride: int = 32
    """Elements from step to step of `k` in a transposed first operand, which processors still fetch ahead."""
    direct_rows: int = 512
    """Rows up to which a matrix is read in place: more read a panel so often that packing it costs little."""
    direct_bytes: int = 1 << 16
    """Bytes of a matrix that is read in place: its rows stay in the cache while blocks of it are copied."""
    unpacked_least: int = 16
    """Steps of `k` in a block of widened weights, at least: each block is a pass over all rows of a job."""
    unpacked_most: int = 128
    """Steps of `k` in a block of widened weights, at most: the block waits in the nearest cache."""
    widened_bytes: int = 3 << 19
    """Bytes of a panel of 16-bit weights widened to floats: it stays in the cache of a core."""

    # ------------------------------------------------------------ tiles of products

    usual_rows: int = 128
    """Rows for which the tile of a matrix product is chosen where their number is symbolic."""
    window_rows: int = 1024
    """Rows for which the tile of a convolution is chosen where their number is symbolic."""
    unused_columns: float = 0.02
    """Part of the columns of a convolution that panels of the usual width may leave unused."""
    unused_matrix_columns: float = 0.1
    """The same of a matrix product: many of these read memory, where other widths gain less."""
    widths: tuple[tuple[int, float], ...] = ((10, 0.6), (10, 0.86), (7, 0.95), (6, 1.0))
    """By vectors of a panel, from 1 on: rows of a tile at most, each with a pointer, and the part of the peak
    of the machine that such tiles were measured to reach."""
    latency: int = 10
    """Multiplications of a step of a tile: fewer wait for each other."""
    step_overhead: float = 1.5
    """What a step of a tile costs beside its multiplications, in multiplications."""
    large_panel: int = 3 << 17
    """Bytes of a panel that the cache of a core has room for beside the next one; larger ones are divided."""

    # ------------------------------------------------------------ Winograd's algorithms

    winograd_channels: int = 32
    """Channels, and filters: with fewer, the transforms cost what they save in multiplications."""
    winograd_tiles: int = 36
    """Tiles of an image: with fewer, the transformed filters, which are larger, take longer to be read."""
    winograd_filters: int = 1 << 16
    """Channels times filters where the size of the image is symbolic: more belong mostly to small images."""
    winograd_bytes: int = 3 << 18
    """Bytes of the transformed tiles of a job: they stay in the cache of a core."""
    winograd_job_least: int = 48
    """Tiles of a job, at least: with fewer, filters are read more slowly than they are multiplied."""
    winograd_job_most: int = 128
    """Tiles of a job, at most, so that all threads have jobs."""

    # ------------------------------------------------------------ jobs of threads

    jobs_of_a_core: int = 4
    """Jobs into which a product is divided for each core, where it has the rows: late threads cost less."""
    job_rows: int = 256
    """Rows of a job of a product: their part of the first operand stays in the cache of a core."""
    job_scores: int = 1 << 16
    """Scores of a job of attention: they stay in the cache of a core."""
    attention_rows: int = 24
    """Rows of a job of attention, which read keys and values together."""
    tree_rows: int = 512
    """Rows of a job of decision trees."""
    tree_features: int = 1 << 16
    """Features of the rows of a job of decision trees: they stay in the cache of a core."""
    single_work: int = 1 << 19
    """Operations and bytes of a run: with fewer, waking a second thread takes longer than it saves."""
    fine_work: int = 1 << 21
    """Operations of a kernel for each thread that take so long that claims of several shares cost little."""

    # ------------------------------------------------------------ windows

    band_bytes: int = 3 << 17
    """Bytes between the kernels of a band: the cache of a core has room for them beside the weights."""
    banded_bytes: int = 3 << 18
    """Bytes of results between kernels, for each core: up to so many stay in the caches without bands."""
    window_places: int = 8
    """Windows that are combined at a time: as many vectors and the weights fit into 16 registers."""
    usual_window_places: int = 4
    """Windows that are combined at a time where their number is symbolic."""
    window_products: int = 64
    """Products of groups of integers in the code of a kernel, each an instruction."""
    shared_window_steps: int = 4
    """Elements between neighbouring windows up to which they share what they read."""
    near_window_cost: float = 1.05
    """Part of the least cost that a number of windows may have which suits smaller images better."""
    later_windows: int = 4
    """How many times smaller the later images of a network are, which the same kernel should suit."""
    lone_window: int = 3
    """Windows of a group that cost as much as one that is combined alone."""

    # ------------------------------------------------------------ recurrences

    walked_operations: int = 1 << 16
    """Operations of a step of one row: threads that meet after each step cost as much."""
    walked_cached_operations: int = 3 << 16
    """Operations of a step of a row, two for each element of matrices: these stay in the cache of a core."""
    walk_operations: int = 1 << 22
    """Operations between which a run can be cancelled: a fraction of a millisecond."""
    walked_rows: int = 16
    """Rows of a recurrence where their number is symbolic."""
    independent_sums: int = 8
    """Sums of a step under way together, which hide the latency of additions."""
    cached_rows: int = 5
    """Rows that use a vector of a matrix while the next one comes from the cache."""
    few_step_rows: int = 2
    """Rows up to which a step has a separate kernel where their number is symbolic."""
    usual_step_rows: int = 32
    """Rows for which the other kernel of a step is made where their number is symbolic."""
    matrix_step_vectors: int = 4
    """Vectors of columns of matrices that steps update together, whose sums are under way at once."""


HEURISTICS = Heuristics()
"""The thresholds that plans are made by, unless a backend has others."""


def heuristics_of(grouping: Grouping) -> Heuristics:
    """Return the thresholds of a grouping for CPUs; raises TypeError for one of another target."""
    if not isinstance(grouping.heuristics, Heuristics):
        raise TypeError("a grouping for CPUs has the heuristics of CPUs")
    return grouping.heuristics


__all__ = ["HEURISTICS", "Heuristics", "heuristics_of"]
