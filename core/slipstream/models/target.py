"""The target: an mlx-lm model whose forward also hands out the hidden states that drafters read ("taps")."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.errors import InvalidRequest, UnsupportedModel, reason
from slipstream.models import few_rows, joined, on_cpu
from slipstream.models.cache import TargetCache
from slipstream.models.families import families
from slipstream.models.fused import Fused
from slipstream.models.host import number, worst
from slipstream.models.packed import Packing, Switch, open_up, packed_layers, spans
from slipstream.models.parts import Parts, part_of
from slipstream.models.recurrence import noting, watch
from slipstream.models.taps import Recorder, tap

logger = logging.getLogger(__name__)

EMBEDDING_TAP = -1  # the input of the first layer, after the embedding scale
TOLERANCE = 1e-2  # of the largest logit: what half-precision arithmetic in another order may change
# The same of the logits' own size, root mean square, where sums are rounded elsewhere, too. In bfloat16 mlx-lm's own
# results are up to 0.15 from those of single precision.
FUSED_TOLERANCE = {mx.float32: 0.01, mx.float16: 0.05, mx.bfloat16: 0.2}
_CONTEXT_KEYS = ("max_position_embeddings", "max_sequence_length", "model_max_length", "n_positions", "seq_length")


@dataclass(slots=True)
class Forward:
    """What one pass computed. Lazy: nothing has run until somebody evaluates it."""

    logits: mx.array | None  # [rows asked for, vocabulary]
    taps: dict[int, mx.array]  # layer -> [tokens, hidden]: the residual stream at that layer's output


class Target:
    """Wraps a loaded mlx-lm model. Owned by the engine thread.

    A model whose parts, put together here, do not give the model's own logits is run as it is: `has_taps` is False
    then, and only drafters that read none can be used. Raises UnsupportedModel when it gives no numbers at all.
    """

    def __init__(self, model: nn.Module, config: dict[str, Any]) -> None:
        self.model = model
        self.model_type = str(config.get("model_type", ""))
        text_config: dict[str, Any] = config.get("text_config") or config
        self.context = _context_of(text_config)
        self._packs: set[int] = set()  # bits that keys and values were found to pack into
        self._recorder = Recorder()
        watch(model)
        self._probe = mx.array([1, 2, 0, 2, 1])  # ids that any vocabulary has
        own = model(self._probe[None], cache=self.make_cache().layers)[0]  # [tokens, vocabulary]
        self.vocabulary = own.shape[-1]
        self._logits_dtype = own.dtype
        self._fused: Fused | None = None
        self._parts = parts = self._take_apart(own)
        if parts is None:
            self.layer_count, self.hidden_size, self.embed_scale = 0, 0, 1.0
        else:
            shape, args = parts.shape, parts.args
            for index, layer in enumerate(parts.layers):
                tap(layer, index, len(parts.layers), self._recorder)
            if mx.cuda.is_available():
                few_rows.open_up(parts.layers)
            if mx.default_device() == mx.gpu or on_cpu.is_ours():
                joined.join(parts.layers, lambda: self._probed(parts), TOLERANCE)
            if on_cpu.is_ours():
                on_cpu.prepare(parts.layers, parts.head or parts.embed)
            self.layer_count = len(parts.layers) * shape.loops(args)  # steps, where layers are gone through again
            self.hidden_size = int(args.hidden_size)
            self.embed_scale = float(shape.embed_scale(args))
        self._fused = self._try_fusing()
        self.fixed_kinds = self._fixed_kinds()
        self._switch = Switch()

    @property
    def has_taps(self) -> bool:
        """Whether the hidden states inside can be read, and the tables bound to."""
        return self._parts is not None

    @property
    def is_fused(self) -> bool:
        """Whether forwards of few rows are run in few operations."""
        return self._fused is not None

    @property
    def dtype(self) -> mx.Dtype:
        """The type that hidden states have."""
        return self._logits_dtype if self._parts is None else self._parts.embed(mx.array([[0]])).dtype

    @property
    def read_bytes(self) -> int:
        """Of weights, for one token: not the embedding unless it is also the head, and of experts those that are asked.

        Where a model does not say how many experts it asks, all are counted.
        """
        total = 0.0
        embed = None if self._parts is None or self._parts.head is None else self._parts.embed
        args = getattr(self.model, "args", None) if self._parts is None else self._parts.args
        asked: int = getattr(args, "num_experts_per_tok", None) or 0
        for _, module in self.model.named_modules():
            if module is embed:
                continue
            own = sum(array.nbytes for array in module.parameters().values() if isinstance(array, mx.array))
            experts: int = getattr(module, "num_experts", 0)
            total += own * asked / experts if 0 < asked <= experts else own
        return round(total)

    def make_cache(self, kv_bits: int = 0) -> TargetCache:
        """An empty cache. Raises InvalidRequest when keys and values of this model cannot be packed."""
        if kv_bits and kv_bits not in self._packs:
            self._try_packing(kv_bits)
            self._packs.add(kv_bits)
        return TargetCache(self.model, kv_bits)

    def _try_packing(self, kv_bits: int) -> None:
        """Some head sizes and some kinds of attention cannot be packed, and only running them tells."""
        try:
            mx.eval(self.forward(self._probe, TargetCache(self.model, kv_bits)).logits)
        except (ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise InvalidRequest(
                f"--kv-bits {kv_bits} does not work with this model ({reason(error)}); use --kv-bits 0",
                option="kv_bits",
            ) from error

    def forward(
        self, tokens: mx.array, cache: TargetCache, taps: Sequence[int] = (), rows: int | None = None
    ) -> Forward:
        """Run `tokens` [n] after what the cache holds, and add them to it.

        `rows`: logits of the last so many tokens only, 0 for none (the head is not run). None is for a round: logits
        of all, and every layer of the cache can take the tokens back.
        """
        count = tokens.shape[0]
        parts, is_round = self._parts, rows is None
        if is_round and self._fused is not None and self._fused.covers([cache], [count]):
            return Forward(*self._fused.forward(tokens, [cache], [count], taps))
        wanted = count if rows is None else min(rows, count)
        cache.start(count, noted=is_round)
        with noting() if is_round else nullcontext(), self._recorder.recording(taps) as recorded:
            out: mx.array = (self.model if parts is None else parts.body)(tokens[None], cache=cache.layers)
        cache.advance(count)
        last = out[0, count - wanted :]
        logits = (last if parts is None else parts.logits(last)) if wanted else None
        return Forward(logits, {layer: rows_[0] for layer, rows_ in recorded.items()})

    def describe(self, cache: TargetCache, taps: Sequence[int], most: int) -> None:
        """Prepare rounds of up to `most` tokens after what the cache holds, where the first takes longer."""
        if self._fused is not None and self._fused.covers([cache], [most]):
            self._fused.describe(cache, taps, most)

    @property
    def packing(self) -> Packing | None:
        """How rows share a forward. None: `forward_rows` runs them one by one."""
        return self._switch.packing

    def pack(self) -> None:
        """Find out how several rows can share a forward. Before it they are run one by one."""
        if self._parts is None or self.packing is not None:
            return
        open_up(self._parts.layers, self._switch)
        for packing in Packing:
            self._switch.packing = packing
            try:
                difference = self._packed_difference()
            except (AttributeError, TypeError, ValueError, AssertionError, IndexError) as error:
                logger.debug("%s cannot be packed by %s: %s", self.model_type, packing, error)
                continue
            if difference <= TOLERANCE:
                return
            logger.debug("%s packed by %s: logits differ by %.3g", self.model_type, packing, difference)
        self._switch.packing = None
        logger.warning("architecture %r: rows are run one by one, which is slower", self.model_type)

    def _packed_difference(self) -> float:
        """Between logits of rows that shared forwards and of the same rows alone, in units of the largest."""
        alone, together = [self.make_cache() for _ in range(3)], [self.make_cache() for _ in range(3)]
        differences: list[float] = []
        for widths in ((2, 1, 3), (1, 1, 1), (1, 3, 1)):  # the first begins the rows, as no round does
            tokens = [self._probe[:width] for width in widths]
            rows = self.forward_rows(list(zip(tokens, together, strict=True)))
            for own, cache, row in zip(tokens, alone, rows, strict=True):
                expected = self.forward(own, cache).logits
                assert expected is not None
                assert row.logits is not None
                scale = mx.maximum(mx.max(mx.abs(expected)), 1.0)
                differences.append(number((mx.max(mx.abs(row.logits - expected)) / scale).astype(mx.float32)))
        return worst(differences)

    def forward_rows(self, rows: Sequence[tuple[mx.array, TargetCache]], taps: Sequence[int] = ()) -> list[Forward]:
        """A round of several requests: tokens [n] of each after what its cache holds, as `forward` with `rows=None`.

        One request is `forward` itself.
        """
        parts = self._parts
        caches = [cache for _, cache in rows]
        widths = [tokens.shape[0] for tokens, _ in rows]
        if len(rows) > 1 and self._fused is not None and self._fused.covers(caches, widths):
            together = mx.concatenate([tokens for tokens, _ in rows])
            return _parted(*self._fused.forward(together, caches, widths, taps), widths)
        if len(rows) <= 1 or parts is None or self.packing is None:
            return [self.forward(tokens, cache, taps) for tokens, cache in rows]
        layers = packed_layers([cache.layers for cache in caches], [cache.length for cache in caches], widths)
        for cache, width in zip(caches, widths, strict=True):
            cache.start(width, noted=True)
        self._switch.is_on = True
        try:
            with noting(), self._recorder.recording(taps, starts_early=True) as recorded:
                out: mx.array = parts.body(mx.concatenate([tokens for tokens, _ in rows])[None], cache=layers)
        finally:
            self._switch.is_on = False
        for cache, width in zip(caches, widths, strict=True):
            cache.advance(width)
        return _parted(parts.logits(out[0]), {layer: each[0] for layer, each in recorded.items()}, widths)

    def body(self, tokens: mx.array, cache: Sequence[Any] | None = None) -> mx.array:
        """Hidden states after the final norm [texts, n, hidden] of tokens [texts, n]. Needs `has_taps`, like the next.

        `cache`: one for each layer, as mlx-lm's models use them. None: each text begins here.
        """
        assert self._parts is not None
        return self._parts.body(tokens, cache=cache)

    def states(self, tokens: mx.array, taps: Sequence[int]) -> tuple[mx.array, mx.array]:
        """Texts from their beginning [texts, n]: tapped layers side by side [texts, n, taps * hidden], and `body`."""
        with self._recorder.recording(taps) as recorded:
            hidden = self.body(tokens)
        return mx.concatenate([recorded[tap] for tap in taps], axis=-1), hidden

    @property
    def head(self) -> Any:
        """The module whose weight is the output projection: the embedding, where it is tied. Any: mlx-lm's own."""
        assert self._parts is not None
        return self._parts.embed if self._parts.head is None else self._parts.head

    @property
    def final_norm(self) -> mx.array | None:
        """What the last hidden states are multiplied by before the head, where the model keeps just that."""
        assert self._parts is not None
        module: Any = attrgetter(self._parts.shape.norm)(self._parts.body)
        is_plain = isinstance(module, nn.RMSNorm)  # others keep what is added to one
        return module.weight if is_plain else None

    @property
    def has_plain_head(self) -> bool:
        """Whether logits are the output projection and nothing else."""
        assert self._parts is not None
        return self._parts.shape.is_plain_head

    def logits_of(self, hidden: mx.array) -> mx.array:
        """The model's logits [..., vocabulary] of hidden states after the final norm."""
        assert self._parts is not None
        return self._parts.logits(hidden)

    def embed_rows(self, tokens: mx.array) -> mx.array:
        """Raw embedding rows [n, hidden], without the model's embedding scale."""
        assert self._parts is not None
        return self._parts.embed(tokens)

    def head_rows(self, hidden: mx.array) -> mx.array:
        """The raw output projection of [n, hidden], without the model's own scale or softcap."""
        assert self._parts is not None
        return self._parts.head_rows(hidden)

    def head_part(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        """`head_rows` for the tokens `ids` [m] alone: from [n, hidden] to [n, m], without the cost of the others."""
        assert self._parts is not None
        return part_of(self._parts.embed if self._parts.head is None else self._parts.head, ids)

    def norm_rows(self, hidden: mx.array) -> mx.array:
        """The final norm of [n, hidden]: what the last tap becomes in front of the head."""
        assert self._parts is not None
        return attrgetter(self._parts.shape.norm)(self._parts.body)(hidden)

    @property
    def args(self) -> Any:
        """mlx-lm's ModelArgs of the text model; Any: each architecture has its own."""
        assert self._parts is not None
        return self._parts.args

    def _take_apart(self, own: mx.array) -> Parts | None:
        """The parts that give the model's own logits on a few tokens. None: its layout is not known."""
        expected = own.astype(mx.float32)
        scale = max(number(mx.max(mx.abs(expected))), 1.0)
        if not scale < float("inf"):  # NaN too
            raise UnsupportedModel(
                f"architecture {self.model_type!r}: the model gives no numbers ({scale}), so its weights are damaged "
                "or need another precision; try --dtype float32 or choose another model",
            )
        for shape in families(_file_of(self.model)):
            try:
                parts = Parts.of(self.model, shape)
                difference = number(mx.max(mx.abs(expected - self._probed(parts))))
            except (AttributeError, TypeError, ValueError) as error:
                logger.debug("%s is not laid out as %s: %s", self.model_type, shape, error)
                continue
            if difference <= TOLERANCE * scale:
                return parts
            logger.debug("%s: logits differ from the model's own by %.3g", self.model_type, difference)
        logger.warning(
            "architecture %r is not known inside: it runs plain and with lookup, but not with a drafter that reads "
            "its hidden states",
            self.model_type,
        )
        return None

    def _probed(self, parts: Parts) -> mx.array:
        """Logits of a few tokens [tokens, vocabulary], in float32."""
        hidden = parts.body(self._probe[None], cache=self.make_cache().layers)[0]
        return parts.logits(hidden).astype(mx.float32)

    def _try_fusing(self) -> Fused | None:
        """The forward of few rows in few operations, where that can be and gives the model's own logits."""
        parts = self._parts
        if parts is None or not mx.cuda.is_available() or self.embed_scale != 1.0 or parts.shape.loops(parts.args) != 1:
            return None
        norm = attrgetter(parts.shape.norm)(parts.body)
        fused = Fused.of(parts.embed, parts.layers, norm, parts.logits, self.head if self.has_plain_head else None)
        cache = self.make_cache()
        if fused is None or not cache.is_in_place:
            return None
        expected = self._probed(parts)
        differences: list[float] = []
        try:
            self.forward(self._probe[:2], cache, rows=0)
            for start, end in ((2, 3), (3, 5)):  # the second reads what the first wrote
                logits, _ = fused.forward(self._probe[start:end], [cache], [end - start], ())
                differences.append(_apart(logits, expected[start:end]))
        except (RuntimeError, ValueError) as error:
            logger.warning("each forward is described anew, which is slower: %s", str(error).splitlines()[0])
            return None
        if (difference := worst(differences)) <= FUSED_TOLERANCE.get(self.dtype, TOLERANCE):
            return fused
        logger.warning("each forward is described anew, which is slower: ours is off by %.2g of the logits", difference)
        return None

    def _fixed_kinds(self) -> tuple[str, ...]:
        """Kinds of cache that do not come back to the same state: with any of them, nothing may be drafted.

        Decided by trying: a round of which two rows are kept must leave what a round of those two leaves.
        """
        whole, part = self.make_cache(), self.make_cache()
        if all(layer.is_trimmable() for layer in whole.layers):
            return ()
        for cache, count in ((whole, 4), (part, 2)):
            self.forward(self._probe[:1], cache, rows=0)
            self.forward(self._probe[1 : 1 + count], cache)
        if whole.fixed_kinds:
            return whole.fixed_kinds
        whole.rewind(3)
        after, expected = (self.forward(self._probe[3:], cache).logits for cache in (whole, part))
        assert after is not None
        assert expected is not None
        difference = number(mx.max(mx.abs(after - expected).astype(mx.float32)))
        scale = number(mx.max(mx.abs(expected)).astype(mx.float32))
        if difference <= TOLERANCE * max(scale, 1.0):
            return ()
        logger.warning("architecture %r does not come back to its state: off by %.3g", self.model_type, difference)
        return whole.state_kinds


def _parted(logits: mx.array, taps: Mapping[int, mx.array], widths: Sequence[int]) -> list[Forward]:
    """Each row's part of what was computed of all tokens."""
    return [
        Forward(logits[start:end], {layer: rows[start:end] for layer, rows in taps.items()})
        for start, end in spans(widths)
    ]


def _apart(logits: mx.array, expected: mx.array) -> float:
    """How far logits [tokens, vocabulary] are from others, in units of those (root mean square, without their mean)."""
    around = expected - mx.mean(expected, axis=-1, keepdims=True)
    return number(mx.sqrt(mx.mean(mx.square(logits - expected)) / mx.maximum(mx.mean(mx.square(around)), 1e-6)))


def _context_of(config: Mapping[str, Any]) -> int:
    """How many tokens the model was made for. Raises UnsupportedModel."""
    key = next((key for key in _CONTEXT_KEYS if config.get(key)), None)
    if key is None:
        return 4096
    if not isinstance(config[key], int | float) or not 1 <= config[key] < float("inf"):
        raise UnsupportedModel(f"config.json says {key} is {config[key]!r}, which no model can have; choose another")
    return int(config[key])


def _file_of(model: nn.Module) -> str:
    """The name of mlx-lm's model file, which several model types may share."""
    return type(model).__module__.rpartition(".")[2]
