"""Statistics of torch's CPU allocator, in the form that scripts/measure_deepspeed.py asks of any allocator.

The counting allocator (cpu_allocator_statistics.cpp) is built beside torch's headers and put in the place of torch's own.
"""

import ctypes
import functools
import pathlib
import subprocess

import torch

HOLDERS = ["rest", "weights", "master", "moments", "gradients", "gradients_f32", "bucket",
           "staging", "gathered", "gather_copy"]


class CpuStatistics:
    """One process's allocator; the library is built in `folder`."""

    def __init__(self, folder):
        at = pathlib.Path(torch.__file__).parent
        library = pathlib.Path(folder) / "cpu_allocator_statistics.so"
        source = pathlib.Path(__file__).with_name("cpu_allocator_statistics.cpp")
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{at / 'include'}",
                        str(source), f"-L{at / 'lib'}", "-lc10", "-o", str(library)], check=True)
        self.calls = ctypes.CDLL(str(library))
        for name in ("live_bytes", "peak_bytes", "foreign_peak_bytes", "peak_block_count"):
            getattr(self.calls, name).restype = ctypes.c_int64
        self.calls.install_statistics()

    def live(self):
        return self.calls.live_bytes()

    def reset(self):
        self.calls.reset_peak()

    def peak(self):
        return self.calls.peak_bytes()

    def more(self):
        return {"foreign": self.calls.foreign_peak_bytes()}

    def mark(self, tensor, holder):
        if tensor is None or tensor.device.type == "meta":
            return
        address = tensor.untyped_storage().data_ptr()
        self.calls.mark(ctypes.c_void_p(address), HOLDERS.index(holder))

    def leave_out_collectives(self):
        """What gloo allocates inside a call is counted as foreign: copies that NCCL does not make."""
        from deepspeed.comm import comm
        for name in dir(comm.cdb):
            inner = getattr(comm.cdb, name)
            is_collective = name.startswith(("all_", "reduce", "broadcast", "inference_"))
            if not is_collective or not callable(inner):
                continue

            @functools.wraps(inner)
            def outer(*words, inner=inner, **named):
                self.calls.set_in_collective(True)
                try:
                    return inner(*words, **named)
                finally:
                    self.calls.set_in_collective(False)
            setattr(comm.cdb, name, outer)

    def at_peak(self):
        """(holder, bytes, origin) of each block that was live at the peak since reset(); origins are not known."""
        count = self.calls.peak_block_count()
        holders, sizes = (ctypes.c_int32 * count)(), (ctypes.c_int64 * count)()
        self.calls.read_peak_blocks(holders, sizes)
        return [(HOLDERS[holder], size, "") for holder, size in zip(holders, sizes)]


def self_test(statistics):
    """Allocations whose live bytes and peak are known from their sizes."""
    start = statistics.live()
    kept = torch.empty(1000)
    assert statistics.live() - start == 4000
    statistics.reset()
    passing = torch.empty(500, dtype=torch.bfloat16)
    statistics.mark(passing, "bucket")
    del passing
    assert statistics.live() - start == 4000 and statistics.peak() - start == 5000
    assert ("bucket", 1000, "") in statistics.at_peak()
    statistics.reset()
    # Both products and their sum are alive at once.
    twice = (kept * 2 + kept * 3).sum()
    assert statistics.peak() - start == 4000 + 3 * 4000, statistics.peak() - start
    del twice
    print("the counter agrees with sizes that are known")
