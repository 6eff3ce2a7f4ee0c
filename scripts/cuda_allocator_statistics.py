"""Statistics of torch's CUDA allocator, in the form that scripts/measure_deepspeed.py asks of any allocator.

The allocator itself knows its peaks. What made one up is read off its history: every block's birth and death with a time.
A block carries the name that it was marked with while it lived; one without a name is told of by the line of Python that
asked for it. Sizes are those asked for; the allocator rounds them up to 512 bytes.
"""

import time

import torch


def now_us():
    return time.time_ns() // 1000


class CudaStatistics:
    """One process's allocator on the current device."""

    def __init__(self):
        self.marks = []  # (address, holder, time)
        self.host = {}   # address to (holder, bytes)
        self.began_us = 0
        torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python")

    def live(self):
        torch.cuda.synchronize()
        return torch.cuda.memory_stats().get("requested_bytes.all.current", 0)

    def reset(self):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.began_us = now_us()
        self.host = {}

    def peak(self):
        torch.cuda.synchronize()
        return torch.cuda.memory_stats().get("requested_bytes.all.peak", 0)

    def mark(self, tensor, holder):
        if tensor is None or tensor.numel() == 0 or tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        if tensor.device.type == "cpu":
            self.host[storage.data_ptr()] = (holder, storage.nbytes())
        else:
            self.marks.append((storage.data_ptr(), holder, now_us()))

    def leave_out_collectives(self):
        """Nothing to leave out: NCCL receives into the tensors that it is given."""

    def more(self):
        """What allocator, driver and kernel say besides: bytes."""
        free, total = torch.cuda.mem_get_info()
        return {"allocated_peak": torch.cuda.max_memory_allocated(),
                "allocated": torch.cuda.memory_allocated(),
                "reserved_peak": torch.cuda.max_memory_reserved(),
                "reserved": torch.cuda.memory_reserved(),
                "device_used": total - free,
                "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0), **resident()}

    def on_host(self):
        """Bytes of tensors on the host that were marked since reset(), by holder."""
        sums = {}
        for holder, size in self.host.values():
            sums[holder] = sums.get(holder, 0) + size
        return sums

    def at_peak(self):
        """(holder, bytes, origin) of each block that was live at the peak since reset()."""
        try:
            trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
            blocks = blocks_at_peak_of(trace, self.began_us)
        except Exception as problem:  # the peak stands without what made it up
            return [("rest", 0, f"no history: {problem!r}")]
        return [(name, block["size"], block["origin"])
                for name, block in zip(named(blocks, self.marks), blocks)]


def blocks_at_peak_of(trace, began_us):
    """Blocks live at the highest sum since `began_us`, each with its life in microseconds."""
    live, total = {}, 0
    peak, at_peak = -1, []  # None: the peak is now
    for event in trace:
        if peak < 0 and event["time_us"] >= began_us:
            peak, at_peak = total, None
        is_death = event["action"] == "free_requested" and event["addr"] in live
        if at_peak is None and is_death:
            at_peak = list(live.values())
        if is_death:
            block = live.pop(event["addr"])
            block["died_us"] = event["time_us"]
            total -= block["size"]
        elif event["action"] == "alloc":
            live[event["addr"]] = {"address": event["addr"], "size": event["size"],
                                   "born_us": event["time_us"], "died_us": None,
                                   "origin": origin_of(event.get("frames", []))}
            total += event["size"]
            if 0 <= peak < total:
                peak, at_peak = total, None
    return at_peak or list(live.values())


def named(blocks, marks):
    """The last name that each block was given while it lived."""
    by_address = {}
    for address, holder, at_us in marks:
        by_address.setdefault(address, []).append((at_us, holder))
    names = []
    for block in blocks:
        name = "rest"
        for at_us, holder in by_address.get(block["address"], []):
            is_dead = block["died_us"] is not None and at_us > block["died_us"]
            if at_us >= block["born_us"] and not is_dead:
                name = holder
        names.append(name)
    return names


def origin_of(frames):
    """The innermost line of DeepSpeed or transformers, else of anything."""
    for frame in frames:
        if "/deepspeed/" in frame["filename"] or "/transformers/" in frame["filename"]:
            return place_of(frame)
    return place_of(frames[0]) if frames else "no Python"


def place_of(frame):
    return f"{frame['filename'].rsplit('/', 1)[-1]}:{frame['line']} {frame['name']}"


def resident():
    """Bytes of this process in the machine's memory, now and at most."""
    names = {"VmRSS:": "resident", "VmHWM:": "resident_peak"}
    with open("/proc/self/status", encoding="utf-8") as file:
        words = [line.split() for line in file]
    return {names[line[0]]: int(line[1]) * 1024 for line in words if line[0] in names}


def self_test():
    """The replay of a history that was written by hand."""
    def event(action, addr, size, at):
        return {"action": action, "addr": addr, "size": size, "time_us": at, "frames": []}
    trace = [event("alloc", 1, 100, 1), event("segment_alloc", 9, 900, 1), event("alloc", 2, 50, 2),
             event("free_requested", 2, 50, 3), event("free_completed", 2, 50, 3),
             event("alloc", 2, 30, 5), event("alloc", 3, 40, 6), event("free_requested", 3, 40, 7),
             event("alloc", 3, 20, 8)]
    blocks = {began: blocks_at_peak_of(trace, began) for began in (0, 8, 9)}
    sizes = {began: sorted(block["size"] for block in at) for began, at in blocks.items()}
    assert sizes == {0: [30, 40, 100], 8: [20, 30, 100], 9: [20, 30, 100]}, sizes
    marks = [(2, "bucket", 2), (2, "master", 9), (3, "weights", 6), (1, "moments", 1)]
    names = [(block["size"], name) for block, name in zip(blocks[0], named(blocks[0], marks))]
    assert sorted(names) == [(30, "master"), (40, "weights"), (100, "moments")], names
    print("the replay of a history agrees with sums made by hand")
