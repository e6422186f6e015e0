"""Native MTP heads: the small network a model was trained with to guess the token after next, used again and again.

Row t of its context is made of token t and of the target's last stream at the token before it. Guessing goes on from
the heads' own stream where the target has none yet (vLLM's `qwen3_next_mtp`, llama.cpp's `qwen35` do the same).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.qwen3_next import Qwen3NextAttention, Qwen3NextMLP, Qwen3NextSparseMoeBlock

from slipstream.drafters.context import Context
from slipstream.drafters.mtp_weights import NORMS, HeadWeights, Reading, prior
from slipstream.drafters.network import Tables, packing_of
from slipstream.drafters.protocol import Draw, Proposal
from slipstream.errors import PairMismatch
from slipstream.types import Mode

DEPTH = 4  # drafts a round: further ones are hardly ever kept
PENDING = 32  # committed tokens that wait for the next round's first pass, at most
_ROUTERS = ("mlp.gate", "mlp.shared_expert_gate")  # small, and choose experts: never packed
_NEEDED = ("partial_rotary_factor", "full_attention_interval", "linear_num_value_heads")


class Trunk(Tables, Protocol):
    """What the heads need of their target."""

    @property
    def args(self) -> Any: ...
    def norm_rows(self, hidden: mx.array) -> mx.array: ...


class MtpState:
    """One request's context. Tokens whose rows are not made yet wait with the streams they need."""

    def __init__(self, context: Context, length: int, streams: list[mx.array]) -> None:
        self.context = context  # rows of the first `context.length` tokens
        self.length = length
        self.pending: list[int] = []  # tokens context.length to length - 1
        self.streams = streams  # of the token before the first pending one, and of all from there on
        self.is_drafted = False  # the rows of all pending tokens and the last committed one are in the buffers


class Mtp:
    """`dtype` is what it computes in; `bits`: 0 for plain weights, 4 or 8 to pack them when loaded.

    Raises PairMismatch when the heads belong to another model.
    """

    mode = Mode.MTP

    def __init__(self, heads: HeadWeights, target: Trunk, *, dtype: mx.Dtype, bits: int) -> None:
        _check(heads, target)
        self.block = DEPTH
        self.taps = (target.layer_count - 1,)
        self._target = target
        self._dtype = dtype
        norms = [name for names in NORMS.values() for name in names]
        self._norms = {name: heads.tensors[f"{name}.weight"].astype(mx.float32) for name in norms}  # as stored
        self._network = _Network(_arguments(heads, target))
        try:
            self._network.load_weights(
                [(name, tensor.astype(mx.float32)) for name, tensor in heads.tensors.items()], strict=True
            )
        except ValueError as error:
            raise PairMismatch(
                f"the MTP heads in {heads.folder} do not fit {target.model_type} ({str(error)[:200]}); choose its own"
            ) from error
        if bits:
            nn.quantize(
                self._network,
                class_predicate=lambda path, layer: not path.endswith(_ROUTERS) and packing_of(layer, bits),
            )
        self._network.set_dtype(dtype)
        self._network.eval()
        self.read_as(prior(heads.tensors))
        mx.eval(self._network.parameters())

    @property
    def reading(self) -> Reading:
        return self._reading

    def read_as(self, reading: Reading) -> None:
        """Take the norms and the target's stream in another way. States made before are of no use."""
        self._reading = reading
        for group, names in NORMS.items():
            more = 1.0 if group in reading.offset else 0.0
            for name in names:
                weight = (self._norms[name] + more).astype(self._dtype)
                self._network.load_weights([(f"{name}.weight", weight)], strict=False)

    def begin(self) -> MtpState:
        # No stream comes before the first token; its row is made of zeros there.
        return MtpState(Context(1), 0, [mx.zeros((1, self._target.hidden_size), dtype=self._dtype)])

    def observe(self, state: MtpState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        stream = self._read(taps[self.taps[0]])
        if state.is_drafted:
            # The round's first pass made the rows up to that of the last committed token, which comes first here.
            state.context.length = state.length + 1
            state.pending, state.streams, state.is_drafted = list(tokens[1:]), [stream], False
        else:
            state.pending += tokens
            state.streams.append(stream)
        state.length += len(tokens)
        if len(state.pending) > PENDING:
            self._make_rows(state)

    def arrays(self, state: MtpState) -> list[mx.array]:
        return [*state.context.arrays(), *state.streams]

    def propose(self, state: MtpState, last: int, limit: int, draw: Draw) -> Proposal:
        hidden = self._extended(state, [*state.pending, last], mx.concatenate(state.streams))[-1:]
        state.is_drafted = True
        tokens: list[mx.array] = []
        logits: list[mx.array] = []
        for slot in range(min(limit, self.block)):
            if tokens:
                at = state.length + slot
                hidden = self._pass(state.context, self._embed(tokens[-1]), self._passed_on(hidden), at)
            row = self._logits(hidden)
            tokens.append(draw(row, slot))
            logits.append(row)
        rows = mx.concatenate(logits)
        drafts = mx.concatenate(tokens)
        return Proposal(drafts, _probability(rows, drafts), rows)

    def buffers(self, state: MtpState) -> dict[str, mx.array]:
        self._make_rows(state)
        return state.context.buffers()

    def restore(self, buffers: Mapping[str, mx.array], length: int) -> MtpState:
        """The stream at the last token was not kept: the next token's row is made without it, as the first one's is."""
        return MtpState(Context(1, buffers, length), length, self.begin().streams)

    def guesses(self, tokens: Sequence[int], stream: mx.array) -> mx.array:
        """What follows tokens[1], tokens[2], … by the heads [n - 1], given the target's stream at all [n, hidden]."""
        state = self.begin()
        streams = mx.concatenate([*state.streams, self._read(stream[:-1])])
        return mx.argmax(self._logits(self._extended(state, list(tokens), streams)[1:]), axis=-1)

    def _make_rows(self, state: MtpState) -> None:
        """The rows of all pending tokens."""
        if state.pending:
            streams = mx.concatenate(state.streams)
            self._extended(state, state.pending, streams[:-1])
            state.context.length = state.length
            state.pending, state.streams = [], [streams[-1:]]

    def _read(self, stream: mx.array) -> mx.array:
        stream = self._target.norm_rows(stream) if self._reading.normed else stream
        return stream.astype(self._dtype)

    def _extended(self, state: MtpState, tokens: list[int], streams: mx.array) -> mx.array:
        """Rows of tokens behind the context, from the streams before each. Heads' streams, before their norm."""
        embedded = self._embed(mx.array(tokens, dtype=mx.int32))
        return self._pass(state.context, embedded, streams, state.context.length)

    def _pass(self, context: Context, embedded: mx.array, streams: mx.array, at: int) -> mx.array:
        return self._network(embedded[None], streams[None], _Rows(context, at))[0]

    def _passed_on(self, hidden: mx.array) -> mx.array:
        return self._network.norm(hidden) if self._reading.normed else hidden

    def _logits(self, hidden: mx.array) -> mx.array:
        return self._target.head_rows(self._network.norm(hidden).astype(self._target.dtype)).astype(mx.float32)

    def _embed(self, tokens: mx.array) -> mx.array:
        return (self._target.embed_rows(tokens) * self._target.embed_scale).astype(self._dtype)


class _Network(nn.Module):
    """Names are the checkpoint's."""

    def __init__(self, args: Any) -> None:
        super().__init__()
        self.pre_fc_norm_embedding = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.pre_fc_norm_hidden = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.fc = nn.Linear(2 * args.hidden_size, args.hidden_size, bias=False)
        self.layers = [_Layer(args)]
        self.norm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)

    def __call__(self, embedded: mx.array, streams: mx.array, rows: _Rows) -> mx.array:
        """[1, n, hidden] each. The result is not normed."""
        both = [self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(streams)]
        return self.layers[0](self.fc(mx.concatenate(both, axis=-1)), rows)


