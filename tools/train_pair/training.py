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
    """About U V^T of g = U S V^T [rows, columns]; the quintic's coefficients are the paper's."""
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


def distillation_loss(target, autocast):
    """A loss against the target's whole distribution, given the same windows.

    Forward KL for the first half, which is smooth where the two are far apart;
    then total variation, as 1 - TV is what acceptance is (DistillSpec, Zhou et
    al. 2023, arXiv 2310.08461).
    """
    def loss(logits, inputs, next_tokens, share):
        del next_tokens
        with torch.no_grad(), autocast():
            p = target(inputs).logits.float().flatten(0, 1).log_softmax(-1)
        q = logits.flatten(0, 1).log_softmax(-1)
        if share < 0.5:
            return F.kl_div(q, p, log_target=True, reduction="batchmean")
        return (p.exp() - q.exp()).abs().sum(-1).mean()  # 2 TV
    return loss


@torch.no_grad()
def held_out_loss(model, tokens, options, num_windows):
    """Mean cross entropy in nats a token over windows of full context, or of what there is."""
    model.eval()
    batch = min(8, num_windows)
    source = data.windows(tokens, batch, min(model.shape.context, len(tokens) - 2), seed=7)
    rounds, total = max(1, num_windows // batch), 0.0
    for _ in range(rounds):
        inputs, next_tokens = (t.to(options.device) for t in next(source))
        with torch.autocast(options.device, torch.bfloat16):
            logits = model(inputs)
        total += next_token_loss(logits.float(), inputs, next_tokens, 1.0).item()
    model.train()
    return total / rounds


class Trainer:
    """Trains `model` for a fixed time.

    Windows are half as long as the context for three quarters of it; learning
    rates rise for 100 steps and then fall linearly with the time, to zero.
    """

    def __init__(self, model, tokens, held, options):
        self.model, self.held, self.options = model, held, options
        self.run = torch.compile(model) if options.compile else model
        if options.compile:  # two lengths, each compiled for itself
            torch._dynamo.config.automatic_dynamic_shapes = False
        self.optimizers = make_optimizers(model, options)
        self.rates = [options.matrix_rate, options.vector_rate]
        context = model.shape.context
        self.short = data.windows(tokens, 2 * options.batch, context // 2, seed=1)
        self.full = data.windows(tokens, options.batch, context, seed=2)
        self.log = []
        self.num_steps = self.num_tokens = 0

    def train(self, loss_of, save):
        """Calls `save()` once a minute and at the end; returns the log, one row for each."""
        begin = shown = time.monotonic()
        while (share := (time.monotonic() - begin) / (60 * self.options.minutes)) < 1:
            loss = self._step(loss_of, share)
            if time.monotonic() - shown > 60:
                self._report(begin, num_windows=self.options.held_windows // 3, loss=round(loss, 4))
                save()
                shown = time.monotonic()
        self._report(begin, num_windows=self.options.held_windows)
        save()
        return self.log

    def _step(self, loss_of, share):
        scale = min(1.0, (self.num_steps + 1) / 100) * (1 - share)
        for optimizer, rate in zip(self.optimizers, self.rates):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
        source = self.short if share < 0.75 else self.full
        inputs, next_tokens = (t.to(self.options.device) for t in next(source))
        with torch.autocast(self.options.device, torch.bfloat16):
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
