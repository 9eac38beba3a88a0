"""What a piece of work takes in a process of its own: time, processor, memory; printed as one JSON object.

``python prepare_measure.py ARTIFACT RAW OUT JOBS`` measures a preparation.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

__all__ = ["measured", "status"]


def status(key: str) -> int:
    """Bytes that the system counts of this process, such as ``VmRSS``."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key + ":"))


def measured(work: Callable[[], object]) -> None:
    """Does the work, and prints seconds, processor seconds, and the most resident memory above what there was before."""
    base = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again
    began, processor = time.perf_counter(), time.process_time()
    found = work()
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    predicted = getattr(found, "predicted_peak_bytes", None)
    peak = status("VmHWM") - base
    print(json.dumps({"seconds": seconds, "processor": processor, "peak": peak, "predicted": predicted}))


if __name__ == "__main__":
    import relaxir as rx

    executable = rx.load(sys.argv[1])
    measured(lambda: executable.prepare(sys.argv[2], sys.argv[3], jobs=int(sys.argv[4])))
