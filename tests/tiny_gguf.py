"""Writes small, valid GGUF files of every architecture that is read, and knows what their weights mean."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 64, 96, 2, 4, 2, 16
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q4_K": 12, "BF16": 30}
BLOCK = 32
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("t h", "th e", "Ġ the")
CHAT = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

Floats = NDArray[np.float32]
Value = str | bool | int | float | list[str] | list[int]


@dataclass
class Tensor:
    kind: str
    shape: tuple[int, ...]
    data: bytes
    values: Floats  # what the data means, by ggml's definition of the type


@dataclass
class TinyGguf:
    metadata: dict[str, Value]
    tensors: dict[str, Tensor]
    version: int = 3
    value_count: int | None = None  # None: the true one

    def write(self, path: Path) -> Path:
        count = len(self.metadata) if self.value_count is None else self.value_count
        out = b"GGUF" + struct.pack("<IQQ", self.version, len(self.tensors), count)
        for key, value in self.metadata.items():
            out += _string(key) + _value(value)
        data = b""
        for name, tensor in self.tensors.items():
            out += _string(name) + struct.pack("<I", len(tensor.shape))
            out += struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape))
            out += struct.pack("<IQ", TYPES[tensor.kind], len(data))
            data += _aligned(tensor.data)
        path.write_bytes(_aligned(out) + data)
        return path


def tiny_gguf(seed: int = 0, kind: str = "llama") -> TinyGguf:
    """Two layers, and every type that is read somewhere in them. `kind`: llama, qwen2 or qwen3."""
    random = np.random.default_rng(seed)
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    tokens = vocabulary()
    tensors = {
        "token_embd.weight": tensor("Q8_0", (len(tokens), HIDDEN), random),
        "output_norm.weight": tensor("F32", (HIDDEN,), random),
    }
    for layer in range(LAYERS):
        tensors |= {
            f"blk.{layer}.attn_norm.weight": tensor("F32", (HIDDEN,), random),
            f"blk.{layer}.attn_q.weight": tensor("Q4_1", (q, HIDDEN), random),
            f"blk.{layer}.attn_k.weight": tensor("Q8_0", (kv, HIDDEN), random),
            f"blk.{layer}.attn_v.weight": tensor("Q4_0", (kv, HIDDEN), random),
            f"blk.{layer}.attn_output.weight": tensor("Q4_1", (HIDDEN, q), random),
            f"blk.{layer}.ffn_norm.weight": tensor("F32", (HIDDEN,), random),
            f"blk.{layer}.ffn_gate.weight": tensor("Q4_1", (INTERMEDIATE, HIDDEN), random),
            f"blk.{layer}.ffn_up.weight": tensor("F16", (INTERMEDIATE, HIDDEN), random),
            f"blk.{layer}.ffn_down.weight": tensor("F32", (HIDDEN, INTERMEDIATE), random),
        }
        if kind == "qwen2":
            for name, rows in (("q", q), ("k", kv), ("v", kv)):
                tensors[f"blk.{layer}.attn_{name}.bias"] = tensor("F32", (rows,), random)
        if kind == "qwen3":
            for name in ("q", "k"):
                tensors[f"blk.{layer}.attn_{name}_norm.weight"] = tensor("F32", (HEAD_DIM,), random)
    metadata: dict[str, Value] = {
        "general.architecture": kind,
        "general.name": "tiny",
        f"{kind}.block_count": LAYERS,
        f"{kind}.context_length": 128,
        f"{kind}.embedding_length": HIDDEN,
        f"{kind}.feed_forward_length": INTERMEDIATE,
        f"{kind}.attention.head_count": HEADS,
        f"{kind}.attention.head_count_kv": KV_HEADS,
        f"{kind}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{kind}.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm" if kind == "llama" else "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT,
    }
    # Only llama.cpp's converter of llamas writes the first; only models whose heads have a width of their own the next.
    own = {"llama": ("rope.dimension_count",), "qwen3": ("attention.key_length", "attention.value_length")}
    metadata |= {f"{kind}.{name}": HEAD_DIM for name in own.get(kind, ())}
    return TinyGguf(metadata, tensors)


def vocabulary() -> list[str]:
    """Specials, one token for each byte in GPT-2's spelling, the merges' results, and fill up to 300."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + index) for index in range(len(others))]
    merged = [merge.replace(" ", "") for merge in MERGES]
    tokens = [*SPECIALS, *letters, *merged]
    return tokens + [f"<fill{index}>" for index in range(300 - len(tokens))]


def tensor(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> Tensor:
    """Random blocks of a type, and their values by ggml's `dequantize_row_*`."""
    count = int(np.prod(shape))
    blocks = count // BLOCK
    if kind in ("F32", "F16"):
        plain = random.normal(size=shape).astype(np.float32 if kind == "F32" else np.float16)
        return Tensor(kind, shape, plain.tobytes(), plain.astype(np.float32))
    scale = random.uniform(0.001, 0.02, (blocks, 1)).astype(np.float16)
    if kind == "Q8_0":
        quants = random.integers(-128, 128, (blocks, BLOCK)).astype(np.int8)
        data = np.hstack([scale.view(np.uint8), quants.view(np.uint8)])
        return Tensor(kind, shape, data.tobytes(), (quants * scale.astype(np.float32)).reshape(shape))
    quants = random.integers(0, 16, (blocks, BLOCK)).astype(np.uint8)
    nibbles = quants[:, :16] | (quants[:, 16:] << 4)  # the second half of a block is in the high nibbles
    if kind == "Q4_0":
        data = np.hstack([scale.view(np.uint8), nibbles])
        values = (quants.astype(np.float32) - 8) * scale.astype(np.float32)
    else:
        assert kind == "Q4_1"
        least = random.uniform(-0.2, 0, (blocks, 1)).astype(np.float16)
        data = np.hstack([scale.view(np.uint8), least.view(np.uint8), nibbles])
        values = quants.astype(np.float32) * scale.astype(np.float32) + least.astype(np.float32)
    return Tensor(kind, shape, data.tobytes(), values.reshape(shape))


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _string(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(str(item)) for item in value)
        case _:
            return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
