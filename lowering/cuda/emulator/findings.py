"""What the emulator reports: a kernel that does what it must not, and PTX that it cannot run."""

from __future__ import annotations

from ....dialect.errors import RelaxError

__all__ = ["KINDS", "Finding", "PtxError"]

#: What can be found, and what each means.
KINDS = {
    "alignment": "an address that is no multiple of what is accessed",
    "async": "a group of cp.async or bulk copies that nothing commits or waits for",
    "barrier": "a barrier used with numbers of threads that do not fit, or left by some of its threads",
    "bounds": "an access outside of every buffer, or of the one that it should be in",
    "deadlock": "threads that wait for what never comes",
    "divergence": "an instruction of whole warps that only some of their threads reach",
    "launch": "a launch that the device or the kernel does not permit",
    "mbarrier": "an mbarrier that is not initialised, or whose arrivals, bytes or phases do not add up",
    "proxy": "data written by threads and read by the asynchronous proxy without fence.proxy.async",
    "race": "two accesses of shared memory, or of global memory by two blocks, without an order between them",
    "registers": "more registers than a multiprocessor has, after setmaxnreg",
    "tensor map": "a tensor map that is none, or does not fit the copy",
    "timeout": "more instructions than the limit",
    "trap": "the kernel executed trap",
    "uninitialised": "a read of memory or of a register that was never written",
    "wgmma": "wgmma without its fence, commit or wait, or accumulators touched in between",
}


class PtxError(RelaxError):
    """PTX that the emulator does not run: what is no PTX, not known to it, or meant for a newer target."""


class Finding(RelaxError):  # noqa: N818 (it is what the kernel did, not what went wrong here)
    """What a kernel did wrong.

    Attributes:
        kind: a key of :data:`KINDS`.
        kernel: name of the kernel.
        line: line of the PTX text, 0 where there is none.
    """

    def __init__(self, kind: str, message: str, kernel: str = "", line: int = 0, text: str = "", place: str = ""):
        assert kind in KINDS, kind
        where = f" in {kernel}" if kernel else ""
        code = f", line {line} of its ptx: {text}" if line else ""
        super().__init__(f"{kind}{where}: {message}{code}{f' ({place})' if place else ''}")
        self.kind, self.kernel, self.line = kind, kernel, line
