"""The thresholds of planning for CPUs, each with its unit and its reason.

Fusion and the kernel families read the thresholds of the backend, so a test or another processor can have
others. The defaults were measured on processors with 1 to 2 MiB of cache for each core, which the thresholds
in bytes refer to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.compilation.fusion.grouping import Grouping


@dataclass(frozen=True, slots=True)
class Heuristics:
    """The thresholds of planning; the defaults suit the processors that Sabir was measured on."""

    # ------------------------------------------------------------ fusion

    most_members: int = 48
    """Expressions of a group, at most: the code of its kernel must stay small."""
    inlined_bytes: int = 2
    """Bytes of an element of a narrow tensor, at most: each reader converts it, and no floats are stored."""
    inlined_steps: int = 16
    """Maps of a scalar that is inlined into each reader, at most."""
    update_tensors: int = 2
    """Tensors that an optimizer reads and updates, at least: a parameter and one tensor of its state."""

    # ------------------------------------------------------------ loops over elements

    short_fold: int = 16
    """Elements of a fold that is too short for vectors: combining the lanes costs more than they save."""
    short_folds: int = 4
    """The same for each of several folds in a kernel: each pass reads strided operands again."""
    folds_together: int = 8
    """Folds across the vectors that are computed together, at most: their accumulators stay in registers."""
    vectors_together: int = 8
    """Adjacent vectors of folds across them that are computed together: lines are then read in order."""
    vector_jobs: int = 2
    """Jobs of so many vectors, at least, so that all threads have some."""

    # ------------------------------------------------------------ operands of products

    few_rows: int = 4
    """Rows up to which a product runs at the speed of memory: it reads its matrix once, without a copy."""
    near_stride: int = 32
    """Stride in elements along `k` of a transposed first operand up to which processors prefetch."""
    direct_rows: int = 512
    """Rows up to which a matrix is read in place: with more, panels are reused so often that packing pays."""
    direct_bytes: int = 1 << 16
    """Bytes of a matrix that is read in place: its rows stay in the cache while blocks of it are copied."""
    unpacked_least: int = 16
    """Steps of `k` in a block of widened weights, at least: each block is a pass over all rows of a job."""
    unpacked_most: int = 128
    """Steps of `k` in a block of widened weights, at most: the block stays in the level 1 cache."""
    widened_bytes: int = 3 << 19
    """Bytes of a panel of 16-bit weights widened to floats, at most: it stays in the cache of a core."""

    # ------------------------------------------------------------ tiles of products

    usual_rows: int = 128
    """Rows for which the tile of a matrix product is chosen if their number is symbolic."""
    window_rows: int = 1024
    """Rows for which the tile of a convolution is chosen if their number is symbolic."""
    unused_columns: float = 0.02
    """Fraction of the columns of a convolution that panels of the usual width may leave unused."""
    unused_matrix_columns: float = 0.1
    """The same for a matrix product: many are bound by memory, so other widths gain less."""
    widths: tuple[tuple[int, float], ...] = ((10, 0.6), (10, 0.86), (7, 0.95), (6, 1.0))
    """For panels of 1, 2, … vectors: the most rows of a tile (each row has a pointer in a register), and the
    fraction of the machine's peak that such tiles were measured to reach."""
    latency: int = 10
    """Multiplications that take as long as the latency of one: a step of a tile costs at least as much."""
    step_overhead: float = 1.5
    """Cost of a step of a tile in addition to its multiplications, in multiplications."""
    large_panel: int = 3 << 17
    """Bytes of a panel, at most: the cache of a core holds it and the next one. Larger ones are divided."""

    # ------------------------------------------------------------ Winograd's algorithms

    winograd_channels: int = 32
    """Channels, and filters, at least: with fewer, the transforms cost more than they save."""
    winograd_tiles: int = 36
    """Tiles of an image: with fewer, reading the transformed filters, which are larger, takes too long."""
    winograd_filters: int = 1 << 16
    """Channels times filters, at most, if the size of the image is symbolic: more suggest a small image."""
    winograd_bytes: int = 3 << 18
    """Bytes of the transformed tiles of a job, at most: they stay in the cache of a core."""
    winograd_job_least: int = 48
    """Tiles of a job, at least: with fewer, filters are read more slowly than they are multiplied."""
    winograd_job_most: int = 128
    """Tiles of a job, at most, so that all threads have jobs."""

    # ------------------------------------------------------------ jobs of threads

    jobs_of_a_core: int = 4
    """Jobs of a product for each core, if it has enough rows: with more, a late thread delays less."""
    job_rows: int = 256
    """Rows of a job of a product: their part of the first operand stays in the cache of a core."""
    job_scores: int = 1 << 16
    """Scores of a job of attention: they stay in the cache of a core."""
    attention_rows: int = 24
    """Rows of a job of attention, at most: they share each read of the keys and values."""
    attention_least_rows: int = 4
    """Rows of each part of a head that threads divide, at least: each part reads all keys and values."""
    tree_rows: int = 512
    """Rows of a job of decision trees, at most."""
    tree_features: int = 1 << 16
    """Features of all rows of a job of decision trees, at most: they stay in the cache of a core."""
    single_work: int = 1 << 19
    """Operations and bytes of a run: with fewer, waking a second thread takes longer than it saves."""
    fine_work: int = 1 << 21
    """Operations of a kernel for each thread, from which a thread has several shares: claims cost little."""

    # ------------------------------------------------------------ windows

    band_bytes: int = 3 << 17
    """Bytes of the intermediate tensors of a band, at most: the cache holds them and the weights."""
    banded_bytes: int = 3 << 18
    """Bytes of results between kernels, for each core, up to which caches hold them without bands."""
    window_places: int = 8
    """Windows that are computed at a time, at most: their accumulators and weights fit into 16 registers."""
    usual_window_places: int = 4
    """Windows that are computed at a time if their number is symbolic."""
    window_products: int = 64
    """Products of groups of integers in the code of a kernel, at most; each is an instruction."""
    shared_window_steps: int = 4
    """Distance in elements of neighbouring windows up to which they share loaded elements."""
    near_window_cost: float = 1.05
    """Ratio to the least cost up to which a number of windows is chosen that suits smaller images better."""
    later_windows: int = 4
    """Ratio of the width of an image to that of later images in a network, which share the kernel."""
    lone_window: int = 3
    """Number of windows computed together that cost as much as one computed alone."""

    # ------------------------------------------------------------ recurrences

    walked_operations: int = 1 << 16
    """Operations of a step of a single row: with fewer, synchronizing threads costs more than it saves."""
    walked_cached_operations: int = 3 << 16
    """Operations of a step for each of several rows, two for each element of the matrices: with fewer, the
    matrices stay in the cache of the core that computes all steps of some rows."""
    walk_operations: int = 1 << 22
    """Operations between which a run can be cancelled: a fraction of a millisecond."""
    walked_rows: int = 16
    """Rows that are assumed for a recurrence if their number is symbolic."""
    independent_sums: int = 8
    """Independent accumulators of a step, which hide the latency of additions."""
    cached_rows: int = 5
    """Rows that use a vector of a matrix while the next one comes from the cache."""
    few_step_rows: int = 2
    """Rows up to which a step has a separate kernel if their number is symbolic."""
    usual_step_rows: int = 32
    """Rows for which the tile of the other kernel of a step is chosen."""
    matrix_step_vectors: int = 4
    """Vectors of columns of matrices that a step updates together: independent accumulators hide latency."""


HEURISTICS = Heuristics()
"""The default thresholds of planning."""


def heuristics_of(grouping: Grouping) -> Heuristics:
    """Return the thresholds of a grouping for CPUs; raises TypeError if they are those of another target."""
    if not isinstance(grouping.heuristics, Heuristics):
        raise TypeError("a grouping for CPUs has the heuristics of CPUs")
    return grouping.heuristics


__all__ = ["HEURISTICS", "Heuristics", "heuristics_of"]
