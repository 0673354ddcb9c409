# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers on the same weights: plain and assisted generation of one session, as one JSON object.

  python3 tools/gpu_checks/assisted.py TARGET DRAFT K DEVICE [NUM_TOKENS]

Both sample at temperature 1 from the whole row, in bfloat16; assisted generation drafts K tokens a round, always.
"""
import json
import sys
import time

import torch
import transformers


def load(folder, device):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.bfloat16)
    return model.to(device).eval()


def main():
    target_folder, draft_folder, k, device = sys.argv[1:5]
    num_tokens = int(sys.argv[5]) if len(sys.argv) > 5 else 64
    target, draft = load(target_folder, device), load(draft_folder, device)
    settings = draft.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = int(k), "constant"
    settings.assistant_confidence_threshold = 0.0
    prompt = (torch.arange(128, device=device) * 7919 + 13).remainder(4000)[None]

    def tokens_per_second(**how):
        rates = []
        for _ in range(4):  # the first one warms up
            start = time.perf_counter()
            reply = target.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=True, temperature=1.0, top_k=0,
                                    max_new_tokens=num_tokens, min_new_tokens=num_tokens, pad_token_id=0, **how)
            if device != "cpu":
                torch.cuda.synchronize()
            rates.append((reply.shape[1] - prompt.shape[1]) / (time.perf_counter() - start))
        return sorted(rates[1:])[1]

    with torch.inference_mode():
        print(json.dumps({"transformers": transformers.__version__, "plain_tokens_per_second": tokens_per_second(),
                          "assisted_tokens_per_second": tokens_per_second(assistant_model=draft)}))


if __name__ == "__main__":
    main()
