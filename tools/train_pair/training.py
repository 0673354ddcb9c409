# SPDX-License-Identifier: Apache-2.0
"""The training loop, its optimizers, and the two losses."""
import dataclasses
import json
import time

import torch
import torch.nn.functional as F

from . import data


@dataclasses.dataclass(frozen=True)
class Options:
    minutes: float
    batch: int  # windows of full context a step
    matrix_rate: float = 0.02  # learning rate of Muon
    vector_rate: float = 0.004  # learning rate of AdamW
    held_windows: int = 96  # windows of the last held-out loss
    device: str = "cpu"
    compile: bool = False
    # How many steps of four are on text that the target wrote (written.py).
    written_steps: int = 0


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised by a Newton-Schulz iteration (Jordan et al. 2024)."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.05):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                buffer = self.state[p].setdefault("momentum", torch.zeros_like(p))
                buffer.mul_(group["momentum"]).add_(p.grad)
                update = orthogonalise(p.grad.add(buffer, alpha=group["momentum"]))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


def orthogonalise(g):
    """Approximates U V^T of g = U S V^T [rows, columns]; the quintic's coefficients are the paper's."""
    tall = g.shape[0] > g.shape[1]
    x = (g.T if tall else g).bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        s = x @ x.T
        x = 3.4445 * x + (-4.7750 * s + 2.0315 * s @ s) @ x
    return (x.T if tall else x).float()


def make_optimizers(model, options):
    """Muon for the matrices, AdamW for embedding and norms."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim < 2 or "embed" in n]
    return [Muon(matrices, lr=options.matrix_rate),
            torch.optim.AdamW(rest, lr=options.vector_rate, betas=(0.9, 0.95), weight_decay=0.0)]


def next_token_loss(logits, inputs, next_tokens, share):
    """Cross entropy in nats a token; logits [batch, length, vocab] float32."""
    del inputs, share
    return F.cross_entropy(logits.flatten(0, 1), next_tokens.flatten())


# Acceptance counts at all temperatures; near 0 it is whether the first choices are equal.
ACCEPTANCE_TEMPERATURES = (1.0, 0.3)
CHUNK_ROWS = 64  # whose laws stay in a CPU core's cache


def autocast(device):
    """Matrix products in bfloat16 where that is faster: float32 is on a CPU without AMX."""
    is_faster = device != "cpu" or torch.cpu._is_amx_tile_supported()
    return torch.autocast(device, torch.bfloat16, enabled=is_faster)


def distillation_loss(target, device, kl_share):
    """A loss against the target's whole distribution, given the same windows.

    Forward KL for the first `kl_share`, which is smooth where the two are far
    apart; then total variation, as 1 - TV is what acceptance is (DistillSpec,
    Zhou et al. 2023, arXiv 2310.08461).
    """
    def loss(logits, inputs, next_tokens, share):
        del next_tokens
        with torch.no_grad(), autocast(device):
            p = target(inputs).logits.float().flatten(0, 1)
        return RowLoss.apply(logits.flatten(0, 1), p, divergence if share < kl_share else distance)
    return loss


class RowLoss(torch.autograd.Function):
    """The mean over rows of a loss between two laws, given as logits [rows, vocab].

    `of_rows` gives its sum over some rows and the sum's derivative by the first logits. Few
    rows at a time, as softmaxes of all of them would go to memory and back a dozen times,
    which takes as long as the models do.
    """

    @staticmethod
    def forward(ctx, q_logits, p_logits, of_rows):
        gradient = torch.empty_like(q_logits)
        total = q_logits.new_zeros((), dtype=torch.float64)
        chunk_rows = CHUNK_ROWS if q_logits.device.type == "cpu" else len(q_logits)
        for begin in range(0, len(q_logits), chunk_rows):
            rows = slice(begin, begin + chunk_rows)
            value, gradient[rows] = of_rows(q_logits[rows], p_logits[rows])
            total += value
        ctx.save_for_backward(gradient.div_(len(q_logits)))
        return (total / len(q_logits)).to(q_logits.dtype)

    @staticmethod
    def backward(ctx, scale):
        return ctx.saved_tensors[0] * scale, None, None


def divergence(q_logits, p_logits):
    """KL(p || q), summed over rows, and its derivative by q's logits."""
    log_q, log_p = q_logits.log_softmax(-1), p_logits.log_softmax(-1)
    p = log_p.exp()
    return (p * (log_p - log_q)).sum(dtype=torch.float64), log_q.exp_().sub_(p)


