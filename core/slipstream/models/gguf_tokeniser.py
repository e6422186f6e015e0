"""A GGUF file's tokeniser as Hugging Face's files: byte-level BPE, with the splitting that the file names."""

from __future__ import annotations

import json
from pathlib import Path

from slipstream.errors import UnsupportedModel
from slipstream.models.gguf_architecture import Decoder, instead
from slipstream.models.gguf_header import Header, damaged

_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type
# What Qwen's own tokenizer.json splits by, since Qwen 2.
_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_tokenizer(header: Header, decoder: Decoder, into: Path) -> None:
    """tokenizer.json and tokenizer_config.json. Raises UnsupportedModel for another kind, ModelIncomplete, OSError."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    kind, pre = header.text("tokenizer.ggml.model"), header.metadata.get("tokenizer.ggml.pre")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    splits: dict[object, list[pre_tokenizers.PreTokenizer]] = {
        "gpt-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "qwen2": [pre_tokenizers.Split(Regex(_QWEN_WORDS), "isolated"), bytes_only],
    }
    if kind != "gpt2" or pre not in splits:
        raise UnsupportedModel(
            f"{header.path}: its tokenizer ({kind!r}, {pre!r}) is not supported; choose {instead(header)} instead"
        )
    tokens, types = header.items("tokenizer.ggml.tokens", str), header.items("tokenizer.ggml.token_type", int)
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(types) or len(tokens) > decoder.vocabulary:
        raise damaged(
            header.path, f"it has {len(vocabulary)} tokens, {len(types)} token types, {decoder.vocabulary} embeddings"
        )
    merges: list[tuple[str, str]] = []
    for merge in header.items("tokenizer.ggml.merges", str):
        left, _, right = merge.partition(" ")
        if not {left, right, left + right} <= vocabulary.keys():
            raise damaged(header.path, f"its tokenizer merges {merge!r}, which is not in its vocabulary")
        merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits[pre])
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    for added, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        chosen = [token for token, kind in zip(tokens, types, strict=True) if kind == added]
        tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token in chosen])

    settings: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": decoder.context,
        "clean_up_tokenization_spaces": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if (at := f"tokenizer.ggml.{key}_token_id") in header.metadata:
            if (number := header.whole(at)) >= len(tokens):
                raise damaged(header.path, f"its {at} is {number}, but it has {len(tokens)} tokens")
            settings[f"{name}_token"] = tokens[number]
    if header.metadata.get("tokenizer.ggml.add_bos_token") and decoder.bos_id is not None:
        bos = tokens[decoder.bos_id]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, decoder.bos_id)]
        )
    if (template := header.metadata.get("tokenizer.chat_template")) is not None:
        settings["chat_template"] = template
    (into / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    (into / "tokenizer_config.json").write_text(text, encoding="utf-8")
