"""Convert a tiny HF Llama directory (from make_tiny_model.py) to a GGUF file.

    make_tiny_gguf.py MODELDIR OUT.gguf

Only what make_tiny_model.py writes is handled: LlamaForCausalLM, float32
safetensors, a byte-level BPE tokenizer.json.  The result loads in llama.cpp
(llama-server, llama-bench).  Deterministic: same input, same bytes.

Needs: gguf, numpy, safetensors.
"""

import json
import sys
from pathlib import Path

import gguf
from safetensors.numpy import load_file


def permute(w, heads):
    """Reorder Q/K rows from HF's half-split rotary layout to llama.cpp's interleaved one."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def tensor_name(hf):
    fixed = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if hf in fixed:
        return fixed[hf]
    layer, part = hf.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
    part = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }[part]
    return f"blk.{layer}.{part}.weight"


def write_tokenizer(w, src, cfg):
    tok = json.loads((src / "tokenizer.json").read_text())
    vocab = dict(tok["model"]["vocab"])
    special = {}
    for t in tok["added_tokens"]:
        vocab[t["content"]] = t["id"]
        special[t["id"]] = t["special"]
    tokens = [t for t, _ in sorted(vocab.items(), key=lambda kv: kv[1])]
    assert len(tokens) == cfg["vocab_size"], (len(tokens), cfg["vocab_size"])

    def kind(i):
        if i not in special:
            return gguf.TokenType.NORMAL
        return gguf.TokenType.CONTROL if special[i] else gguf.TokenType.USER_DEFINED

    # tokenizer.json holds a merge as "a b" or, since tokenizers 0.20, as ["a", "b"].
    merges = [m if isinstance(m, str) else " ".join(m) for m in tok["model"]["merges"]]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([kind(i) for i in range(len(tokens))])
    w.add_token_merges(merges)
    w.add_bos_token_id(cfg["bos_token_id"])
    w.add_eos_token_id(cfg["eos_token_id"])
    w.add_pad_token_id(cfg["pad_token_id"])
    w.add_add_bos_token(False)
    tcfg = json.loads((src / "tokenizer_config.json").read_text())
    w.add_chat_template(tcfg["chat_template"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    src, out = Path(sys.argv[1]), Path(sys.argv[2])
    cfg = json.loads((src / "config.json").read_text())
    w = gguf.GGUFWriter(str(out), "llama")
    w.add_name("tiny")
    w.add_vocab_size(cfg["vocab_size"])
    w.add_context_length(cfg["max_position_embeddings"])
    w.add_embedding_length(cfg["hidden_size"])
    w.add_block_count(cfg["num_hidden_layers"])
    w.add_feed_forward_length(cfg["intermediate_size"])
    w.add_head_count(cfg["num_attention_heads"])
    w.add_head_count_kv(cfg["num_key_value_heads"])
    w.add_key_length(cfg["head_dim"])
    w.add_value_length(cfg["head_dim"])
    w.add_rope_dimension_count(cfg["head_dim"])
    w.add_rope_freq_base(cfg["rope_theta"])
    w.add_layer_norm_rms_eps(cfg["rms_norm_eps"])
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    write_tokenizer(w, src, cfg)
    for name, t in sorted(load_file(str(src / "model.safetensors")).items()):
        heads = {"q_proj.weight": "num_attention_heads", "k_proj.weight": "num_key_value_heads"}
        kind = name.rpartition("self_attn.")[2]
        w.add_tensor(tensor_name(name), permute(t, cfg[heads[kind]]) if kind in heads else t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
