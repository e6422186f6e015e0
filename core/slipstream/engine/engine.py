"""The engine: a loaded pair that turns jobs into events. Made, used and closed on one thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import mlx.core as mx

from slipstream.curves import Curves
from slipstream.drafters.protocol import Drafter
from slipstream.engine import load, self_test
from slipstream.engine.answer import Answer
from slipstream.engine.batch import Batch
from slipstream.engine.calibrate import Calibration
from slipstream.engine.costs import Costs
from slipstream.engine.guard import Guard
from slipstream.engine.held import Ledger
from slipstream.engine.identity import drafter_part, target_identity
from slipstream.engine.kept import Keeper, MlxArrays
from slipstream.engine.pace import Pace
from slipstream.engine.pair import Pair, check_room, with_own_heads
from slipstream.engine.pieces import Progress
from slipstream.engine.planner import Drafters, plan, usual
from slipstream.engine.policy import Policy
from slipstream.engine.round import GRAMMAR, Decoding
from slipstream.errors import ContextFull, InvalidRequest, PairMismatch, Unsteady, UnsupportedModel
from slipstream.events import Delta, Done, Event, Finish, Measured, Prefill, Report, Timings
from slipstream.jobs import Job
from slipstream.models import buffers, on_cpu
from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.store import candidate, curves, machine, memory
from slipstream.store.prompts import PromptStore
from slipstream.store.reuse import CacheDesk, PromptCache
from slipstream.types import Acceptance, CacheLimits, Calibrate, Mode, ModelInfo, Options, Request, Text

if TYPE_CHECKING:
    from slipstream.prompt.constraint import Constraint, Vocabulary

logger = logging.getLogger(__name__)

# Tokens of the prompt between two looks at the cancel flag; the first where this machine was not calibrated.
CPU_CHUNKS = (32, 128)
GPU_CHUNKS = (512, 128, 2048)
CANCEL_MS = 150.0  # that a chunk may take where it was: longer ones read faster, and cannot be cancelled meanwhile
SHARED_CHUNKS = 4  # in which such a piece is read while others decode together
TICK_EVERY = 16  # rounds between handing on what is to be written to disk


class MlxEngine:
    """Serves jobs one event at a time; several jobs may be under way, each with its own caches."""

    def __init__(
        self,
        target: Target,
        drafters: Mapping[Mode, Drafter],
        tokeniser: Tokeniser,
        info: ModelInfo,
        *,
        kv_bits: int = 0,
        chunk: int | None = None,
        guard: Guard | None = None,
        prompts: PromptCache | None = None,
        parts: Mapping[Mode, str] | None = None,  # names of the drafters' states in it
        desk: CacheDesk | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.target = target
        self.drafters = drafters
        self.tokeniser = tokeniser
        self.info = info
        self.prompt_cache = prompts
        self._desk = desk or CacheDesk()
        self._desk.attach(prompts)
        self._parts = parts or {mode: mode.value for mode in drafters}
        self._kv_bits = kv_bits
        self._guard = guard
        self.ledger = ledger
        self._chunks = (chunk,) if chunk else GPU_CHUNKS if load.on_gpu() else CPU_CHUNKS
        self._chunk = self._chunks[0]
        if info.max_batch > 1:
            target.pack()
        self._batch = Batch(target, info.max_batch)
        self.costs = Costs(free=frozenset((Mode.LOOKUP.value, GRAMMAR)))
        self.pace = Pace()
        self._experience: Policy | None = None
        if info.measured_as and (found := curves.read(info.measured_as, self._parts)) is not None:
            self._start_from(found.curves)
            # For as long as this engine lives: another chunk rounds differently.
            fitting = found.curves.chunk(CANCEL_MS)
            if fitting is not None and fitting in self._chunks:
                self._chunk = fitting

    def run(self, job: Job) -> Iterator[Event]:
        match job.work:
            case Calibrate(force):
                return self._calibrate(job, force)
            case Request():
                return self._answer(job)

    def _answer(self, job: Job) -> Iterator[Event]:
        options = usual(job.request.options)
        started = time.monotonic()
        prompt = self.tokeniser.encode(job.request.prompt)
        if len(prompt) >= self.info.context:
            raise ContextFull(len(prompt), self.info.context)
        self._check_ids("prompt", prompt)
        self._check_ids("logit_bias", options.logit_bias)
        self._check_ids("stop_ids", options.stop_ids)
        cache = self.target.make_cache(self._kv_bits)
        if self._guard is not None:
            self._guard.admit(len(prompt), options.max_tokens, cache)
        fixed = self.target.fixed_kinds
        chosen = plan(self.drafters, options, can_rewind=not fixed)
        if fixed and any(drafter.block for drafter in chosen):
            raise PairMismatch(
                f"{self.info.name} has {' and '.join(fixed)} layers, whose state cannot be taken back when a draft is "
                "rejected; use --mode baseline",
                kinds=fixed,
            )
        drafters = Drafters(chosen, self._policy(options, len(prompt)))
        decoding = Decoding(self.target, drafters, options, prompt, cache, self._constraint(options))
        prompts = self.prompt_cache if job.request.reuse else None
        keeper = Keeper(prompts, prompt, cache, drafters, self._parts, lambda: self._marks)
        answer = Answer(self.tokeniser.decode, options, self.info.end_ids, decoding)
        self._note_caps(chosen, None if drafters.policy is not None else options)

        def timings() -> Timings:
            return Timings(
                queued_s=job.queued_s,
                started_s=started,
                first_token_s=answer.first_s or time.monotonic(),
                last_token_s=answer.last_s or time.monotonic(),
                prompt_tokens=len(prompt),
                reused_tokens=keeper.reused,
                output_tokens=answer.count,
                rounds=answer.rounds,
                shortfall=keeper.shortfall,
            )

        def done(reason: Finish) -> Done:
            return Done(reason, timings(), tuple(prompt), answer.stop)

        with ExitStack() as while_answered:
            if self.ledger is not None:
                while_answered.enter_context(self.ledger.holding(lambda: cache.bytes + drafters.bytes))
            if not (yield from self._prefill(job, decoding, keeper, prompt)):
                yield done(Finish.CANCELLED)
                return
            yield answer.take(decoding.first())
            keeper.keep(prompt)  # now, for those who ask while this one is still answered
            while_answered.enter_context(self._batch.joined(decoding))
            while answer.reason is None:
                if job.is_cancelled:
                    answer.end(Finish.CANCELLED)
                    break
                yield answer.take(self._batch.step(decoding))
                if answer.rounds % TICK_EVERY == 0:
                    keeper.tick()
                    self._look()
        if rest := answer.rest():
            yield Delta(rest, ())
        keeper.keep(decoding.tokens[: len(prompt) + answer.count])
        assert answer.reason is not None
        yield done(answer.reason)

    def _look(self) -> None:
        if self.ledger is not None:
            self.ledger.look()

    def _note_caps(self, chosen: Sequence[Drafter], options: Options | None) -> None:
        """Who drafts now; `options`: how far, where no policy says it, round by round."""
        modes = {drafter.mode.value for drafter in chosen}
        for other in self.costs.caps.keys() - modes:
            self.costs.caps.pop(other, None)
        if options is None:
            return
        for drafter in chosen:
            if drafter.taps:
                most = drafter.block if options.max_draft is None else min(options.max_draft, drafter.block)
                self.costs.caps[drafter.mode.value] = most

    def _policy(self, options: Options, context: int) -> Policy | None:
        """Where the drafter is ours to choose. The next request begins with what this one will have learned."""
        if options.mode is not Mode.AUTO or options.acceptance is not Acceptance.MATCH:
            return None
        self._experience = Policy(self.costs, like=self._experience, context=context)
        return self._experience

    def _prefill(
        self, job: Job, decoding: Decoding, keeper: Keeper, prompt: Sequence[int]
    ) -> Generator[Prefill, None, bool]:
        """Take what is kept of the prompt and compute the rest. False when the job was cancelled."""
        keeper.find()

        def progress(done: int) -> Prefill:
            return Prefill(done, len(prompt), keeper.reused, self.pace.seconds(done, len(prompt)))

        yield progress(keeper.reused)
        for _ in keeper.fetch():
            if job.is_cancelled:
                return False
            yield progress(keeper.reused)
        keeper.restore()
        finished = keeper.reused
        chunks = decoding.prefill(self._next_chunk, keeper.stops)
        began = time.perf_counter()
        while not job.is_cancelled and (more := next(chunks, None)) is not None:
            if more - finished == self._chunk:  # a shorter one says little of others
                self.pace.learn(finished, self._chunk, 1000 * (time.perf_counter() - began))
            finished = more
            keeper.note(finished)
            self._look()
            yield progress(finished)
            began = time.perf_counter()
        if job.is_cancelled:
            keeper.keep(prompt[:finished])
        return not job.is_cancelled

    def _calibrate(self, job: Job, force: bool) -> Iterator[Event]:
        """Measure, use what was found from now on, and keep it for the next start. Raises Unsteady.

        What was forced on a disturbed machine takes no better figures' place, kept or in use.
        """
        state = machine.disturbance()
        if state is not None and not force:
            raise Unsteady(state)
        started = time.monotonic()
        calibration = Calibration(
            self.target, self.drafters, kv_bits=self._kv_bits, chunks=self._chunks, warm_up=load.on_gpu()
        )
        total = len(calibration.points)
        for done, _ in enumerate(calibration.run(), 1):
            if job.is_cancelled:
                break
            yield Measured(min(done, total), total, calibration.curves)
        else:
            found = calibration.curves
            is_better = state is None or self.costs.curves is None
            if is_better:
                self._start_from(found)
            if self.info.measured_as and is_better:
                try:
                    curves.write(self.info.measured_as, found, self._parts)
                except OSError as error:
                    logger.warning("the calibration cannot be kept (%s); it holds until the model is unloaded", error)
            yield Measured(total, total, found)
        now = time.monotonic()
        reason = Finish.CANCELLED if job.is_cancelled else Finish.STOP
        yield Done(reason, Timings(job.queued_s, started, now, now, 0, 0, 0, 0), ())

    def _start_from(self, found: Curves) -> None:
        self.costs.start_from(found)
        self.pace.start_from(found)

    def _next_chunk(self) -> int:
        """Tokens of a prompt to read at once: fewer while several others wait for their round."""
        return max(CPU_CHUNKS[0], self._chunk // SHARED_CHUNKS) if self._batch.is_waiting else self._chunk

    def _constraint(self, options: Options) -> Constraint | None:
        if options.grammar is None:
            return None
        from slipstream.prompt.constraint import Constraint

        return Constraint(options.grammar, self._vocabulary)

    @cached_property
    def _marks(self) -> frozenset[int]:
        """Tokens that are no text: templates put them where turns begin and end."""
        return frozenset(int(token) for token in self.tokeniser.huggingface.added_tokens_decoder)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """Made for the first request that has a grammar: it takes a second."""
        from slipstream.prompt.constraint import Vocabulary

        return Vocabulary(self.tokeniser.huggingface, self.target.vocabulary, self.info.end_ids)

    def _check_ids(self, option: str, ids: Iterable[int]) -> None:
        """MLX reads and writes past the end of a table without a word, so nothing outside it may get there."""
        wrong = next(
            (token for token in ids if type(token) is not int or not 0 <= token < self.target.vocabulary), None
        )
        if wrong is not None:
            raise InvalidRequest(
                f"{option} names token {wrong}, but this model's tokens go from 0 to {self.target.vocabulary - 1}",
                option=option,
                token=wrong,
            )

    def rest(self) -> None:
        on_cpu.forget()
        buffers.give_back()
        if self.ledger is not None:
            self.ledger.look(soon=False)

    def close(self) -> None:
        """Free the device. On the thread that made the engine, as its last act with MLX."""
        self._desk.attach(None)
        if self.prompt_cache is not None:
            self.prompt_cache.close()
        on_cpu.forget()
        release()


def release() -> None:
    """Let go of the device on this thread. One that ends with its streams open brings the process down at exit."""
    mx.synchronize()
    buffers.give_back()
    mx.clear_streams()


def open_engine(
    pair: Pair, limits: CacheLimits | None = None, desk: CacheDesk | None = None, report: Report | None = None
) -> MlxEngine:
    """Load a pair. Raises the errors of `load_target` and `load_drafter`, and WontFit.

    `limits`: of the prefix cache; None for none. `desk`: where others find it. `report`: told of each piece that was
    read; what it raises ends the load.
    """
    began = time.monotonic()
    pair = with_own_heads(pair)
    limit = check_room(pair) if pair.guard_memory else None
    buffers.bound()
    progress = None if report is None else Progress(report, pair.drafters, pair.target)
    before = mx.get_active_memory()
    target = load.load_target(pair.target, pair.precision, trust_code=pair.trust_code, progress=progress)
    target_bytes = mx.get_active_memory() - before
    tokeniser = Tokeniser(pair.target)
    sample = tokeniser.encode(Text(self_test.TEXT)) if pair.drafters else []
    drafters: dict[Mode, Drafter] = {}
    parts: dict[Mode, str] = {}
    for path in pair.drafters:
        try:
            drafter = load.load_drafter(path, target, pair.precision, sample=sample, beside=pair.target)
            if progress is not None:
                progress.read_drafter(path)
        except (UnsupportedModel, PairMismatch) as error:
            if not pair.own_heads or path != pair.target:
                raise
            logger.warning("%s; they are left out", error.message)
            continue
        drafters[drafter.mode] = drafter
        parts[drafter.mode] = drafter_part(path, drafter, target, pair.precision.drafter_bits)
    dtype = str(target.dtype).removeprefix("mlx.core.")
    info = ModelInfo(
        name=pair.name or pair.target.name,
        path=str(pair.target),
        context=target.context,
        vocabulary=target.vocabulary,
        drafters=tuple(drafters),
        dtype=dtype,
        quantisation=load.precision_of(target.model, pair.target, dtype),
        end_ids=tuple(sorted(tokeniser.end_ids)),
        max_batch=pair.max_batch,
        measured_as=curves.key_of(
            target_identity(pair.target, target, load.quantisation_of(target.model), pair.kv_bits)
        ),
    )
    logger.info(
        "loaded %s with %s in %.1f s",
        info.name,
        ", ".join(drafters) or "no drafter",
        time.monotonic() - began,
    )
    held = mx.get_active_memory() - before
    guard = limit and Guard(candidate.of_folder(pair.target), target, limit, kv_bits=pair.kv_bits)
    prompts = _open_prompts(pair, target, limits)
    if guard is not None and prompts is not None:
        guard.sheds.append(prompts.shed)
    return MlxEngine(
        target,
        drafters,
        tokeniser,
        info,
        kv_bits=pair.kv_bits,
        guard=guard,
        prompts=prompts,
        parts=parts,
        desk=desk,
        ledger=Ledger(target_bytes, max(0, held - target_bytes), limit or memory.limit()),
    )


def _open_prompts(pair: Pair, target: Target, limits: CacheLimits | None) -> PromptCache | None:
    if limits is None or limits.is_off:
        return None
    store = None
    if limits.disk_bytes:
        identity = target_identity(pair.target, target, load.quantisation_of(target.model), pair.kv_bits)
        store = PromptStore.open(
            Path(limits.folder), limits.disk_bytes, str(pair.target.resolve()), identity, limits.ram_bytes
        )
    return PromptCache(MlxArrays(), limits.ram_bytes, store)
