# SPDX-License-Identifier: Apache-2.0
"""Text files to token files: corpus, tokenizer, held-out split, windows, prompts."""
import hashlib
import json
import pathlib
import random
import sys
import sysconfig

import numpy as np

BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
# The split pattern of Llama 3's tokenizer.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def standard_library(max_files=None):
    """The standard library of the running Python: {path within it: text}.

    Debian's python3 packages leave its tests out, two thirds of the text; a
    Python built from source has them.
    """
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    paths = [p for p in sorted(root.rglob("*.py"))
             if not {"site-packages", "dist-packages"} & set(p.relative_to(root).parts)]
    return read_texts({p.relative_to(root).as_posix(): p for p in paths}, max_files)


def text_files(paths, max_files=None):
    """The files named, and all files below the folders named: {path: text}."""
    named = {}
    for path in map(pathlib.Path, paths):
        if not path.exists():
            raise SystemExit(f"--corpus: {path} does not exist")
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        named.update({p.as_posix(): p for p in files})
    return read_texts(named, max_files)


def read_texts(named_paths, max_files=None):
    """The first `max_files` that are UTF-8; files in other encodings are left out."""
    texts = {}
    for name, path in named_paths.items():
        if max_files is not None and len(texts) == max_files:
            break
        try:
            texts[name] = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def split(texts):
    """(training texts, held-out texts): about one file in 50, by hash of its name.

    The hash keeps the split the same when files are added or removed. At least
    one file is held out: the one of the lowest hash.
    """
    if len(texts) < 2:
        raise SystemExit(f"the corpus has {len(texts)} readable file(s); it needs two, "
                         "as one is held out")
    hashes = {name: int(hashlib.sha256(name.encode()).hexdigest(), 16) for name in texts}
    held = {name for name in texts if hashes[name] % 50 == 0} or {min(hashes, key=hashes.get)}
    return ({n: t for n, t in texts.items() if n not in held},
            {n: t for n, t in texts.items() if n in held})


def train_tokenizer(texts, vocab_size):
    """A byte-level BPE tokenizer that puts BOS before each text."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))])
    return tokenizer


def load_tokenizer(folder):
    """The tokenizer of a Hugging Face directory."""
    from tokenizers import Tokenizer
    path = pathlib.Path(folder) / "tokenizer.json"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: the tokenizer must be in the fast format")
    return Tokenizer.from_file(str(path))


def write_tokens(out, tokenizer, eos_id, texts):
    """Writes OUT/train.npy and OUT/held.npy, each [num_tokens] uint32, and held_out.json.

    Each text is encoded with the tokenizer's own template (BOS, if it has one)
    and ends with `eos_id`.
    """
    train, held = split(texts)
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", train), ("held", held)):
        ids = []
        for encoding in tokenizer.encode_batch(list(part.values())):
            ids.extend(encoding.ids)
            ids.append(eos_id)
        np.save(out / f"{name}.npy", np.array(ids, np.uint32))
        size = sum(len(text.encode()) for text in part.values())
        print(f"{name}: {len(part)} files, {size / 1e6:.1f} MB, {len(ids) / 1e6:.2f} M tokens, "
              f"{size / len(ids):.2f} bytes a token")
    (out / "held_out.json").write_text(json.dumps(sorted(held), indent=1))


def read_tokens(out, name, minimum):
    """OUT/`name`.npy as [num_tokens] int64; refused if it has fewer than `minimum`."""
    import torch
    path = out / f"{name}.npy"
    if not path.exists():
        raise SystemExit(f"{path} does not exist: run `data`, or name a --corpus")
    tokens = torch.from_numpy(np.load(path).astype(np.int64))
    if len(tokens) < minimum:
        raise SystemExit(f"{path} has {len(tokens)} tokens, and {minimum} are needed: "
                         "use more text, or a smaller --context")
    return tokens


def windows(tokens, batch, length, seed):
    """Endless (inputs, next tokens), each [batch, length] int64, at random places."""
    import torch
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - length - 1, (batch,), generator=generator)
        rows = torch.stack([tokens[s:s + length + 1] for s in starts])
        yield rows[:, :-1], rows[:, 1:]


def write_prompts(path, tokenizer, texts, count, seed=0):
    """Writes a JSONL file: runs of whole lines of held-out files, 24 to 220 tokens each, no two alike."""
    _, held = split(texts)
    chance = random.Random(seed)
    prompts = {}
    for _ in range(100 * count):
        if len(prompts) == count:
            break
        source = chance.choice(sorted(held))
        lines = held[source].splitlines(keepends=True)
        first, wanted = chance.randrange(len(lines) or 1), chance.randint(4, 20)
        text = "".join(lines[first:first + wanted])
        length = len(tokenizer.encode(text).ids)
        if 24 <= length <= 220 and text.strip():
            prompts.setdefault(text, dict(source=source, line=first + 1, prompt=text, tokens=length))
    if len(prompts) < count:
        print(f"the held-out files gave only {len(prompts)} prompts", file=sys.stderr)
    rows = list(prompts.values())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
