#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of core/tokenizer, from the reference implementation.

Trains one small tokenizer of every supported kind on text of this repository,
and records what the PyPI package `tokenizers` (tools/requirements.txt) makes of
many texts and id sequences:

  tests/golden/testdata/tokenizer/KIND/tokenizer.json
  tests/golden/testdata/tokenizer/KIND/cases.json

The demo pair's tokenizer, models/demo-target/tokenizer.json, gets cases only.
"""

import json
import pathlib
import random

import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/testdata/tokenizer"

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SCRIPTS = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I'm sure they've.",
    "Zażółć gęślą jaźń. Übergrößenträger naïve façade coöperate Ångström",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "我能吞下玻璃而不伤身体。 いろはにほへと ちりぬるを カタカナ 한국어 문장입니다.",
    "من طلب العلى سهر الليالي ١٢٣ دَرَسَ זה כיף סתם לשמוע",
    "ऋषियों को सताने वाले दुष्ट राक्षसों १२३ ข้าพเจ้ากินแก้วได้ བོད་སྐད་ ༄༅",
    "Tiếng Việt có dấu: nghiêng ngả; e\u0301 a\u0308 o\u0323\u0302",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 🏳️‍🌈 ❤️ 🙂🙃 ✈︎ ①②③ Ⅷ ½ ² 𝒳 𐍈 𠜎",
    "ſ K Å ﬁ ﬅ ß İ ı Dž ʼn ª º",
]

TEXTS = SCRIPTS + [
    "",
    " ",
    "a",
    "Hello world",
    " Hello  world ",
    "\tindented\n\n\tmore   \n  trailing  ",
    "CRLF\r\nnext\r\n\r\n  last\r",
    "I'm you're we'll they'd it's can't I've 'tis 'SOLO",
    "I'M YOU'RE WE'LL THEY'D IT'S CAN'T I'VE 'Sx 'lL 'Ve 'ſa 'Re",
    "’s ’t typographic ’ve; ''s '''t 's's",
    "1 12 123 1234 12345 1234567890 3.14159 1,000,000 ١٢٣٤٥ 12a34 ½⅓ Ⅷ²³",
    "for (int i = 0; i < n; ++i) { x[i] += f(y)->z; } // done\n#include <a.h>\n",
    "def f(x):\n    return {'a': [1, 2], \"b\": None}  # comment\n\n\n",
    "a\u00a0b\u2003c\u3000d\u0085e\u2028f\u200bg\ufeffh\u180ei\u1680j\x1ck\x0bl\x0cm",
    "a \u00a0b  \u3000 c\u3000\u3000d \u2003\n\u2003 e",
    "e\u0301\u0323 \u0323\u0301e q\u0307\u0323 \u1e9b\u0323 \u212b \u2126 \uac00\u11a8 \u1100\u1161\u11a8",
    "\u0344 \u0f73\u0f71 \u0958 \u2adc \ufb1d \U0001d15e \u0f77 \u0310\u0327\u0301",
    "\x00\x01\x7f control \x1b[0m",
    "<0x41> <0xZZ> <0x0A>",
    "▁already ▁▁ there▁ ▁",
    "  two leading", "   three leading\n", "\n newline first", "x\n \n \n y",
    "…—–“quoted”‘single’!?!?...;;;:::",
    "aaaaabaaaaaaaab ababababab", "http://example.org/a_b?c=d&e=f#g",
    "\ufffd replacement \ufffd\ufffd",
]

BROKEN = [
    b"\xff", b"ab\xc3", b"\xe2\x82", b"\xe2\x82z", b"\xf0\x9f\x98", b"\xf0\x9f\x98\xf0\x9f\x98\x80",
    b"\xc0\xaf\xe0\x80\x80\xed\xa0\x80\xf4\x90\x80\x80\xf8\x88\x80\x80\x80",
    b"ok \x80\x80 \xc3\xa9 \xc3( \xe1\x80\xe2\xf0\x91\x92\xf1\xbf A\xfe",
]

LONG = [("a", 700), ("^", 500), (" ", 600), ("\n", 300), ("😀", 150), ("ab ", 200),
        ("\u0301", 120), ("\u0323\u0301", 80), ("1", 200), (" \n", 100), ("字", 120),
        ("\u0f73", 70), ("'s", 90), ("\t", 200), ("e\u0301", 60)]

# These are for a tokenizer that cuts digits off: they have white space before and between
# digits, those of other scripts and kinds, and bytes that its vocabulary lacks, between
# neighbours that merge.
DIGIT_TEXTS = [
    "a  1", " 1", "  1", "1  ", "1 2  3   4", "a\n\n 12", "1  \n 2", "x\t\t7", "\r\n  42", "!!  7", "it's1's 1'ts",
    "١٢٣ ४५६  ๑๒ 𝟙𝟚  １２",
    "x²y³ m½ 3¾  ①② Ⅻ ⅷ 〇三 ㊿ ፳ ৴ ௰ \u0bf0\u0d70 \U00010107\U00012400",
    "v1.2.3-rc4 0x1F 1e10 2026-11-30T12:34",
    # Numeric since Unicode 16, which ICU 72 does not know.
    "a\U00010d40 \U000116d1!\U00011bf2.\U00016135  \U00016d76\U0001ccf7b \U0001e5f8",
    "1<|im_start|>2 <|im_end|> 3<|im_end|>\n4  <|endoftext|>",
    "<|im_start|>user\n12 + 30?<|im_end|>\n<|im_start|>assistant\n",
    "a\x04b \x06\x13\x14 th\x16e  \x1d1 \x041", "re\x04turn def\x1d\x1dine \U00040000 a\U000c0041b \U0010ffff",
]

POOL = (
    list("aabcdeEsSTtlmv01239   \t\n\r'\"_-.,!<>|/") + ["'s", "'LL", "'ve", "  ", "\r\n", "\n\n"]
    + list("éßıſKǅʼªйΩ我の한ﬁעدไदि١४½²Ⅷ①€“…▁\u00a0\u3000\u0085\u2028\u200b\u200d\ufeff\u180e\u0301\u0323\u0344\ufe0f")
    + list("😀👍🏽🇩🇪𝒳𐍈𠜎") + ["e\u0301", "\u1100\u1161", "👩\u200d👧"]
)


def corpus():
    lines = [json.loads(line)["prompt"] for line in (ROOT / "models/prompts.jsonl").open()]
    return lines + SCRIPTS * 4


def trained(pre_tokenizer, vocab_size, special, alphabet):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, show_progress=False,
        initial_alphabet=alphabet, limit_alphabet=len(alphabet) or 400))
    return tokenizer


def byte_level(pattern, vocab_size, special, **options):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if pattern is None:
        pre_tokenizer = pre_tokenizers.ByteLevel(**options)
    else:
        pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = trained(pre_tokenizer, vocab_size, special, alphabet)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def alphabet_order(char):
    """The byte that a character of the byte alphabet stands for."""
    code = ord(char)
    if code < 256:
        return code
    spelled = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    return [byte for byte in range(256) if byte not in spelled][code - 256]


def added(content, **flags):
    return tokenizers.AddedToken(content, **flags)


def gpt2():
    tokenizer = byte_level(None, 700, ["<|endoftext|>"], add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    data = json.loads(tokenizer.to_str())
    # The older spelling of merges, and the affixes of the original file.
    data["model"]["merges"] = [" ".join(merge) for merge in data["model"]["merges"]]
    data["model"]["unk_token"] = "<|endoftext|>"
    data["model"]["continuing_subword_prefix"] = data["model"]["end_of_word_suffix"] = ""
    return data


def gpt2_added():
    tokenizer = byte_level(None, 500, ["<s>", "</s>"], add_prefix_space=True)
    tokenizer.add_special_tokens([added("<mask>", lstrip=True), added("<sep>", rstrip=True),
                                  added("<both>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([added("[word]", single_word=True), added("word", single_word=True),
                          added("<|a|>"), added("<|a|><|b|>"), added("é", normalized=False),
                          added(" lead", normalized=False), added("snow☃man", normalized=True),
                          added("\u200d", single_word=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 1)])
    return json.loads(tokenizer.to_str())


def llama3():
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>"]
    tokenizer = byte_level(LLAMA3, 700, [], add_prefix_space=False)
    data = json.loads(tokenizer.to_str())
    # Words that no merge leads to: only ignore_merges finds them.
    for word in ("Ġzebra", "quick", "ĠĠĠĠĠ", "ðŁĺĢ", "123"):
        data["model"]["vocab"].setdefault(word, len(data["model"]["vocab"]))
    data["model"]["ignore_merges"] = True
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens(specials)
    begin = tokenizer.token_to_id(specials[0])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single=f"{specials[0]} $A", pair=f"{specials[0]} $A {specials[0]} $B:1",
            special_tokens=[(specials[0], begin)])])
    return json.loads(tokenizer.to_str())


def qwen2():
    tokenizer = byte_level(QWEN2, 600, [], add_prefix_space=False)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([added("<tool_call>", normalized=False), added("cafe\u0301", normalized=True),
                          added("e\u0323\u0302x", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return json.loads(tokenizer.to_str())


def smollm2():
    """Is as SmolLM2's: digits are cut off, special tokens come first, and 21 bytes have no token."""
    lacking = [0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)]
    of_byte = sorted(pre_tokenizers.ByteLevel.alphabet(), key=alphabet_order)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>",
                "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>",
                "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>"]
    pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    alphabet = [char for byte, char in enumerate(of_byte) if byte not in lacking]
    tokenizer = trained(pre_tokenizer, 600, specials, alphabet)
    tokenizer.decoder = decoders.ByteLevel()
    assert not {of_byte[byte] for byte in lacking} & tokenizer.get_vocab().keys()
    return json.loads(tokenizer.to_str())


