"""Write a tiny, random-weight Llama model directory in Hugging Face format.

The result is a complete local model (config, tokenizer, chat template and
safetensors weights, about 1 MB), good enough for any serving engine that
reads HF directories to load and to generate (meaningless) tokens from.
Nothing is downloaded, and the same seed gives byte-identical files.

    make_tiny_model.py OUTDIR [--seed 0] [--layers 2] [--hidden 64] [--heads 4]
                              [--kv-heads 2] [--head-dim 32] [--vocab 1024]
                              [--context 2048]

Needs: numpy, tokenizers, safetensors.  Does not need torch or transformers.
"""

import argparse
import json
import random
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

BOS, EOS, PAD = "<|begin|>", "<|end|>", "<|pad|>"
ROLE_OPEN, ROLE_CLOSE = "<|role|>", "<|/role|>"
SPECIALS = [PAD, BOS, EOS, ROLE_OPEN, ROLE_CLOSE]  # ids 0..4, in this order

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for m in messages %}" + ROLE_OPEN + "{{ m['role'] }}" + ROLE_CLOSE + "{{ m['content'] }}" + EOS + "{% endfor %}"
    "{% if add_generation_prompt %}" + ROLE_OPEN + "assistant" + ROLE_CLOSE + "{% endif %}"
)

WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "this",
    "are",
    "or",
    "his",
    "from",
    "at",
    "which",
    "but",
    "have",
    "an",
    "had",
    "they",
    "you",
    "were",
    "their",
    "one",
    "all",
    "we",
    "can",
    "her",
    "has",
    "there",
    "been",
    "if",
    "more",
    "when",
    "will",
    "would",
    "who",
    "so",
    "no",
    "model",
    "server",
    "token",
    "request",
    "queue",
    "batch",
    "cache",
    "prefix",
    "prompt",
    "decode",
    "latency",
    "memory",
    "kernel",
    "thread",
    "process",
    "socket",
    "packet",
    "block",
    "page",
    "network",
    "disk",
    "scheduler",
    "gateway",
    "engine",
    "worker",
    "replica",
    "cluster",
    "metric",
    "counter",
    "gauge",
    "histogram",
    "bucket",
    "quantile",
    "window",
    "signal",
    "anomaly",
    "baseline",
    "drift",
    "spike",
    "stall",
    "retry",
]


def corpus(seed, lines=4000):
    """A deterministic pseudo-English corpus for training the tokenizer."""
    rng = random.Random(seed)
    for _ in range(lines):
        n = rng.randint(4, 14)
        words = [rng.choice(WORDS) for _ in range(n)]
        if rng.random() < 0.3:
            words.append(str(rng.randint(0, 9999)))
        yield " ".join(words).capitalize() + rng.choice([".", "?", "!", ",", ";"])


def train_tokenizer(vocab_size, seed):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tok.train_from_iterator(corpus(seed), trainer)
    # A small corpus may run out of merges: pad to the exact size asked for, so
    # that every id the model can emit decodes to something.
    missing = vocab_size - tok.get_vocab_size()
    if missing > 0:
        tok.add_tokens([f"<extra_{i}>" for i in range(missing)])
    return tok


def weights(cfg, seed):
    rng = np.random.default_rng(seed)
    d, f, v = cfg["hidden_size"], cfg["intermediate_size"], cfg["vocab_size"]
    hd = cfg["head_dim"]
    q, kv = cfg["num_attention_heads"] * hd, cfg["num_key_value_heads"] * hd

    def normal(*shape):
        return (rng.standard_normal(shape) * 0.05).astype(np.float32)

    w = {"model.embed_tokens.weight": normal(v, d)}
    for i in range(cfg["num_hidden_layers"]):
        p = f"model.layers.{i}."
        w[p + "input_layernorm.weight"] = np.ones(d, np.float32)
        w[p + "self_attn.q_proj.weight"] = normal(q, d)
        w[p + "self_attn.k_proj.weight"] = normal(kv, d)
        w[p + "self_attn.v_proj.weight"] = normal(kv, d)
        w[p + "self_attn.o_proj.weight"] = normal(d, q)
        w[p + "post_attention_layernorm.weight"] = np.ones(d, np.float32)
        w[p + "mlp.gate_proj.weight"] = normal(f, d)
        w[p + "mlp.up_proj.weight"] = normal(f, d)
        w[p + "mlp.down_proj.weight"] = normal(d, f)
    w["model.norm.weight"] = np.ones(d, np.float32)
    w["lm_head.weight"] = normal(v, d)
    return w


def build_config(layers, hidden, heads, kv_heads, head_dim, vocab, context):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": hidden * 2,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "pad_token_id": SPECIALS.index(PAD),
        "bos_token_id": SPECIALS.index(BOS),
        "eos_token_id": SPECIALS.index(EOS),
        "torch_dtype": "float32",
        "use_cache": True,
    }


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("outdir", type=Path)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--layers", type=int, default=2)
    ap.add_argument("--hidden", type=int, default=64)
    ap.add_argument("--heads", type=int, default=4)
    ap.add_argument("--kv-heads", type=int, default=2)
    ap.add_argument("--head-dim", type=int, default=32, help="vLLM's CPU attention has no kernel below 32")
    ap.add_argument("--vocab", type=int, default=1024)
    ap.add_argument("--context", type=int, default=2048)
    a = ap.parse_args()
    if a.heads % a.kv_heads:
        ap.error("--heads must be a multiple of --kv-heads")

    out = a.outdir
    out.mkdir(parents=True, exist_ok=True)
    cfg = build_config(a.layers, a.hidden, a.heads, a.kv_heads, a.head_dim, a.vocab, a.context)

    def dump(name, obj):
        (out / name).write_text(json.dumps(obj, indent=2) + "\n")

    train_tokenizer(a.vocab, a.seed).save(str(out / "tokenizer.json"))
    dump("config.json", cfg)
    dump("generation_config.json", {k: cfg[k] for k in ("bos_token_id", "eos_token_id", "pad_token_id")})
    dump(
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BOS,
            "eos_token": EOS,
            "pad_token": PAD,
            "model_max_length": a.context,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    w = weights(cfg, a.seed)
    save_file(w, str(out / "model.safetensors"), metadata={"format": "pt"})
    n = sum(t.size for t in w.values())
    print(f"{out}: {n:,} parameters, vocab {a.vocab}, {a.layers} layers")


if __name__ == "__main__":
    main()
