#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the demo pair, and distils drafters for targets of your own.

The demo pair (models/README.md has what came of it):

  tools/train_demo_pair.py data OUT              corpus, tokenizer, token files
  tools/train_demo_pair.py target OUT --minutes 75      OUT/demo-target
  tools/train_demo_pair.py drafter OUT --minutes 25     OUT/demo-draft
  tools/train_demo_pair.py text OUT --minutes 12        what the target writes: OUT/written.npy
  tools/train_demo_pair.py text OUT --coordinator 127.0.0.1:7000    the same, where it is served
  tools/train_demo_pair.py drafter OUT --start DIR --written-steps 1   goes on, on that too
  tools/train_demo_pair.py report OUT            losses, acceptance: OUT/report.json
  tools/train_demo_pair.py prompts OUT           held-out prompts: OUT/prompts.jsonl
  tools/train_demo_pair.py prompts OUT --prompts 2000 --file bench_prompts.jsonl

A drafter for any Hugging Face causal language model, on text of your own (of
the kind it will be asked for; best, text that the target itself has written):

  tools/train_demo_pair.py drafter OUT --target DIR --corpus FILES... \\
      --hidden 512 --layers 2 --heads 8 --kv-heads 2 --ffn 1536 --minutes 60

It is written to OUT/draft as a Llama-architecture Hugging Face directory with
the target's tokenizer; `report OUT --target DIR --drafter OUT/draft` says how
often its tokens would be accepted.

