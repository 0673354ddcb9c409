# SPDX-License-Identifier: Apache-2.0
"""Held-out losses and acceptance of a pair, through transformers in float32."""
import torch
import torch.nn.functional as F

from . import data

TEMPERATURES = (0.0, 0.7, 1.0)


@torch.no_grad()
def held_out_loss(model, tokens, context, num_batches):
    """Mean cross entropy in nats a token, batches of 4 windows."""
    source = data.windows(tokens, 4, context, seed=7)
    total = 0.0
    for _ in range(num_batches):
        inputs, next_tokens = (t.to(model.device) for t in next(source))
        logits = model(inputs).logits
        total += F.cross_entropy(logits.flatten(0, 1), next_tokens.flatten()).item()
    return round(total / num_batches, 4)


@torch.no_grad()
def acceptance(target, drafter, prompts, new_tokens, temperature):
    """Mean chance that a drafted token is accepted, on text that the target writes.

    prompts [num_prompts, length] int64. Gives the share of equal
    argmaxes at temperature 0, else 1 - TV = sum of min(p, q), the chance of the ratio test.
    """
    sampling = dict(do_sample=False)
    if temperature:
        sampling = dict(do_sample=True, temperature=temperature, top_k=0, top_p=1.0)
    text = target.generate(
        prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=new_tokens,
        min_new_tokens=new_tokens, pad_token_id=0, **sampling)
    written = slice(prompts.shape[1] - 1, -1)  # the rows that chose the new tokens
    p, q = (model(text).logits[:, written] for model in (target, drafter))
    vocab = min(p.shape[-1], q.shape[-1])  # heads may be padded differently
    p, q = p[..., :vocab], q[..., :vocab]
    if temperature == 0:
        return (p.argmax(-1) == q.argmax(-1)).float().mean().item()
    p, q = (p / temperature).softmax(-1), (q / temperature).softmax(-1)
    return torch.minimum(p, q).sum(-1).mean().item()


def measure(target, drafter, tokens, context, num_prompts, length):
    """All figures of report.json; prompts and continuations are `length` tokens each."""
    torch.manual_seed(3)
    starts = torch.randint(len(tokens) - 2 * length - 1, (num_prompts,))
    prompts = torch.stack([tokens[s:s + length] for s in starts]).to(target.device)
    figures = {"held_loss_target": held_out_loss(target, tokens, context, 8),
               "held_loss_drafter": held_out_loss(drafter, tokens, context, 8)}
    for temperature in TEMPERATURES:
        value = acceptance(target, drafter, prompts, length, temperature)
        figures[f"acceptance_T{temperature}"] = round(value, 4)
    return figures
