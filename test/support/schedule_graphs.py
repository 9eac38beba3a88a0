"""Graphs of tasks to schedule: random small ones with the lowest peak of all their orders, and large regular ones."""

from __future__ import annotations

import random

from relaxir.dialect.analysis.task_order import Graph, Task

__all__ = ["breadth_first", "chain_with_joins", "live", "optimum", "predecessors", "random_graph", "running"]

_SIZES = (0, 1, 2, 3, 5, 8, 13, 20, 40)


def random_graph(seed: int, most: int) -> Graph:
    """A graph with chains, trees and sharing in random proportions.

    Some values are there from the start, some are kept, some tasks hold more inside.
    """
    rng = random.Random(seed)
    tasks: list[Task] = []
    sizes = [rng.choice(_SIZES) for _ in range(3)] if seed % 4 == 1 else []
    sharing, count = rng.random(), rng.randrange(2, most + 1)
    for i in range(count):
        is_source = not sizes or rng.random() < 0.3
        operands = (
            () if is_source else tuple(dict.fromkeys(_operand(rng, sizes, sharing) for _ in range(rng.choice((1, 1, 2, 3)))))
        )
        made = 0 if operands and rng.random() < 0.2 else rng.choice((1, 1, 1, 2))
        results = tuple(range(len(sizes), len(sizes) + made))
        sizes += [rng.choice(_SIZES) for _ in results]
        after = (rng.randrange(i),) if i and rng.random() < 0.05 else ()
        tasks.append(Task(operands, results, rng.choice((0, 0, 0, 0, 0, 30)), after))
    kept = frozenset(v for v in range(len(sizes)) if seed % 3 == 0 and rng.random() < 0.15)
    return Graph(tuple(tasks), tuple(sizes), kept)


def _operand(rng: random.Random, sizes: list[int], sharing: float) -> int:
    return rng.randrange(len(sizes)) if rng.random() < sharing else rng.randrange(max(0, len(sizes) - 3), len(sizes))


def predecessors(graph: Graph) -> list[set[int]]:
    producer = {v: i for i, t in enumerate(graph.tasks) for v in t.results}
    return [{producer[v] for v in t.operands if v in producer} | set(t.after) for t in graph.tasks]


def optimum(graph: Graph) -> int:
    """The lowest peak of all orders, by sets of tasks done."""
    before = [sum(1 << p for p in preds) for preds in predecessors(graph)]
    best = {0: live(graph, 0)}
    for _ in graph.tasks:
        following: dict[int, int] = {}
        for done, peak in best.items():
            for i in range(len(graph.tasks)):
                if not done >> i & 1 and not before[i] & ~done:
                    height = max(peak, live(graph, done) + running(graph, i))
                    following[done | 1 << i] = min(height, following.get(done | 1 << i, height))
        best = following
    (peak,) = best.values()
    return peak


def running(graph: Graph, i: int) -> int:
    return max(sum(graph.sizes[v] for v in graph.tasks[i].results), graph.tasks[i].inner)


def live(graph: Graph, done: int) -> int:
    """Bytes of values made, or there from the start, and wanted later, after a set of tasks."""
    wanted = {v for i, t in enumerate(graph.tasks) if not done >> i & 1 for v in t.operands} | graph.kept
    missing = {v for i, t in enumerate(graph.tasks) if not done >> i & 1 for v in t.results}
    return sum(graph.sizes[v] for v in wanted - missing)


def breadth_first(weights: int, read: int, cast: int, shared: int = 0) -> Graph:
    """All reads, all casts (with one shared value, if that has bytes), all transposes, all writes."""
    sizes = [read] * weights + [cast] * weights * 2 + [shared]
    use = (3 * weights,) if shared else ()
    tasks = [Task(results=use)] if shared else []
    tasks += [Task(results=(i,)) for i in range(weights)]
    tasks += [Task((i, *use), (weights + i,)) for i in range(weights)]
    tasks += [Task((weights + i,), (2 * weights + i,)) for i in range(weights)]
    tasks += [Task((2 * weights + i,)) for i in range(weights)]
    return Graph(tuple(tasks), tuple(sizes))


def chain_with_joins(length: int) -> Graph:
    """One deep chain; every fifth link takes in another read, all of which come first."""
    sizes = [8] * (length + 1) + [8] * (length // 5)
    tasks = [Task(results=(length + 1 + i,)) for i in range(length // 5)] + [Task(results=(0,))]
    for i in range(length):
        other = (length + 1 + i // 5,) if i % 5 == 0 else ()
        tasks.append(Task((i, *other), (i + 1,)))
    return Graph((*tasks, Task((length,))), tuple(sizes))