Needs tools/requirements.txt in an environment of its own. Runs on a CPU, in
bf16 autocast where it has AMX; there, --compile with
GLIBC_TUNABLES=glibc.malloc.hugetlb=1:\
glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=17179869184
made the target 1.4 times as fast (3 850 tokens/s on two cores with AMX).
It needs torch, so no test of `make test` runs it: run each step with
--max-files and --minutes 0.1 to see that it works.
"""
import argparse
import json
import pathlib
import sys

DEMO_VOCAB, DEMO_CONTEXT = 4096, 1024
MIN_HELD_OUT = 64  # tokens without which a held-out figure means nothing
DEMO_TARGET = dict(hidden=384, layers=10, heads=6, kv_heads=2, ffn=1024)
DEMO_DRAFTER = dict(hidden=256, layers=2, heads=4, kv_heads=2, ffn=768)


def make_data(args):
    from train_pair import data, export
    texts = data.standard_library(args.max_files)
    training, _ = data.split(texts)
    if args.tokenizer:
        tokenizer = data.load_tokenizer(args.tokenizer)
        ids = export.special_ids_of(args.tokenizer, tokenizer)
        export.copy_tokenizer(args.tokenizer, args.out / "tokenizer")
    else:
        tokenizer = data.train_tokenizer(training.values(), DEMO_VOCAB)
        ids = dict(bos_token_id=tokenizer.token_to_id(data.BOS), eos_token_id=tokenizer.token_to_id(data.EOS))
        export.write_tokenizer(args.out / "tokenizer", tokenizer, data.BOS, data.EOS, DEMO_CONTEXT)
    export.write_special_ids(args.out / "tokenizer", ids)
    data.write_tokens(args.out, tokenizer, export.end_id(ids), texts)


def train_target(args):
    from train_pair import data, export, model, training
    tokenizer = data.load_tokenizer(args.out / "tokenizer")
    shape = model.Shape(vocab=tokenizer.get_vocab_size(), context=args.context or DEMO_CONTEXT,
                        **shape_flags(args, DEMO_TARGET))
    ids = export.read_special_ids(args.out / "tokenizer")
    train(args, shape, training.next_token_loss, "demo-target", args.out / "tokenizer", ids)


def train_drafter(args):
    import torch
    from train_pair import data, export, model, training
    source = args.target or args.out / "demo-target"
    config = export.read_config(source)
    if args.corpus:
        texts = data.text_files(args.corpus, args.max_files)
        tokenizer = data.load_tokenizer(source)
        ids = export.special_ids_of(source, tokenizer)
        export.copy_tokenizer(source, args.out / "tokenizer")
        export.write_special_ids(args.out / "tokenizer", ids)
        data.write_tokens(args.out, tokenizer, export.end_id(ids), texts)
    elif not export.same_tokenizer(source, args.out / "tokenizer"):
        raise SystemExit(f"the token files of {args.out} were not made with the tokenizer of "
                         f"{source}: name a --corpus")
    limit = config.get("max_position_embeddings", DEMO_CONTEXT)
    context = args.context or min(limit, DEMO_CONTEXT)
    shape = model.Shape(vocab=config["vocab_size"], context=context,
                        **shape_flags(args, DEMO_DRAFTER))
    target = export.load_frozen(source, torch.float32, args.device)
    if args.compile:
        target = torch.compile(target)
    loss = training.distillation_loss(target, args.device, args.kl_share)
    name = "draft" if args.target else "demo-draft"
    train(args, shape, loss, name, source, export.special_ids(config))


def write_text(args):
    import torch
    from train_pair import data, export, served, training, written
    path, tokens = args.out / "written.npy", data.read_tokens(args.out, "train", args.length)
    rows = dict(minutes=args.minutes, length=args.length,
                temperatures=args.temperatures or written.TEMPERATURES)
    if args.coordinator:
        served.write(path, args.coordinator, tokens, streams=args.batch, **rows)
        return
    source = args.target or args.out / "demo-target"
    written.write(path, export.load_frozen(source, torch.float32, args.device), tokens,
                  batch=args.batch, autocast=lambda: training.autocast(args.device), **rows)


def train(args, shape, loss, name, tokenizer_source, special_ids):
    """Trains one model and writes OUT/`name` and OUT/`name`_log.json."""
    import torch
    from train_pair import data, export, model, training, written
    torch.manual_seed(0)
    learner = model.Llama(shape).to(args.device)
    if args.start:
        export.read_weights(args.start, learner)
    print(f"{name}: {learner.num_parameters() / 1e6:.2f} M parameters")
    options = training.Options(
        minutes=args.minutes, batch=args.batch, held_windows=args.held_windows, device=args.device,
        compile=args.compile, vector_rate=args.vector_rate, matrix_rate=args.matrix_rate,
        written_steps=args.written_steps)
    tokens = data.read_tokens(args.out, "train", shape.context + 2)
    held = data.read_tokens(args.out, "held", MIN_HELD_OUT)
    folder = args.out / name
    export.copy_tokenizer(tokenizer_source, folder)
    text = written.rows(args.out / "written.npy", 2 * args.batch, seed=3) if args.written_steps else None
    trainer = training.Trainer(learner, tokens, held, options, text)
    log = trainer.train(loss, save=lambda: export.write_model(folder, learner, special_ids))
    (args.out / f"{name}_log.json").write_text(json.dumps(log, indent=0) + "\n")


def write_report(args):
    import torch
    from train_pair import data, export, report
    folders = args.target or args.out / "demo-target", args.drafter or args.out / "demo-draft"
    target, drafter = (export.load_frozen(f, torch.float32, args.device) for f in folders)
    tokens = data.read_tokens(args.out, "held", MIN_HELD_OUT)
    context = min(len(tokens) - 2, *(m.config.max_position_embeddings for m in (target, drafter)))
    length = min(128, context // 2)
    figures = report.measure(target, drafter, tokens, context, args.prompts, length)
    print(json.dumps(figures, indent=1))
    (args.out / "report.json").write_text(json.dumps(figures, indent=1) + "\n")


def write_prompts(args):
    from train_pair import data
    folder = args.target or args.out / "tokenizer"
    texts = (data.text_files(args.corpus, args.max_files) if args.corpus
             else data.standard_library(args.max_files))
    data.write_prompts(args.out / args.file, data.load_tokenizer(folder), texts, args.prompts)


def shape_flags(args, default):
    """The demo model's shape, with what the flags change."""
    return {key: getattr(args, key) or value for key, value in default.items()}


