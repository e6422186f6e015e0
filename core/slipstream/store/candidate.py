"""A model as the question of its fit sees it: how many numbers it has, and how they are stored. Reads headers only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from slipstream.errors import ModelIncomplete
from slipstream.models.gguf_architecture import Decoder, module_names
from slipstream.models.gguf_header import byte_count, read_header
from slipstream.store import files, heads

DRAFTER_BITS = 4  # to which drafters are packed on Metal, as in the engine
_PACKED_OVERHEAD = 0.5  # bits a weight: a scale and an offset of 16 bits for 64
READ_AHEAD = 12  # tensors, seen with MLX 0.32 (tests/bench/fit.py)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model whose fit is asked: its config and its weights, whether on disk or on the hub."""

    config: Mapping[str, Any]
    stored: int  # bytes of the weights that are loaded, as they are stored
    elements: int  # how many numbers these are
    element_bytes: int  # of the type it computes in on a GPU
    in_flight: int = 0  # bytes of stored weights that wait to be converted while they are read

    @property
    def packed(self) -> int:
        """Bytes as a drafter where drafters are packed when they are loaded."""
        return int(self.elements * (DRAFTER_BITS + _PACKED_OVERHEAD) / 8)


_NOT_LOADED = ("vision_tower.", "visual.", "vision_model.", "audio_tower.", "multi_modal_projector.", "embed_vision.")
_SIZES = {"F64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def of_folder(folder: Path) -> Candidate:
    """A model folder, by its config and the headers of its weights. Raises ModelIncomplete."""
    own = {part.name for part in heads.find(folder).values()}  # loaded as a drafter, if at all
    tensors = [
        (name, tensor)
        for path in sorted(folder.glob("*.safetensors"))
        for name, tensor in files.tensors(path).items()
        if name not in own and not any(part in name for part in _NOT_LOADED)
    ]
    if not tensors:
        raise ModelIncomplete(f"{folder} has no .safetensors weights; finish the download, or choose an MLX model")
    return _candidate(files.read_config(folder), tensors)


def of_drafter(folder: Path) -> Candidate:
    """The same for a drafter: of a folder with MTP heads, these alone. Raises ModelIncomplete."""
    found = heads.find(folder)
    if not found:
        return of_folder(folder)
    config = _of_heads(files.read_config(folder))
    return _candidate(config, [(part.name, part.tensor) for part in found.values()])


def _of_heads(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config as far as it speaks of MTP heads: one layer of the model's."""
    text: Mapping[str, Any] = config.get("text_config") or config
    packed = {key: config[key] for key in ("quantization", "quantization_config") if key in config}
    return {**text, "num_hidden_layers": 1, **packed}


def of_gguf(file: Path) -> Candidate:
    """A GGUF file, without converting it. Raises what reading its header raises, and UnsupportedModel."""
    header = read_header(file)
    decoder = Decoder.read(header)
    module_names(header, decoder)
    sizes = {name: byte_count(file, name, tensor.kind, tensor.shape) for name, tensor in header.tensors.items()}
    config = {
        "model_type": decoder.kind,
        "hidden_size": decoder.hidden,
        "intermediate_size": decoder.intermediate,
        "num_hidden_layers": decoder.layers,
        "num_attention_heads": decoder.heads,
        "num_key_value_heads": decoder.kv_heads,
        "head_dim": decoder.head_dim,
        "vocab_size": decoder.vocabulary,
        "max_position_embeddings": decoder.context,
    }
    elements = sum(math.prod(tensor.shape) for tensor in header.tensors.values())
    return Candidate(config, sum(sizes.values()), elements, 2, _in_flight(list(sizes.values())))


def _candidate(config: Mapping[str, Any], tensors: Sequence[tuple[str, files.Tensor]]) -> Candidate:
    packed: Any = config.get("quantization") or {}
    stored = elements = 0
    plain: dict[int, int] = {}  # bytes of a number -> how many numbers are stored so
    sizes: list[int] = []
    for name, tensor in tensors:
        stored += tensor.bytes
        sizes.append(tensor.bytes)
        count = math.prod(tensor.shape)
        if tensor.dtype == "U32" and packed:
            elements += tensor.bytes * 8 // _bits(packed, name)
        elif name.endswith((".scales", ".biases")) and packed:
            plain[_SIZES.get(tensor.dtype, 2)] = plain.get(_SIZES.get(tensor.dtype, 2), 0) + count
        else:
            elements += count
            plain[_SIZES.get(tensor.dtype, 2)] = plain.get(_SIZES.get(tensor.dtype, 2), 0) + count
    element_bytes = max(plain, key=lambda size: plain[size], default=2)
    return Candidate(config, stored, elements, 4 if element_bytes >= 4 else 2, _in_flight(sizes))


def _in_flight(sizes: Sequence[int]) -> int:
    """MLX reads ahead of its arithmetic by about a dozen tensors; the largest, the embedding, is among them once."""
    large = [size for size in sizes if size >= 2**20]
    return int(max(sizes) + READ_AHEAD * median(large)) if large else sum(sizes)


def _bits(packed: Mapping[str, Any], name: str) -> int:
    """How many bits a packed tensor's numbers have: its layer's own setting, else the model's."""
    layer: Any = packed.get(name.rpartition(".")[0])
    own = layer.get("bits") if isinstance(layer, Mapping) else None
    return int(own or packed.get("bits") or 4)


def of_config(config: Mapping[str, Any], stored: int) -> Candidate:
    """A model on the hub: its config, and how large its files of weights are."""
    if str(config.get("model_type")).endswith("_mtp"):
        config = _of_heads(config)
    packed: Any = config.get("quantization") or config.get("quantization_config") or {}
    bits = packed.get("bits")
    if isinstance(bits, int):
        group = packed.get("group_size") or 64
        elements = int(stored * 8 / (bits + 32 / group))
    else:
        elements = stored // (4 if files.quantisation(config) == "float32" else 2)
    return Candidate(config, stored, elements, 4 if files.quantisation(config) == "float32" else 2)