def distance(q_logits, p_logits):
    """2 TV, the mean of that at each of ACCEPTANCE_TEMPERATURES, summed over rows, and its derivative."""
    value, gradient = 0.0, torch.zeros_like(q_logits)
    for temperature in ACCEPTANCE_TEMPERATURES:
        q = (q_logits / temperature).softmax(-1)
        difference = q - (p_logits / temperature).softmax(-1)
        value += difference.abs().sum(dtype=torch.float64)
        sign = difference.sign_()
        mean = (q * sign).sum(-1, keepdim=True)
        gradient += q.mul_(sign.sub_(mean)).div_(temperature)
    count = len(ACCEPTANCE_TEMPERATURES)
    return value / count, gradient.div_(count)


@torch.no_grad()
def held_out_loss(model, tokens, options, num_windows):
    """Mean cross entropy in nats a token over windows of full context, or of what there is."""
    model.eval()
    batch = min(8, num_windows)
    source = data.windows(tokens, batch, min(model.shape.context, len(tokens) - 2), seed=7)
    rounds, total = max(1, num_windows // batch), 0.0
    for _ in range(rounds):
        inputs, next_tokens = (t.to(options.device) for t in next(source))
        with autocast(options.device):
            logits = model(inputs)
        total += next_token_loss(logits.float(), inputs, next_tokens, 1.0).item()
    model.train()
    return total / rounds


class Trainer:
    """Trains `model` for a fixed time.

    Windows are half as long as the context for three quarters of it; learning
    rates rise for 100 steps and then fall linearly with the time, to zero.
    """

    def __init__(self, model, tokens, held, options, written=None):
        self.model, self.held, self.options = model, held, options
        self.run = torch.compile(model) if options.compile else model
        if options.compile:  # two lengths, each compiled for itself
            torch._dynamo.config.automatic_dynamic_shapes = False
        self.optimizers = make_optimizers(model, options)
        self.rates = [options.matrix_rate, options.vector_rate]
        context = model.shape.context
        self.short = data.windows(tokens, 2 * options.batch, context // 2, seed=1)
        self.full = data.windows(tokens, options.batch, context, seed=2)
        self.written = written
        self.log = []
        self.num_steps = self.num_tokens = 0

    def train(self, loss_of, save):
        """Calls `save()` once a minute and at the end; returns the log, one row for each."""
        begin = shown = time.monotonic()
        losses = []
        while (share := (time.monotonic() - begin) / (60 * self.options.minutes)) < 1:
            losses.append(self._step(loss_of, share))
            if time.monotonic() - shown > 60:
                self._report(begin, num_windows=self.options.held_windows // 3,
                             loss=round(sum(losses) / len(losses), 4))
                save()
                shown = time.monotonic()
                losses = []
        self._report(begin, num_windows=self.options.held_windows)
        save()
        return self.log

    def _step(self, loss_of, share):
        scale = min(1.0, (self.num_steps + 1) / 100) * (1 - share)
        for optimizer, rate in zip(self.optimizers, self.rates):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
        source = self.short if share < 0.75 else self.full
        if self.num_steps % 4 < self.options.written_steps:
            source = self.written
        inputs, next_tokens = (t.to(self.options.device) for t in next(source))
        with autocast(self.options.device):
            logits = self.run(inputs)
        loss = loss_of(logits.float(), inputs, next_tokens, share)
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.num_steps += 1
        self.num_tokens += inputs.numel()
        return loss.item()

    def _report(self, begin, num_windows, **more):
        held = held_out_loss(self.model, self.held, self.options, max(1, num_windows))
        self.log.append(dict(steps=self.num_steps, tokens=self.num_tokens,
                             seconds=round(time.monotonic() - begin),
                             held_out_loss=round(held, 4), **more))
        print(json.dumps(self.log[-1]), flush=True)
