"""CUDA graphs of an entry: launches are recorded when shapes and memory of a call come again, and then replayed at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from .device import Device

__all__ = ["Graphs"]

# Combinations that are remembered. A graph of 300 launches takes about 1 MB, of which the driver's part is on the device.
_KEPT = 64

_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may allocate meanwhile


class Graphs:
    """The graphs of one entry by what its calls depend on: sizes, addresses, the stream.

    The first call of a kind runs as it is, for one that never comes again is not worth a graph. The second one is recorded.
    """

    def __init__(self, device: Device):
        self._device = device
        self._known: OrderedDict[object, int | None] = OrderedDict()

    def run(self, key: object, stream: int, launch: Callable[[], int]) -> int:
        """Makes a call's launches on a stream.

        Args:
            key: what they depend on.
            stream: where; not the default stream, which nothing can be recorded on.
            launch: makes them one by one; a status other than 0 says that it did not.

        Returns:
            The status.
        """
        if key not in self._known:
            status = launch()
            if status == 0:
                self._keep(key, None)
            return status
        self._known.move_to_end(key)
        graph = self._known[key]
        if graph is None:
            status, graph = self._recorded(stream, launch)
            if status:
                return status
            self._known[key] = graph
        self._device.driver.call("cuGraphLaunch", graph, stream)
        return 0

    def _recorded(self, stream: int, launch: Callable[[], int]) -> tuple[int, int]:
        driver = self._device.driver
        with driver.inside():
            driver.call("cuStreamBeginCapture_v2", stream, _THREAD_LOCAL)
            try:
                status = launch()
            finally:
                graph = driver.captured(stream)
        try:
            return status, 0 if status else driver.made("cuGraphInstantiateWithFlags", graph, 0)
        finally:
            driver.call("cuGraphDestroy", graph)

    def _keep(self, key: object, graph: int | None) -> None:
        self._known[key] = graph
        if len(self._known) > _KEPT:
            _, oldest = self._known.popitem(last=False)
            self._destroy(oldest)

    def _destroy(self, graph: int | None) -> None:
        if graph:
            self._device.give_back("cuGraphExecDestroy", graph)

    def __del__(self) -> None:
        for graph in self._known.values():
            self._destroy(graph)
