"""Which architectures of GGUF are read, how their tensors are called and shaped, and what a header says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipstream.errors import UnsupportedModel
from slipstream.models.gguf_header import READABLE, Header, damaged

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""GGUF's names of modules to mlx-lm's."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """What distinguishes one decoder from a plain llama. `permuted`: llama.cpp rotates neighbouring rows of a head."""

    label: str  # Hugging Face's
    permuted: bool = False
    biases: bool = False  # of queries, keys and values
    head_norms: bool = False  # of queries and keys


ARCHITECTURES = {
    "llama": Architecture("LlamaForCausalLM", permuted=True),
    "qwen2": Architecture("Qwen2ForCausalLM", biases=True),
    "qwen3": Architecture("Qwen3ForCausalLM", head_norms=True),
}
"""By `general.architecture`, which is mlx-lm's model type too."""

DRAFTER_GGUFS = ("dflash", "dspark")  # these are drafters, which `drafters/gguf.py` reads


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model as its header describes it."""

    kind: str
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
    bos_id: int | None

    @property
    def architecture(self) -> Architecture:
        return ARCHITECTURES[self.kind]

    @classmethod
    def read(cls, header: Header) -> Decoder:
        """Raises UnsupportedModel, naming what is not supported and what to use instead, and ModelIncomplete."""
        path = header.path
        kind = header.text("general.architecture")
        if kind not in ARCHITECTURES:
            raise UnsupportedModel(
                f"{path}: GGUF files of architecture {kind!r} are not supported ({', '.join(ARCHITECTURES)} are); "
                f"choose {instead(header)} instead",
                architecture=kind,
            )
        heads, hidden = header.whole(f"{kind}.attention.head_count"), header.whole(f"{kind}.embedding_length")
        kv_heads = header.whole(f"{kind}.attention.head_count_kv", heads)
        head_dim = header.whole(f"{kind}.attention.key_length", hidden // max(heads, 1))
        if not (heads and kv_heads and head_dim) or heads % kv_heads or head_dim % 2:
            raise damaged(path, f"it says {heads} heads, {kv_heads} key heads, {head_dim} values each")
        scaling: object = header.metadata.get(f"{kind}.rope.scaling.type", "none")
        odd = {
            "experts": header.whole(f"{kind}.expert_count", 0) != 0,
            "scaled positions": scaling != "none" or "rope_freqs.weight" in header.tensors,
            "partial rotation": header.whole(f"{kind}.rope.dimension_count", head_dim) != head_dim,
            "values of another width": header.whole(f"{kind}.attention.value_length", head_dim) != head_dim,
            "heads of another width": kind == "qwen2" and head_dim * heads != hidden,
        }
        if found := [what for what, is_there in odd.items() if is_there]:
            raise UnsupportedModel(
                f"{path} uses {' and '.join(found)}, which GGUF conversion does not support; "
                f"choose {instead(header)} instead"
            )
        embedding = header.tensors.get("token_embd.weight")
        if embedding is None:
            raise damaged(path, "it has no token_embd.weight")
        bos = "tokenizer.ggml.bos_token_id"
        return cls(
            kind=kind,
            hidden=hidden,
            intermediate=header.whole(f"{kind}.feed_forward_length"),
            layers=header.whole(f"{kind}.block_count"),
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            context=header.whole(f"{kind}.context_length"),
            eps=header.number(f"{kind}.attention.layer_norm_rms_epsilon"),
            rope_theta=header.number(f"{kind}.rope.freq_base", 10000.0),
            vocabulary=embedding.shape[0],
            bos_id=header.whole(bos) if bos in header.metadata else None,
        )

    def layer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor of one layer, by its GGUF name without the layer."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (self.hidden,),
            "attn_q.weight": (q, self.hidden),
            "attn_k.weight": (kv, self.hidden),
            "attn_v.weight": (kv, self.hidden),
            "attn_output.weight": (self.hidden, q),
            "ffn_norm.weight": (self.hidden,),
            "ffn_gate.weight": (self.intermediate, self.hidden),
            "ffn_up.weight": (self.intermediate, self.hidden),
            "ffn_down.weight": (self.hidden, self.intermediate),
        }
        if self.architecture.biases:
            shapes |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        if self.architecture.head_norms:
            shapes |= {"attn_q_norm.weight": (self.head_dim,), "attn_k_norm.weight": (self.head_dim,)}
        return shapes


def instead(header: Header) -> str:
    """The repository to use when the file cannot be: the one it was made from, where it says so."""
    where = ("general.base_model.0.repo_url", "general.source.huggingface.repository", "general.source.repo_url")
    for key in where:
        repository: object = header.metadata.get(key)
        if isinstance(repository, str) and repository:
            return repository.removeprefix("https://huggingface.co/") + " or an MLX conversion of it"
    name: object = header.metadata.get("general.name")
    return f"an MLX conversion of {name}" if isinstance(name, str) and name else "this model as an MLX folder"


def module_names(header: Header, decoder: Decoder) -> Mapping[str, str]:
    """GGUF's names of modules to mlx-lm's.

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
    layer = decoder.layer_shapes()
    if decoder.layers * len(layer) > len(tensors):
        raise damaged(header.path, f"it says {decoder.layers} layers but has only {len(tensors)} tensors")
    vocabulary = (decoder.vocabulary, decoder.hidden)
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": vocabulary, "output_norm.weight": (decoder.hidden,)}
    if "output.weight" in tensors:  # else the head is the embedding
        shapes["output.weight"] = vocabulary
    names = {module: _TOP[module] for module in map(_module, shapes)}
    for index in range(decoder.layers):
        for name, shape in layer.items():
            shapes[f"blk.{index}.{name}"] = shape
            names[f"blk.{index}.{_module(name)}"] = f"model.layers.{index}.{_LAYER[_module(name)]}"
    if missing := sorted(shapes.keys() - tensors.keys()):
        raise damaged(header.path, f"it lacks {len(missing)} tensors, such as {missing[0]}")
    if extra := sorted(tensors.keys() - shapes.keys()):
        raise UnsupportedModel(
            f"{header.path} has tensors that a plain {decoder.kind} has not ({', '.join(map(repr, extra[:3]))}); "
            f"choose {instead(header)} instead"
        )
    for name, shape in shapes.items():
        tensor = tensors[name]
        if tensor.shape != shape:
            raise damaged(header.path, f"{name} is {list(tensor.shape)} but its metadata says {list(shape)}")
        if len(shape) == 1 and READABLE[tensor.kind][2]:
            raise UnsupportedModel(f"{header.path}: {name} is packed as {tensor.kind}; choose another file")
    return names


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]