class _Layer(nn.Module):
    """A full-attention layer of the target's kind."""

    def __init__(self, args: Any) -> None:
        super().__init__()
        self.self_attn = Qwen3NextAttention(args)
        self.input_layernorm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(args.hidden_size, eps=args.rms_norm_eps)
        if args.num_experts:
            self.mlp = Qwen3NextSparseMoeBlock(args)
        else:
            self.mlp = Qwen3NextMLP(args.hidden_size, args.intermediate_size)

    def __call__(self, hidden: mx.array, rows: _Rows) -> mx.array:
        mask: Any = "causal" if hidden.shape[1] > 1 else None
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), mask, rows)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class _Rows:
    """A context as mlx-lm's attention wants its cache: new rows go to `offset`."""

    def __init__(self, context: Context, offset: int) -> None:
        self._context = context
        self.offset = offset

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        end = self.offset + keys.shape[2]
        keys, values = self._context.write(0, keys, values, self.offset)
        return keys[..., :end, :], values[..., :end, :]


def _probability(logits: mx.array, drafts: mx.array) -> mx.array:
    """What the heads give each draft [n], which is about how often it is kept."""
    own = mx.take_along_axis(logits, drafts[:, None], axis=-1)[:, 0]
    return mx.exp(own - mx.logsumexp(logits, axis=-1))


def _check(heads: HeadWeights, target: Trunk) -> None:
    if missing := [name for name in _NEEDED if not hasattr(target.args, name)]:
        raise PairMismatch(
            f"MTP heads are supported for Qwen3-Next, 3.5, 3.6 and 3.8 models, and {target.model_type} has no "
            f"{missing[0]}; use --mode auto"
        )
    inner = "layers.0.mlp.shared_expert.down_proj" if heads.experts else "layers.0.mlp.down_proj"
    needed = [inner, *(name for names in NORMS.values() for name in names)]
    if lacking := [name for name in needed if f"{name}.weight" not in heads.tensors]:
        raise PairMismatch(
            f"the MTP heads in {heads.folder} lack {lacking[0]}.weight; choose a repository that has all of them"
        )
    width = heads.size("norm.weight", 0)
    if width != target.hidden_size:
        raise PairMismatch(
            f"the MTP heads in {heads.folder} were made for another model than {target.model_type}: they read hidden "
            f"states of {width}, the target's have {target.hidden_size}; choose its own",
            drafter=width,
            target=target.hidden_size,
        )


def _arguments(heads: HeadWeights, target: Trunk) -> Any:
    """mlx-lm's arguments for one layer: the target's, with the sizes that the tensors show."""
    args = {name: getattr(target.args, name) for name in dir(target.args) if not name.startswith("_")}
    sizes: dict[str, Any] = {"num_experts": heads.experts}
    mlp = "layers.0.mlp"
    if heads.experts:
        sizes["moe_intermediate_size"] = heads.size(f"{mlp}.switch_mlp.down_proj.weight", 2)
        sizes["shared_expert_intermediate_size"] = heads.size(f"{mlp}.shared_expert.down_proj.weight", 1)
    else:
        sizes["intermediate_size"] = heads.size(f"{mlp}.down_proj.weight", 1)
    return SimpleNamespace(**args | sizes)
