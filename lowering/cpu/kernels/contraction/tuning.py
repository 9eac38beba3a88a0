"""The measured constants that plans of contractions are made with: one table, an entry per instruction set.

Each constant says what was measured, on which processor, and the time with it over the time without.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....target import Target

__all__ = ["LINE", "TUNINGS", "Tuning", "tuning_of"]

#: Bytes that one fetch brings into a cache.
LINE = 64


@dataclass(frozen=True)
class Tuning:
    """The constants of an instruction set.

    Attributes:
        accumulators: sums in flight, which hide the latency of a fused multiply-add: of 4 cycles, two begin in each.
        integer_sums: the same of several panels of integers, where a step of k is at most a line of each; 0: there is one.
        many_registers: with so many vector registers, eight sums, eight words and their masks fit. Two rows of four bits, Zen
            4: 1.17 times as much is read a second, one row: 1.07.
        wide_sums: the same of several panels where a step of k is more than a line of each, of dot products of bf16, and of
            several rows of integers: memory gives more to several streams. 0: there is one panel, or what ``accumulators`` are
            for. One row of bf16, Zen 4: 0.94 of what memory gives, with several panels 0.86.
        unroll: steps of k in an iteration. 128 rows of 768 x 3072 f32, Zen 3: 0.94 of the time of one step.
        group_unroll: the same for narrow weights: two rows of nibbles are one load, eight rows are a line.
        dot_unroll: pairs of rows in an iteration: as many rows as ``unroll``.
        dot_stream_bytes: bytes of weights in an iteration of few rows, since prefetchers follow few loads of short strides
            best. One row of bf16, Zen 4: 0.94 of what memory gives, with 512 bytes 0.86.
        integer_unroll: vectors of rows, or words, in an iteration.
        integer_short: groups of at most so many of these need no loop. 64 rows of 2048 x 2048 int8 in groups of 64, Zen 4:
            with 16 instead of 8, 1.3 of the time.
        fetch_bytes: how far ahead of a step of k packed weights are fetched, to the second level of caches. 8 rows of 4096 x
            2048, Zen 4: 0.82 of the time of 1 KiB to the first level for f32, 0.87 for bf16; with AVX2 code of 6 rows 0.80 and
            0.72. A page has 4 KiB: at its end the processor's own prefetching begins anew.
        fetch_busy: multiply-adds per line from which on that pays; with fewer the processor reads far enough ahead itself. Zen
            4, time without over time with: 4 rows of f32 (4 per line) 0.71, 3 rows of bf16 (6) 1.18, 4 rows of AVX2 code (8)
            1.42.
        line_tile: rows and vectors of a tile of so few rows that reads rows of such matrices. Attention of one token, 32 heads,
            Cascade Lake, of 8 heads of 4096 values of 64 and of 128 elements, and of 32: 0.95 of the time of two vectors.
        dot_fetch_rows, dot_fetch_bytes: rows from which on, and how far ahead, dot products of bf16 fetch. 4096 x 4096, Zen 4:
            8 rows take 0.95 of the time of 2 KiB; 4 rows take 1.1 of the time that they take without.
        integer_fetch_rows, integer_fetch_bytes: the same for products of integers.
        byte_fetch_bytes: the same for convolutions of bytes, whose filters come from the last cache, or from memory. ResNet-50
            of eight bits, Zen 5: 0.93 of the time without, MobileNetV2 0.97; 8 and 32 KiB take 1.0 of the time.
        stage_operations: a factor of so many operations is computed once per panel, where rows fill more than a tile. 64 rows
            of 4096 x 4096, Zen 3, in times of f32: int4 with zero points 1.0, and 1.7 where each of 11 tiles computes it; int8
            per channel (2 operations) 1.0 and 1.1. A cast, of one operation, takes 0.9 as it is.
        short_step, short_tiles: with steps of at most so many operations, so many tiles compute the factor themselves. 8 rows
            of 4096 x 4096 int8, Zen 3: 0.75 of the time.
        stage_bytes: what may be staged: 16 columns and 4096 rows of f32, half of a level-2 cache.
        block_depth, block_longer: steps of k in a block, and more steps than these have blocks. Zen 3: 2048 x 2048 x 2048
            takes 0.85 of the time without blocks, 1024 x 2048 x 1024 0.94, 128 x 3072 x 768 0.98; of shorter sums, 128 rows of
            768 steps take 1.07, and 1024 x 1024 x 1024 takes 1.0.
        block_even: blocks are of similar depth, a multiple of this.
        block_bytes: of a panel that is read as it is, at most so many in a block: half of level 1. 197 x 3072 x 768 f32,
            Cascade Lake, one thread: 0.95 of the time of 256 steps of 32 columns, which are all of it; 64 x 4096 x 4096 0.94.
        block_rows: rows of a block at most. Blocks are of similar height: 12 products of 197 x 768 x 3072 by two threads, Zen
            4: 55.9 ms, with blocks of 128 rows 69.4 ms.
        block_panels: panels of a block; the first number that gives ``few_blocks`` blocks for threads to share, or the last.
        copy_panels: from so many panels of a block on, rows of the left factor are copied for them; from half of these on
            where the right factor is computed. Cascade Lake, one thread, time with by time without, each with the panels that
            are best: 3000 x 5120 x 1024 f32 0.92, of 5072 instead of 5120 steps 0.97, 512 x 4096 x 4096 bf16 0.87, int4 0.91.
            With 8 panels: 197 x 3072 x 768 f32 1.05, int4 of 64 x 4096 x 4096 0.96; with 4, int4 of 128 x 2048 x 5504 1.04.
        block_tiles: rows of so many tiles have no blocks: few tiles read each part of the weight.
        part_rows, part_left: rows of a part, or as many as have so many elements of the left factor. With parts, Zen 4, over
            the time without: ResNet-50 of 8 images 0.97 with one thread; DenseNet-121 with two threads 0.97, and 0.81 where
            these share no cache. Of few steps of k (12544 x 16 x 96) parts of 64 rows take 1.3 of the time, as the processor
            sees no stream in what they write; of 1024, as ``part_left`` has it, 1.1.
        part_right: elements of a right factor that stays in the last cache. Cascade Lake, one thread, with by without: 3136 x
            256 x 1024 f32 0.88, 3000 x 512 x 2048 0.90, 512 x 768 x 3072 0.95, with parts of 64 rows 0.88, 0.90, 0.97. One
            that comes from memory (128 x 768 x 50257, parts of 64 rows) takes 1.07.
        winograd_bytes: what transformed tiles of Winograd's filtering and their sums may take of the stack: a quarter of level
            2. 64 channels of 56 x 56 elements, 256 of 14 x 14, Zen 4: 512 KiB and 1 MiB take 1.0 of the time.
        winograd_tiles, winograd_stack: so many tiles there are even where that takes more than ``winograd_bytes``, up to these
            bytes: all filters are read for each of such units. 512 channels of 8 images of 7 x 7, Cascade Lake, one thread:
            0.6 of the time of 8 tiles; 16 take 0.7, 48 and 64 as long as 32.
        matrix_least, matrix_least_bf16: rows from which on tile registers multiply bytes, and bf16. Emerald Rapids, one thread,
            with by without them: 768 x 768 int8 of 4, 8 and 16 rows 1.01, 0.90, 0.63; bf16 of 2, 4, 8 and 16 rows 0.83, 0.66,
            0.34, 0.20; 4096 x 4096 int8 of 4 and 8 rows 1.05, 1.08, bf16 of 1, 2 and 8 rows 0.94, 0.75, 0.51.
        matrix_uneven: tiles of so many rows less than two registers have are taken where they are all of that height: none has
            another configuration, and all stand in one loop.
        matrix_line: rows of a line that are worth a register; a tile of eight rows in vectors takes eight times as long.
        split_rows, split_columns, split_steps: rows, columns and steps of k from which on f32 are split for tile registers.
            Emerald Rapids, one thread, speed with over that without, while no other thread is on the core, and while one with
            tile registers is: 768 x 768 of 32 rows 0.87, 0.86, 48 rows 1.01, 0.95, 64 rows 1.05, 1.07, 80 rows 1.10, 1.09;
            2048 x 2048 of 48 and 64 rows 0.89 and 1.11, 1.01 and 1.22; 512 rows of 768 x 96 1.11, 1.13, of 192 x 512 1.00,
            1.09; 784 x 128 x 512 0.95, 1.04.
        split_rows_short: the same of right factors that are one part: bf16, and integers with scales of groups. int4 in groups
            of 32, 4096 x 4096 of 12, 16, 24 and 64 rows, one thread: 1.1, 1.39, 1.35, 1.77; of groups of 128, 128 rows: 2.1.
        split_block_rows, split_block_depth: rows and steps of k of a block of these at most. With twice as many rows 512 x 2048
            x 2048 has 0.94 of the speed, 1024 x 1024 x 1024 0.95, 197 x 768 x 3072 1.00; with 256 steps 512 x 2048 x 2048 has
            0.98, 128 x 768 x 3072 0.99, with 1024 steps 0.95 and 1.00.
        split_panels, split_blocks: panels of one at most; fewer where there are fewer blocks than ``split_blocks`` for threads
            to share. 128 x 768 x 768 with 8, 12, 16 and 24 panels: 1.28, 1.40, 1.37, 1.44.
        split_bytes: what a block may take of the stack: most of level 2.
        sums_bytes: what the sums of a block may take of the stack.
        shared_iterations: a loop of fewer iterations is not shared by threads: one inside of it may be.
        work: multiplications that count as one element operation of work.
    """

    accumulators: int = 8
    integer_sums: int = 8
    wide_sums: int = 0
    many_registers: int = 32
    unroll: int = 4
    group_unroll: int = 8
    dot_unroll: int = 2
    dot_stream_bytes: int = 128
    integer_unroll: int = 4
    integer_short: int = 8
    fetch_bytes: int = 8192
    fetch_busy: int = 5
    line_tile: int = 4
    dot_fetch_rows: int = 5
    dot_fetch_bytes: int = 4096
    integer_fetch_rows: int = 3
    integer_fetch_bytes: int = 2048
    byte_fetch_bytes: int = 16384
    stage_operations: int = 2
    short_step: int = 3
    short_tiles: int = 3
    stage_bytes: int = 1 << 18
    block_depth: int = 256
    block_longer: int = 1024
    block_even: int = 8
    block_rows: int = 128
    block_bytes: int = 1 << 14
    block_panels: tuple[int, ...] = (32, 16, 8, 4)
    copy_panels: int = 16
    few_blocks: int = 16
    block_tiles: int = 3
    part_rows: int = 128
    part_left: int = 1 << 14
    part_right: int = 1 << 23
    winograd_bytes: int = 1 << 18
    winograd_tiles: int = 32
    winograd_stack: int = 5 << 18
    matrix_least: int = 8
    matrix_least_bf16: int = 2
    matrix_uneven: int = 8
    matrix_line: int = 4
    split_rows: int = 64
    split_rows_short: int = 12
    split_columns: int = 96
    split_steps: int = 192
    split_block_rows: int = 128
    split_block_depth: int = 512
    split_panels: int = 16
    split_blocks: int = 8
    split_bytes: int = 3 << 19
    sums_bytes: int = 1 << 20
    shared_iterations: int = 4
    work: int = 4


# Zen 5, one thread, a Llama (2048 x 4) that decodes. Fetches of 6 KiB ahead: int4 as three rows of bytes 0.81 of the time of
# 2 KiB, with 4 KiB 0.87. One panel and fetches from one row on: int4 of rows as bytes 0.78 of the time of four panels without
# fetches, which run into the panel beside; int8 0.96.
_AVX512 = Tuning(integer_sums=0, integer_fetch_rows=1, integer_fetch_bytes=6144)
# They do not read far enough ahead themselves. Emerald Rapids, one thread, a Llama (2048 x 4) that decodes: with several
# panels, f32 0.78 of the time, bf16 0.90, int4 as three rows of bytes 0.88; with fetches from one row on, bf16 0.71, int8 of
# rows as bytes 0.93, int4 0.94, int8 of rows in f32 0.94, int4 0.89. 2 and 4 rows of 2048 x 5632 f32, with both: 0.70 and 0.61.
_AMX = Tuning(
    wide_sums=16, fetch_busy=2, dot_fetch_rows=1, dot_fetch_bytes=8192, integer_fetch_rows=1, integer_fetch_bytes=4096
)

#: By :attr:`Target.instruction_set`, and of processors with tile registers. The measurements above are of AVX2 and AVX-512; SSE
#: and NEON have the same numbers until someone measures there.
TUNINGS = {
    "amx": _AMX,
    "avx512": _AVX512,
    "avx2": Tuning(),
    "sse": Tuning(),
    "neon": Tuning(),
}


def tuning_of(target: Target) -> Tuning:
    """The constants of a target."""
    return TUNINGS["amx" if target.has("amx-tile") else target.instruction_set]