def sentence_piece(num_bytes=256):
    """Vocabulary and merges as in a converted SentencePiece model."""
    tokenizer = trained(pre_tokenizers.Metaspace(), 520, [], sorted(set("".join(SCRIPTS[:5]) + "▁")))
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(num_bytes)] + pieces
    # As in Llama 2, some runs of spaces are tokens.
    merges = [["▁", "▁"], ["▁▁", "▁▁"]] + model["merges"]
    tokens += [piece for piece in ("▁▁", "▁▁▁▁") if piece not in tokens]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True} for i, token in enumerate(tokens[:3])],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges},
    }


def llama2():
    data = sentence_piece()
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_tokens([added("[INST]", normalized=False), added("tool", normalized=True),
                          added("<pad>", special=True, normalized=True)])
    return json.loads(tokenizer.to_str())


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def mistral_first():
    data = sentence_piece()
    data["normalizer"] = None
    data["pre_tokenizer"] = metaspace("first", split=False)
    return data


def metaspace_always():
    """No byte tokens: unknown characters are <unk>, each for itself."""
    data = sentence_piece(num_bytes=0)
    data["normalizer"] = None
    data["pre_tokenizer"] = data["decoder"] = metaspace("always", split=True)
    data["model"]["byte_fallback"] = data["model"]["fuse_unk"] = False
    return data


