"""Streams, events and graphs. Work runs as late as CUDA permits, so that a missing synchronisation shows in the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

__all__ = ["Event", "Graph", "Queues", "Stream"]


@dataclass(eq=False)
class _Work:
    """Something in a queue; numbers say what was queued earlier."""

    number: int
    run: Callable[[], None]


@dataclass
class Graph:
    """What was captured, in an order in which it may run."""

    work: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


@dataclass(eq=False)
class Stream:
    """A queue.

    Attributes:
        is_blocking: whether it and the default stream wait for each other.
        capture: the graph that its work goes to, None when it runs.
    """

    is_blocking: bool = True
    queue: deque[_Work] = field(default_factory=deque[_Work])
    capture: Graph | None = None


@dataclass(eq=False)
class Event:
    """A place in a stream; ``time`` is how many instructions of lanes the device had executed there."""

    stream: Stream | None = None
    work: _Work | None = None
    capture: Graph | None = None
    time: int | None = None


class Queues:
    """All streams of a device."""

    def __init__(self, clock: Callable[[], int]):
        self.clock = clock
        self.default = Stream()
        self.streams = [self.default]
        self._numbers = count()

    def create(self, is_blocking: bool) -> Stream:
        """A further stream."""
        self.streams.append(Stream(is_blocking))
        return self.streams[-1]

    def enqueue(self, stream: Stream, run: Callable[[], None]) -> _Work:
        """Puts work at the end of a stream, or into the graph that it captures."""
        work = _Work(next(self._numbers), run)
        if stream.capture is not None:
            stream.capture.work.append(run)
        else:
            stream.queue.append(work)
        return work

    def drain(self, stream: Stream, last: _Work | None = None) -> None:
        """Runs the work of a stream, to its end or up to ``last``, which is done already when it is not in the queue."""
        if last is not None and last not in stream.queue:
            return
        while stream.queue:
            work = stream.queue[0]
            self._drain_before(stream, work.number)
            if stream.queue and stream.queue[0] is work:  # it may have been run by what waited for it
                stream.queue.popleft()
                work.run()
            if work is last:
                return

    def _drain_before(self, stream: Stream, number: int) -> None:
        """The default stream and blocking ones wait for what was queued earlier in the other."""
        if stream is self.default:
            others = [s for s in self.streams if s.is_blocking and s is not stream]
        else:
            others = [self.default] if stream.is_blocking else []
        for other in others:
            while other.queue and other.queue[0].number < number:
                other.queue.popleft().run()

    def drain_all(self) -> None:
        """Runs all work."""
        for stream in self.streams:
            self.drain(stream)

    def forget(self) -> None:
        """Drops all work: the device is not what it was."""
        for stream in self.streams:
            stream.queue.clear()

    # ------------------------------------------------------------------------------------------------------------ events
    def record(self, event: Event, stream: Stream) -> None:
        """Marks a place in a stream."""

        def mark() -> None:
            event.time = self.clock()

        event.stream, event.capture, event.time = stream, stream.capture, None
        event.work = self.enqueue(stream, mark)

    def wait(self, stream: Stream, event: Event) -> None:
        """What comes next in the stream is behind the event; a captured event takes the stream into its capture."""
        if event.capture is not None:
            stream.capture = event.capture
            return
        source, work = event.stream, event.work
        if source is not None:
            self.enqueue(stream, lambda: self.drain(source, work))

    def synchronize(self, event: Event) -> None:
        """Runs what the event stands behind."""
        if event.stream is not None and event.time is None:
            self.drain(event.stream, event.work)

    # ------------------------------------------------------------------------------------------------------------ graphs
    def end_capture(self, stream: Stream) -> Graph:
        """The graph of a capture, of all streams that have joined it."""
        graph = stream.capture
        assert graph is not None
        for other in self.streams:
            if other.capture is graph:
                other.capture = None
        return graph

    def launch(self, graph: Graph, stream: Stream) -> None:
        """Puts a graph's work into a stream."""
        for run in graph.work:
            self.enqueue(stream, run)
