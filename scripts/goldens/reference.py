"""What transformers computes: losses, gradients and optimizer steps of a flat micro-batch."""

import math

import torch
import transformers

IGNORED = -100


def seeded_weights(model, seed):
    """Unlike an initialisation: large enough that attention is far from uniform and every norm
    weight and bias matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                parameter.copy_(1.0 + 0.2 * noise)
            elif parameter.dim() == 1:
                parameter.copy_(0.3 * noise)
            elif "embed_tokens" in name:
                parameter.copy_(0.7 * noise)
            else:
                parameter.copy_(1.2 * noise / math.sqrt(parameter.shape[1]))


def flat_batch(lengths, vocabulary, masked, generator):
    """The micro-batch as the engine sees it. The last token of a sequence has no target."""
    tokens, positions, targets, starts = [], [], [], [0]
    for length in lengths:
        row = torch.randint(0, vocabulary, (length,), generator=generator)
        target = torch.cat([row[1:], torch.tensor([IGNORED])])
        hidden = torch.rand(length, generator=generator) < masked
        tokens.append(row)
        positions.append(torch.arange(length))
        targets.append(torch.where(hidden, IGNORED, target))
        starts.append(starts[-1] + length)
    flat = lambda parts: torch.cat(parts).to(torch.int32)  # noqa: E731
    return dict(tokens=flat(tokens), positions=flat(positions), targets=flat(targets),
                sequence_starts=torch.tensor(starts, dtype=torch.int32))


def sequences_of(batch):
    starts = batch["sequence_starts"].tolist()
    return [slice(begin, end) for begin, end in zip(starts, starts[1:])]


def flat_logits(model, batch, layout):
    """Logits (rows, V) of the flat batch, by the layout that transformers is given."""
    tokens, positions = batch["tokens"].long(), batch["positions"].long()
    if layout == "packed":  # one row; transformers keeps sequences apart where positions restart
        return model(input_ids=tokens[None], position_ids=positions[None],
                     use_cache=False).logits[0]
    parts = [tokens[span] for span in sequences_of(batch)]
    ids = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(p) for p in parts], batch_first=True)
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    return torch.cat([row[:len(part)] for row, part in zip(logits, parts)])


def loss_sum(logits, batch):
    """Sum over trained targets: cross entropy in f32 as transformers does, added in f64."""
    each = torch.nn.functional.cross_entropy(
        logits.float(), batch["targets"].long(), ignore_index=IGNORED, reduction="none")
    return each.double().sum()


def trained_tokens(batch):
    return int((batch["targets"] != IGNORED).sum())


def relative(a, b, floor=0.0):
    return float((a.double() - b.double()).norm() / max(float(b.double().norm()), floor, 1e-300))


def load_model(folder, attention, dtype=torch.float32):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation=attention)
    return model.train()


def loss_and_gradients(folder, attention, batch, layout):
    model = load_model(folder, attention)
    logits = flat_logits(model, batch, layout)
    loss = loss_sum(logits, batch) / trained_tokens(batch)
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    return float(loss.detach()), gradients, logits.detach()


def global_norm(gradients):
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))


def spread_between(first, second):
    """How far apart two ways of transformers are: what no engine can be asked to undercut."""
    floor = 1e-4 * global_norm(second[1])
    worst = max((relative(first[1][n], second[1][n], floor), n) for n in second[1])
    return dict(loss_relative=abs(first[0] / second[0] - 1.0), gradient_relative=worst[0],
                gradient_name=worst[1])


def decay_groups(named_parameters, weight_decay):
    """The Trainer's rule: biases and norms are not decayed."""
    kept = [p for n, p in named_parameters if n.endswith(("bias", "norm.weight"))]
    decayed = [p for n, p in named_parameters if not n.endswith(("bias", "norm.weight"))]
    return [dict(params=decayed, weight_decay=weight_decay), dict(params=kept, weight_decay=0.0)]


def train(folder, attention, batches, layout, curve, dtype=torch.float32):
    """Losses, norms before clipping and learning rates of every step; and the final weights.

    With modules in bf16 the optimizer holds f32 master weights, and gradients are added up in f32
    over the micro-steps of a window.
    """
    model = load_model(folder, attention, dtype)
    names, modules = zip(*model.named_parameters())
    masters = [p.detach().float().clone().requires_grad_() for p in modules]
    optimizer = torch.optim.AdamW(
        decay_groups(list(zip(names, masters)), curve["weight_decay"]), lr=curve["learning_rate"],
        betas=(curve["beta1"], curve["beta2"]), eps=curve["epsilon"], foreach=False)
    schedule = transformers.get_cosine_schedule_with_warmup(
        optimizer, curve["warmup_steps"], curve["steps"])
    losses, norms, rates, index = [], [], [], 0
    for _ in range(curve["steps"]):
        window = [batches[(index + i) % len(batches)] for i in range(curve["accumulation"])]
        index += curve["accumulation"]
        total = sum(trained_tokens(batch) for batch in window)
        step_loss = 0.0
        for batch in window:
            loss = loss_sum(flat_logits(model, batch, layout), batch) / total
            loss.backward()
            step_loss += float(loss.detach())
            for master, module in zip(masters, modules):
                added = module.grad.float()
                master.grad = added if master.grad is None else master.grad + added
            model.zero_grad()
        norm = torch.nn.utils.clip_grad_norm_(masters, curve["max_grad_norm"])
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for master, module in zip(masters, modules):
                module.copy_(master)
        losses.append(step_loss)
        norms.append(float(norm))
    return losses, norms, rates, {n: m.detach() for n, m in zip(names, masters)}