def metaspace_never():
    """Some byte tokens only, fused <unk>."""
    data = sentence_piece(num_bytes=128)
    data["normalizer"] = None
    data["pre_tokenizer"] = data["decoder"] = metaspace("never", split=True)
    return data


def random_text(rng, tokens, pool):
    parts = [rng.choice(tokens) if rng.random() < 0.08 else rng.choice(pool)
             for _ in range(rng.randint(1, 30))]
    return "".join(parts)


def added_token_texts(contents):
    texts = ["".join(contents), " ".join(contents), "\n ".join(contents) + " "]
    for content in contents:
        texts += [f"x{content}y", f"x {content} y", f"  {content}\t\n{content}{content}", f"{content}"]
    return texts


def encode_case(tokenizer, text, case):
    ids = tokenizer.encode(text).ids
    return {**case, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)}


def cases(tokenizer, seed, more=()):
    """`more`: texts of this kind's own, whose characters the random ones have too."""
    pool = POOL + sorted({char for text in more for char in text})
    rng = random.Random(seed)
    contents = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    texts = TEXTS + list(more) + added_token_texts(contents)
    texts += [random_text(rng, contents, pool) for _ in range(120)]
    encode = [encode_case(tokenizer, text, {"text": text}) for text in dict.fromkeys(texts)]
    encode += [encode_case(tokenizer, data.decode("utf-8", "replace"), {"hex": data.hex()}) for data in BROKEN]
    encode += [encode_case(tokenizer, text * times, {"text": text, "repeat": times}) for text, times in LONG]
    size = tokenizer.get_vocab_size()
    decode = []
    for _ in range(60):  # random ids: broken UTF-8, specials in between
        few = [rng.randrange(size) for _ in range(rng.randint(1, 4))]
        low = [rng.randrange(min(size, 300)) for _ in range(rng.randint(1, 24))]
        ids = [rng.choice(few + low) for _ in range(rng.randint(1, 24))]
        decode.append({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
    return {"reference": f"tokenizers {tokenizers.__version__}", "encode": encode, "decode": decode}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_cases(path, tokenizer, seed, more=()):
    """One case per line, so that a change is readable as a difference."""
    data = cases(tokenizer, seed, more)
    dump = lambda value: json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    lists = ",\n".join(f'"{name}":[\n' + ",\n".join(map(dump, data[name])) + "\n]"
                       for name in ("encode", "decode"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"reference":{dump(data["reference"])},\n{lists}\n}}\n')


def main():
    kinds = [gpt2, gpt2_added, llama3, qwen2, llama2, mistral_first, metaspace_always, metaspace_never, smollm2]
    for seed, kind in enumerate(kinds):
        data = kind()
        folder = OUT / kind.__name__.replace("_", "-")
        write(folder / "tokenizer.json", data)
        write_cases(folder / "cases.json", Tokenizer.from_str(json.dumps(data)), seed,
                    DIGIT_TEXTS if kind is smollm2 else ())
    demo = Tokenizer.from_file(str(ROOT / "models/demo-target/tokenizer.json"))
    write_cases(OUT / "demo-target/cases.json", demo, seed=8)


if __name__ == "__main__":
    main()
