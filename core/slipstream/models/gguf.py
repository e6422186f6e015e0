"""A llama-architecture GGUF file, turned into a normal mlx-lm folder without changing a weight.

Nothing in the file is executed; its chat template is copied as text.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx

from slipstream.errors import ModelIncomplete, UnsupportedModel
from slipstream.models.gguf_header import READABLE, Header, damaged, read_header

VERSION = 1  # raise it when `convert` writes something else: folders made by another version are made anew
GROUP_SIZE = 32  # of every packed GGUF type that is read

# GGUF's names to mlx-lm's.
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type


def convert(gguf: Path, into: Path) -> None:
    """Write the model in `gguf` to the folder `into`: config, weights, tokenizer and generation defaults.

    The 4-bit and 8-bit blocks become MLX's affine packing with the same numbers in it. Runs MLX on the calling thread.
    Raises ModelNotFound, ModelIncomplete (unreadable, cut short, damaged, or no room to write) or UnsupportedModel.
    """
    header = read_header(gguf)
    llama = _Llama.read(header)
    names = _check_tensors(header, llama)
    weights = _load_weights(header, llama, names)
    end = header.whole("tokenizer.ggml.eos_token_id")
    ends = sorted({end, header.whole("tokenizer.ggml.eot_token_id", end)})
    try:
        into.mkdir(parents=True, exist_ok=True)
        _write_tokenizer(header, llama, into)
        _write_weights(into / "model.safetensors", weights)
        _write_json(into / "config.json", _config(header, llama, names, weights))
        _write_json(into / "generation_config.json", {"bos_token_id": llama.bos_id, "eos_token_id": ends})
    except OSError as error:
        raise ModelIncomplete(
            f"the converted model cannot be written to {into.parent} ({error.strerror}); make room, or make it writable"
        ) from error


@dataclass(frozen=True, slots=True)
class _Llama:
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    eps: float
    rope_theta: float
    vocabulary: int
    bos_id: int

    @classmethod
    def read(cls, header: Header) -> _Llama:
        path = header.path
        architecture = header.text("general.architecture")
        if architecture != "llama":
            raise UnsupportedModel(
                f"{path}: GGUF files of architecture {architecture!r} are not supported; "
                f"choose {instead(header)} instead",
                architecture=architecture,
            )
        heads, hidden = header.whole("llama.attention.head_count"), header.whole("llama.embedding_length")
        kv_heads = header.whole("llama.attention.head_count_kv", heads)
        head_dim = header.whole("llama.attention.key_length", hidden // max(heads, 1))
        if not (heads and kv_heads and head_dim) or heads % kv_heads or head_dim % 2:
            raise damaged(path, f"it says {heads} heads, {kv_heads} key heads, {head_dim} values each")
        scaling: object = header.metadata.get("llama.rope.scaling.type", "none")
        odd = {
            "experts": header.whole("llama.expert_count", 0) != 0,
            "scaled positions": scaling != "none" or "rope_freqs.weight" in header.tensors,
            "partial rotation": header.whole("llama.rope.dimension_count", head_dim) != head_dim,
            "values of another width": header.whole("llama.attention.value_length", head_dim) != head_dim,
        }
        if found := [what for what, is_there in odd.items() if is_there]:
            raise UnsupportedModel(
                f"{path} uses {' and '.join(found)}, which GGUF conversion does not support; "
                f"choose {instead(header)} instead"
            )
        embedding = header.tensors.get("token_embd.weight")
        if embedding is None:
            raise damaged(path, "it has no token_embd.weight")
        return cls(
            hidden=hidden,
            intermediate=header.whole("llama.feed_forward_length"),
            layers=header.whole("llama.block_count"),
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            context=header.whole("llama.context_length"),
            eps=header.number("llama.attention.layer_norm_rms_epsilon"),
            rope_theta=header.number("llama.rope.freq_base", 10000.0),
            vocabulary=embedding.shape[0],
            bos_id=header.whole("tokenizer.ggml.bos_token_id"),
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor of one layer, by its GGUF name without the layer."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "attn_norm": (self.hidden,),
            "attn_q": (q, self.hidden),
            "attn_k": (kv, self.hidden),
            "attn_v": (kv, self.hidden),
            "attn_output": (self.hidden, q),
            "ffn_norm": (self.hidden,),
            "ffn_gate": (self.intermediate, self.hidden),
            "ffn_up": (self.intermediate, self.hidden),
            "ffn_down": (self.hidden, self.intermediate),
        }


def instead(header: Header) -> str:
    """The repository to use when the file cannot be: the one it was made from, where it says so."""
    where = ("general.base_model.0.repo_url", "general.source.huggingface.repository", "general.source.repo_url")
    for key in where:
        repository: object = header.metadata.get(key)
        if isinstance(repository, str) and repository:
            return repository.removeprefix("https://huggingface.co/") + " or an MLX conversion of it"
    name: object = header.metadata.get("general.name")
    return f"an MLX conversion of {name}" if isinstance(name, str) and name else "this model as an MLX folder"


def _check_tensors(header: Header, llama: _Llama) -> dict[str, str]:
    """GGUF's module names to mlx-lm's.

    Raises unless exactly the architecture's tensors are there, of types that are read exactly, and in shape.
    """
    tensors = header.tensors
    for name, tensor in tensors.items():
        if tensor.kind not in READABLE:
            *some, last = READABLE
            raise UnsupportedModel(
                f"{header.path}: tensor {name!r} is {tensor.kind}, which cannot be read exactly; "
                f"choose a {', '.join(some)} or {last} version of the model, or {instead(header)}",
                tensor=name,
                kind=tensor.kind,
            )
    if llama.layers * len(_LAYER) > len(tensors):
        raise damaged(header.path, f"it says {llama.layers} layers but has only {len(tensors)} tensors")
    vocabulary = (llama.vocabulary, llama.hidden)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": vocabulary, "output_norm": (llama.hidden,)}
    if "output.weight" in tensors:  # else the head is the embedding
        shapes["output"] = vocabulary
    names = {name: _TOP[name] for name in shapes}
    for index in range(llama.layers):
        for name, shape in llama.shapes().items():
            shapes[f"blk.{index}.{name}"] = shape
            names[f"blk.{index}.{name}"] = f"model.layers.{index}.{_LAYER[name]}"
    found = {name.removesuffix(".weight") for name in tensors if name.endswith(".weight")}
    if missing := sorted(shapes.keys() - found):
        raise damaged(header.path, f"it lacks {len(missing)} tensors, such as {missing[0]}.weight")
    known = {f"{name}.weight" for name in shapes}
    if extra := sorted(tensors.keys() - known):
        raise UnsupportedModel(
            f"{header.path} has tensors that a plain llama has not ({', '.join(map(repr, extra[:3]))}); "
            f"choose {instead(header)} instead"
        )
    for name, shape in shapes.items():
        tensor = tensors[f"{name}.weight"]
        if tensor.shape != shape:
            raise damaged(header.path, f"{name}.weight is {list(tensor.shape)} but its metadata says {list(shape)}")
        if len(shape) == 1 and READABLE[tensor.kind][2]:
            raise UnsupportedModel(f"{header.path}: {name}.weight is packed as {tensor.kind}; choose another file")
    return names


def _load_weights(header: Header, llama: _Llama, names: Mapping[str, str]) -> dict[str, mx.array]:
    try:
        loaded = mx.load(str(header.path), format="gguf")
        assert isinstance(loaded, dict)
    except RuntimeError as error:
        raise UnsupportedModel(f"{header.path} cannot be read by MLX ({error}); choose another file") from error
    weights: dict[str, mx.array] = {}
    for name, array in loaded.items():
        module, part = name.rsplit(".", 1)  # part: weight, scales or biases
        if module.endswith(".attn_q"):
            array = _rows_unpermuted(array, llama.heads)  # noqa: PLW2901
        elif module.endswith(".attn_k"):
            array = _rows_unpermuted(array, llama.kv_heads)  # noqa: PLW2901
        weights[f"{names[module]}.{part}"] = array
    return _halved_if_exact(weights)


def _rows_unpermuted(array: mx.array, heads: int) -> mx.array:
    """Undo the interleaving of each head's two rotary halves.

    llama.cpp's converter (`LlamaModel.permute`) rotates neighbouring rows, mlx-lm the halves of a head. Whole rows
    move, so it is the same for packed weights and for their scales and biases.
    """
    rows, *rest = array.shape
    return array.reshape(heads, rows // heads // 2, 2, *rest).swapaxes(1, 2).reshape(rows, *rest)


def _halved_if_exact(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Float32 tensors as float16, when not one value changes.

    Norms are stored as float32 in every GGUF, mostly without needing it, and would make the whole model compute in
    float32 where its packed weights say float16.
    """
    halves = {name: array.astype(mx.float16) for name, array in weights.items() if array.dtype == mx.float32}
    exact = (mx.array_equal(half.astype(mx.float32), weights[name]).item() for name, half in halves.items())
    return weights | halves if all(exact) else weights


