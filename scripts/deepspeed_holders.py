"""Names blocks of memory after what DeepSpeed holds them for: weights, master, moments, gradients, bucket, ..."""

import functools


class Marker:
    """Gives blocks their holders, at the moments when DeepSpeed can be asked for them."""

    def __init__(self, statistics, engine, stage):
        self.statistics, self.engine, self.stage = statistics, engine, stage
        optimizer = engine.optimizer
        if stage == 0:
            pass  # all that it holds is there between the phases
        elif stage == 3:
            coordinator = optimizer.parameter_offload.get_param_coordinator()
            self.after(coordinator, "fetch_sub_module", self.gathered)
            import deepspeed.runtime.zero.partition_parameters as parts
            self.gather_handles(parts)
        else:
            self.after(optimizer, "setup_buckets", self.buckets)
            self.after(optimizer, "reduce_ipg_grads", self.gradients)
            self.before(optimizer, "process_gradients",
                        lambda param, *_: statistics.mark(param.grad, "gradients"))
        self.state()

    def after(self, owner, name, act):
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def outer(*words, **named):
            result = inner(*words, **named)
            act()
            return result
        setattr(owner, name, outer)

    def before(self, owner, name, act):
        inner = getattr(owner, name)

        @functools.wraps(inner)
        def outer(*words, **named):
            act(*words)
            return inner(*words, **named)
        setattr(owner, name, outer)

    def gather_handles(self, parts):
        statistics = self.statistics

        class Handle(parts.AllGatherCoalescedHandle):
            def __init__(self, *words, **named):
                super().__init__(*words, **named)
                for partition in self.partitions:
                    statistics.mark(partition, "gather_copy")
        parts.AllGatherCoalescedHandle = Handle

    def gathered(self):
        for parameter in self.engine.module.parameters():
            if parameter.data.numel() <= 1 or parameter.ds_status.name != "AVAILABLE":
                continue
            whole, shard = parameter.data.untyped_storage(), parameter.ds_tensor.untyped_storage()
            if whole.data_ptr() != shard.data_ptr():  # else a view of it: one rank
                self.statistics.mark(parameter.data, "gathered")

    def buckets(self):
        for bucket in self.engine.optimizer.ipg_buckets.values():
            buffers = bucket.buffer if isinstance(bucket.buffer, list) else [bucket.buffer]
            for buffer in buffers:
                self.statistics.mark(buffer, "bucket")

    def gradients(self):
        optimizer = self.engine.optimizer
        self.statistics.mark(getattr(optimizer, "grads_in_partition", None), "gradients")
        for kept in (optimizer.averaged_gradients, optimizer.all_grad_tensors):
            for tensors in kept.values():
                for tensor in tensors or []:
                    self.statistics.mark(tensor, "gradients")

    def state(self):
        mark, optimizer = self.statistics.mark, self.engine.optimizer
        for parameter in self.engine.module.parameters():
            mark(parameter.ds_tensor if self.stage == 3 else parameter.data, "weights")
            mark(parameter.grad, "gradients")
        masters = getattr(optimizer, ("fp32_groups_flat", "single_partition_of_fp32_groups",
                                      "single_partition_of_fp32_groups",
                                      "fp32_partitioned_groups_flat")[self.stage])
        for master in masters:
            mark(master, "master")
            mark(master.grad, "gradients_f32")
        for held in optimizer.optimizer.state.values():
            for name, tensor in held.items():
                if name != "step":
                    mark(tensor, "moments")
        if self.stage == 0:
            return
        self.buckets()
        if self.stage == 3:
            self.gathered()
            mark(getattr(optimizer, "grad_partitions_flat_buffer", None), "gradients")
            mark(getattr(optimizer, "lp_param_buffer", None), "weights")
        else:
            self.gradients()
            for name in ("temp_grad_buffer_for_cpu_offload", "temp_grad_buffer_for_gpu_offload"):
                mark(getattr(optimizer, name, None), "staging")
            for tensor in getattr(optimizer, "param_buffer_of_bit16_for_cpu_offload_groups", []):
                mark(tensor, "staging")
            for tensor in getattr(optimizer, "accumulated_grads_in_cpu", {}).values():
                mark(tensor, "staging")
