# SPDX-License-Identifier: Apache-2.0
"""Text that a target writes itself, which is the text that its drafter has to guess."""
import json
import time

import numpy as np
import torch

PROMPT_LENGTHS = (32, 64, 128, 192)  # of the corpus' tokens, before what the target writes
TEMPERATURES = (0.0, 0.7, 1.0, 1.0)  # in turns


def kind_of(turn, length, temperatures):
    """(tokens of the corpus that a row begins with, temperature of the rest): all pairs, in turns."""
    prompt_length = min(PROMPT_LENGTHS[turn % len(PROMPT_LENGTHS)], length // 2)
    return prompt_length, temperatures[turn // len(PROMPT_LENGTHS) % len(temperatures)]


@torch.no_grad()
def write(path, target, tokens, *, minutes, batch, length, temperatures, autocast):
    """Writes `path`, [num_rows, length] uint16 or uint32: the target's continuations of places in `tokens`.

    Each row begins with tokens of the corpus and goes on with the target's own. What is
    there after `minutes` is kept.
    """
    kind = np.uint16 if target.config.vocab_size <= 1 << 16 else np.uint32
    generator = torch.Generator().manual_seed(11)
    torch.manual_seed(12)
    rows = []
    begin = time.monotonic()
    while time.monotonic() - begin < 60 * minutes:
        prompt_length, temperature = kind_of(len(rows), length, temperatures)
        starts = torch.randint(len(tokens) - prompt_length, (batch,), generator=generator)
        prompts = torch.stack([tokens[s:s + prompt_length] for s in starts]).to(target.device)
        with autocast():
            rows.append(_continue(target, prompts, length, temperature).cpu().numpy().astype(kind))
        np.save(path, np.concatenate(rows))
        print(json.dumps(dict(rows=batch * len(rows), tokens=batch * length * len(rows),
                              seconds=round(time.monotonic() - begin))), flush=True)


def _continue(target, prompts, length, temperature):
    """Token by token, with the target's cache; rows go on after an end of text, as a file follows a file."""
    text, step, cache = prompts, prompts, None
    while text.shape[1] < length:
        out = target(step, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, logits = out.past_key_values, out.logits[:, -1].float()
        if temperature == 0:
            step = logits.argmax(-1, keepdim=True)
        else:
            step = torch.multinomial((logits / temperature).softmax(-1), 1)
        text = torch.cat([text, step], 1)
    return text


def rows(path, batch, seed):
    """Endless (inputs, next tokens), each [batch, length - 1] int64, of rows that `write` has written."""
    if not path.exists():
        raise SystemExit(f"{path} does not exist: run `text` before")
    text = torch.from_numpy(np.load(path).astype(np.int64))
    generator = torch.Generator().manual_seed(seed)
    while True:
        for some in torch.randperm(len(text), generator=generator).split(batch):
            yield text[some, :-1], text[some, 1:]