def _config(
    header: Header, llama: _Llama, names: Mapping[str, str], weights: Mapping[str, mx.array]
) -> dict[str, object]:
    packing = {
        module: {"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"}
        for name, module in names.items()
        if (bits := READABLE[header.tensors[f"{name}.weight"].kind][2])
    }
    config: dict[str, object] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": llama.hidden,
        "intermediate_size": llama.intermediate,
        "num_hidden_layers": llama.layers,
        "num_attention_heads": llama.heads,
        "num_key_value_heads": llama.kv_heads,
        "head_dim": llama.head_dim,
        "max_position_embeddings": llama.context,
        "rms_norm_eps": llama.eps,
        "rope_theta": llama.rope_theta,
        "vocab_size": llama.vocabulary,
        "tie_word_embeddings": "output" not in names,
        "bos_token_id": llama.bos_id,
        "eos_token_id": header.whole("tokenizer.ggml.eos_token_id"),
        "torch_dtype": str(weights["model.norm.weight"].dtype).removeprefix("mlx.core."),
    }
    if packing:
        # The first line is what a module without an entry would have; each has one.
        config["quantization"] = {"group_size": GROUP_SIZE, "bits": 4, "mode": "affine"} | packing
    return config


def _write_tokenizer(header: Header, llama: _Llama, into: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    kind, pre = header.text("tokenizer.ggml.model"), header.metadata.get("tokenizer.ggml.pre")
    splits = {
        "gpt-2": [],
        "smollm": [pre_tokenizers.Digits(individual_digits=True)],
    }
    if kind != "gpt2" or pre not in splits:
        raise UnsupportedModel(
            f"{header.path}: its tokenizer ({kind!r}, {pre!r}) is not supported; choose {instead(header)} instead"
        )
    tokens, types = header.items("tokenizer.ggml.tokens", str), header.items("tokenizer.ggml.token_type", int)
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(types) or len(tokens) > llama.vocabulary:
        raise damaged(
            header.path, f"it has {len(vocabulary)} tokens, {len(types)} token types, {llama.vocabulary} embeddings"
        )
    merges: list[tuple[str, str]] = []
    for merge in header.items("tokenizer.ggml.merges", str):
        left, _, right = merge.partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            raise damaged(header.path, f"its tokenizer merges {merge!r}, which is not in its vocabulary")
        merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits[pre], pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    for added, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        chosen = [token for token, kind in zip(tokens, types, strict=True) if kind == added]
        tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token in chosen])

    settings: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": llama.context,
        "clean_up_tokenization_spaces": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if (at := f"tokenizer.ggml.{key}_token_id") in header.metadata:
            if (number := header.whole(at)) >= len(tokens):
                raise damaged(header.path, f"its {at} is {number}, but it has {len(tokens)} tokens")
            settings[f"{name}_token"] = tokens[number]
    if header.metadata.get("tokenizer.ggml.add_bos_token"):
        bos = tokens[llama.bos_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, llama.bos_id)]
        )
    if (template := header.metadata.get("tokenizer.chat_template")) is not None:
        settings["chat_template"] = template
    (into / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    _write_json(into / "tokenizer_config.json", settings)


def _write_weights(path: Path, weights: dict[str, mx.array]) -> None:
    mx.eval(weights)  # so that what fails below is the writing
    try:
        mx.save_safetensors(str(path), weights, metadata={"format": "mlx"})
    except RuntimeError as error:
        raise OSError(errno.EIO, str(error)) from error


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