def add_training_flags(parser, default, minutes, vector_rate):
    group = parser.add_argument_group("training")

    def add(flag, kind, value, text):
        group.add_argument(flag, type=kind, default=value, help=text + " (default: %(default)s)")

    add("--minutes", float, minutes, "how long to train")
    add("--batch", int, 8, "windows of full context a step")
    add("--held-windows", int, 96, "windows of the held-out loss")
    add("--matrix-rate", float, 0.02, "learning rate of the matrices, by Muon")
    add("--vector-rate", float, vector_rate, "learning rate of the rest, by AdamW")
    group.add_argument("--compile", action="store_true", help="use torch.compile")
    group.add_argument("--start", type=pathlib.Path, metavar="DIR",
                       help="go on from the weights of this model, of the same shape")
    add("--written-steps", int, 0, "of four steps, those on what `text` has written")
    group = parser.add_argument_group("shape of the model to train")
    group.add_argument("--context", type=int,
                       help=f"positions (default: {DEMO_CONTEXT}, or the target's if fewer)")
    for key, value in default.items():
        group.add_argument("--" + key.replace("_", "-"), type=int, help=f"default: {value}")


def add_corpus_flags(parser, corpus=True):
    if corpus:
        parser.add_argument(
            "--corpus", nargs="+", metavar="FILES",
            help="text files, or folders of them (default: what `data` took)")
    parser.add_argument("--max-files", type=int, help="use only so many files")


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True, metavar="STEP")

    def step(name, run, text):
        sub = steps.add_parser(name, help=text, description=text.capitalize() + ".")
        sub.add_argument("out", type=pathlib.Path, metavar="OUT", help="the working folder")
        sub.set_defaults(run=run)
        return sub

    def add_device_flags(sub):
        sub.add_argument("--device", default="cpu", choices=["cpu", "cuda"],
                         help="default: %(default)s")
        sub.add_argument("--threads", type=int, help="CPU threads (default: all cores)")

    sub = step("data", make_data, "corpus, tokenizer and token files of the demo pair")
    add_corpus_flags(sub, corpus=False)
    sub.add_argument("--tokenizer", type=pathlib.Path, metavar="DIR",
                     help="this one, in place of training one; config.json or tokenizer_config.json there "
                          "has the token that ends a text")

    sub = step("target", train_target, "train the demo target")
    add_training_flags(sub, DEMO_TARGET, minutes=75, vector_rate=0.004)
    add_device_flags(sub)

    sub = step("drafter", train_drafter, "distil a drafter from the demo target, or from --target")
    sub.add_argument("--target", type=pathlib.Path, metavar="DIR",
                     help="Hugging Face directory of the model to draft for, with tokenizer.json")
    add_corpus_flags(sub)
    add_training_flags(sub, DEMO_DRAFTER, minutes=25, vector_rate=0.006)
    sub.add_argument("--kl-share", type=float, default=0.5,
                     help="of the time, that by KL and not by total variation (default: %(default)s)")
    add_device_flags(sub)

    sub = step("text", write_text, "text that the target itself writes, for its drafter to learn from")
    sub.add_argument("--target", type=pathlib.Path, metavar="DIR", help="default: OUT/demo-target")
    sub.add_argument("--minutes", type=float, default=20, help="how long to write (default: %(default)s)")
    sub.add_argument("--batch", type=int, default=128, help="texts at once (default: %(default)s)")
    sub.add_argument("--length", type=int, default=384, help="tokens of each (default: %(default)s)")
    sub.add_argument("--temperatures", type=float, nargs="+", metavar="T",
                     help="of the texts, in turns (default: 0 0.7 1 1)")
    sub.add_argument("--coordinator", metavar="HOST:PORT",
                     help="one that serves this target writes them, in plain text (needs grpcio-tools)")
    add_device_flags(sub)

    sub = step("report", write_report, "held-out losses of a pair and acceptance between them")
    sub.add_argument("--target", type=pathlib.Path, metavar="DIR", help="default: OUT/demo-target")
    sub.add_argument("--drafter", type=pathlib.Path, metavar="DIR", help="default: OUT/demo-draft")
    sub.add_argument("--prompts", type=int, default=64, help="how many (default: %(default)s)")
    add_device_flags(sub)

    sub = step("prompts", write_prompts, "cut prompts from the held-out files")
    sub.add_argument("--target", type=pathlib.Path, metavar="DIR",
                     help="whose tokenizer counts (default: the demo pair's)")
    sub.add_argument("--prompts", type=int, default=120, help="how many (default: %(default)s)")
    sub.add_argument("--file", default="prompts.jsonl", help="name in OUT (default: %(default)s)")
    add_corpus_flags(sub)
    return parser


def main():
    args = make_parser().parse_args()
    if getattr(args, "threads", None):
        import torch
        torch.set_num_threads(args.threads)
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
