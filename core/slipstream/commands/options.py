"""Command-line options shared by the commands, and what they become."""

from __future__ import annotations

import argparse
import math
import os
import re
import secrets
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slipstream.errors import InvalidRequest
from slipstream.events import Faulted, Ready, Report, Status
from slipstream.jobs import Inbox
from slipstream.service import Engine, start
from slipstream.store import demo, paths, preferences
from slipstream.store.reuse import CacheDesk
from slipstream.types import Acceptance, CacheLimits, Mode, ModelInfo, Options

if TYPE_CHECKING:  # importing it imports MLX, and that must wait
    from slipstream.engine.pair import Pair

DEMO_NAME = demo.NAME
CACHE_DISK = "10GiB"
MAX_BATCH = 64  # rows of a round
MOST_BYTES = 2**60


def add_pair(parser: argparse.ArgumentParser) -> None:
    chosen = preferences.read()
    parser.set_defaults(max_batch=1)  # only `add_batch` lets it be more
    group = parser.add_argument_group("model")
    group.add_argument("--model", help="folder, GGUF file or Hugging Face name (default: the built-in pair)")
    group.add_argument(
        "--drafter",
        action="append",
        help="folder, GGUF file or name of a drafter made for the model; may be given twice; 'mtp' for the model's own "
        "MTP heads, 'none' for no drafter",
    )
    group.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="what to compute in")
    group.add_argument(
        "--drafter-bits", type=int, choices=(0, 4, 8), help="pack the drafter's weights (default: 4 on Metal, else 0)"
    )
    group.add_argument(
        "--kv-bits",
        type=int,
        choices=(0, 4, 8),
        default=chosen.kv_bits,
        help="pack the KV cache (0: do not; default: %(default)s)",
    )
    group.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run the Python that a model's folder brings, if it asks for it",
    )
    group.add_argument(
        "--no-memory-guard", action="store_true", help="load and answer even when memory seems too small for it"
    )


def add_batch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-batch",
        type=_batch,
        default=1,
        metavar="N",
        help="decode up to so many requests together, up to 64; each gets the text it would get alone (%(default)s)",
    )


def _batch(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= MAX_BATCH):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MAX_BATCH}, not {text!r}")
    return int(text)


def add_prompt_cache(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("prefix cache")
    group.add_argument(
        "--prompt-cache-ram",
        metavar="SIZE",
        help="memory for what was computed for earlier prompts, such as 2GiB (default: an eighth of this machine's)",
    )
    group.add_argument("--prompt-cache-disk", metavar="SIZE", help=f"the same on disk (default: {CACHE_DISK})")
    group.add_argument("--no-prompt-cache", action="store_true", help="compute every prompt from its beginning")


def cache_limits(args: argparse.Namespace | None = None) -> CacheLimits:
    """What `add_prompt_cache` was given, or its defaults. Raises InvalidRequest, naming the option."""
    if args is None:
        parser = argparse.ArgumentParser()
        add_prompt_cache(parser)
        args = parser.parse_args([])
    folder = str(paths.cache_dir() / "prompts")
    if args.no_prompt_cache:
        return CacheLimits(0, 0, folder)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    chosen = preferences.read()
    ram = memory // 8 if chosen.prompt_cache_ram is None else chosen.prompt_cache_ram
    if args.prompt_cache_ram is not None:
        ram = _size("--prompt-cache-ram", args.prompt_cache_ram)
    disk = _size("--prompt-cache-disk", CACHE_DISK) if chosen.prompt_cache_disk is None else chosen.prompt_cache_disk
    if args.prompt_cache_disk is not None:
        disk = _size("--prompt-cache-disk", args.prompt_cache_disk)
    return CacheLimits(ram, disk, folder)


_UNITS = {"": 1, "B": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("KMGT", 1)
    for unit, base in (("B", 1000), ("iB", 1024), ("", 1024))
}


def _size(option: str, text: str) -> int:
    """Bytes. 2GiB is 2 * 1024**3, 2GB is 2 * 1000**3, 2G means 2GiB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    units = {name.lower(): factor for name, factor in _UNITS.items()}
    if found is None or found[2].lower() not in units:
        raise InvalidRequest(f"{option} must be a size such as 2GiB or 500MB, not {text!r}", option=option)
    size = float(found[1]) * units[found[2].lower()]
    if size > MOST_BYTES:
        raise InvalidRequest(f"{option} must be less than {text}; no disk is as large", option=option)
    return int(size)


def add_sampling(parser: argparse.ArgumentParser, *, max_tokens: int) -> None:
    group = parser.add_argument_group("decoding")
    group.add_argument("--max-tokens", type=int, default=max_tokens, help="at most so many tokens (%(default)s)")
    group.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (%(default)s)")
    group.add_argument(
        "--top-p", type=float, default=1.0, help="only the likeliest tokens that make up so much; 1: all (%(default)s)"
    )
    group.add_argument(
        "--top-k", type=int, default=0, help="only so many of the likeliest tokens; 0: all (%(default)s)"
    )
    group.add_argument(
        "--min-p", type=float, default=0.0, help="only tokens at least so likely against the likeliest (%(default)s)"
    )
    group.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        help="above 1: less of what was said; prompt included (%(default)s)",
    )
    group.add_argument(
        "--presence-penalty", type=float, default=0.0, help="off the logit of tokens the answer has (%(default)s)"
    )
    group.add_argument(
        "--frequency-penalty", type=float, default=0.0, help="the same, for each time it has them (%(default)s)"
    )
    group.add_argument(
        "--logit-bias", action="append", default=[], metavar="ID=BIAS", help="add BIAS to a token's logit; repeatable"
    )
    group.add_argument("--seed", type=int, help="the same seed gives the same text (default: a new one)")
    group.add_argument("--stop", action="append", default=[], help="end the answer before this text; repeatable")
    group.add_argument("--stop-id", action="append", default=[], type=int, help="end at this token id; repeatable")
    group.add_argument("--ignore-eos", action="store_true", help="go on past the model's own end")
    group.add_argument(
        "--max-draft",
        default="auto",
        help="draft at most so many tokens a round, 0 to 64 (0: none), or auto: as many as pay (%(default)s)",
    )
    group.add_argument(
        "--acceptance",
        choices=[kind.value for kind in Acceptance],
        default=Acceptance.MATCH.value,
        help="match: the seed decides the text; rejection: the same distribution, another text",
    )


def comparing(args: argparse.Namespace, what: str) -> Options:
    """Options of something that compares the texts of several runs. Raises InvalidRequest, naming the option."""
    chosen = options(args)
    if chosen.acceptance is Acceptance.REJECTION:
        raise InvalidRequest(f"{what} compares texts, and --acceptance rejection makes another one; use match")
    if args.trials < 1:
        raise InvalidRequest(f"--trials must be at least 1, not {args.trials}")
    return chosen


def options(args: argparse.Namespace, mode: Mode = Mode.AUTO, *, logprobs: int | None = None) -> Options:
    """Raises InvalidRequest, naming the option."""
    seed = args.seed
    if seed is None:
        seed = 0 if args.temperature == 0 else secrets.randbits(32)
    with as_typed():
        return Options(
            temperature=args.temperature,
            top_p=args.top_p,
            top_k=args.top_k,
            min_p=args.min_p,
            repetition_penalty=args.repetition_penalty,
            presence_penalty=args.presence_penalty,
            frequency_penalty=args.frequency_penalty,
            logit_bias=_biases(args.logit_bias),
            seed=seed,
            max_tokens=args.max_tokens,
            stop=tuple(args.stop),
            stop_ids=tuple(args.stop_id),
            ignore_eos=args.ignore_eos,
            logprobs=logprobs,
            mode=mode,
            max_draft=_max_draft(args.max_draft),
            acceptance=Acceptance(args.acceptance),
        )


@contextmanager
def as_typed() -> Generator[None]:
    """An option of `Options` that is refused in here is named as on the command line."""
    try:
        yield
    except InvalidRequest as error:
        name = error.facts.get("option")
        if not isinstance(name, str) or not error.message.startswith(f"{name} "):
            raise
        flag = "--stop-id" if name == "stop_ids" else f"--{name.replace('_', '-')}"
        raise InvalidRequest(flag + error.message.removeprefix(name), option=flag) from error


def _max_draft(value: str) -> int | None:
    if value == "auto":
        return None
    try:
        return int(value)
    except ValueError as error:
        raise InvalidRequest(f"--max-draft must be auto or a whole number, not {value!r}") from error


def _biases(pairs: list[str]) -> dict[int, float]:
    out: dict[int, float] = {}
    for pair in pairs:
        token, _, bias = pair.partition("=")
        try:
            if int(token) in out:
                raise InvalidRequest(f"--logit-bias names token {int(token)} twice; give it once")
            out[int(token)] = float(bias)
        except ValueError as error:
            raise InvalidRequest(f"--logit-bias must be ID=BIAS such as 42=-5, not {pair!r}") from error
        if not math.isfinite(out[int(token)]):
            raise InvalidRequest(f"--logit-bias must be finite, not {pair!r}")
    return out


@dataclass(frozen=True, slots=True)
class Serving:
    """An engine that is up on its own thread."""

    inbox: Inbox
    info: ModelInfo


@contextmanager
def serving(args: argparse.Namespace, modes: tuple[Mode, ...], limits: CacheLimits | None = None) -> Generator[Serving]:
    """Load the pair that `args` name, with the drafters that `modes` need, and serve it while the block runs.

    `limits`: of a prefix cache; None for none. Raises what loading raised.
    """
    inbox = Inbox()
    news: list[Status] = []
    changed = threading.Event()

    def note(status: Status) -> None:
        if isinstance(status, Ready | Faulted):
            news.append(status)
            changed.set()

    if sys.stderr.isatty():
        print("Loading the model…", file=sys.stderr, flush=True)
    thread = start(inbox, lambda report: open_pair(args, modes, limits, report=report), note)
    try:
        changed.wait()
        match news[0]:
            case Ready(info):
                yield Serving(inbox, info)
            case Faulted(error):
                raise error
            case _:
                raise AssertionError(news)
    finally:
        inbox.close()
        thread.join()


def open_pair(
    args: argparse.Namespace,
    modes: tuple[Mode, ...],
    limits: CacheLimits | None = None,
    desk: CacheDesk | None = None,
    report: Report | None = None,
) -> Engine:
    """Resolve names to folders and load them. On the engine's thread, which is the first to import MLX.

    `report`: told of each piece that was read.
    """
    from slipstream.engine.engine import open_engine, release

    with ExitStack() as on_failure:
        on_failure.callback(release)
        pair = _pair(args, modes)
        engine = open_engine(pair, limits, desk, report)
        on_failure.pop_all()
    if args.drafter and len(engine.info.drafters) < len(pair.drafters):
        engine.close()
        loaded = " and ".join(engine.info.drafters)
        raise InvalidRequest(f"two of the drafters are of one kind ({loaded} is all there is); give one of each")
    return engine


def _pair(args: argparse.Namespace, modes: tuple[Mode, ...]) -> Pair:
    from slipstream.engine.load import Precision
    from slipstream.engine.pair import Pair
    from slipstream.store import local

    given: list[str] = args.drafter or []
    if args.model is None:
        target, name = demo.target(), DEMO_NAME
    else:
        target = local.resolve(args.model)
        name = Path(args.model).name or target.resolve().name
    drafters: tuple[Path, ...] = ()
    if given:
        drafters = tuple(target if name == "mtp" else local.resolve_drafter(name) for name in given if name != "none")
    elif modes == (Mode.MTP,):
        drafters = (target,)
    elif args.model is None:
        # Automatic decoding uses the better of the two; a race wants both.
        wanted = {Mode.DSPARK if mode is Mode.AUTO else mode for mode in modes}
        drafters = tuple(path for mode, path in demo.drafters().items() if mode in wanted)
    precision = Precision(dtype=args.dtype, drafter_bits=args.drafter_bits)
    return Pair(
        target,
        drafters,
        name,
        precision,
        args.kv_bits,
        trust_code=args.trust_remote_code,
        guard_memory=not args.no_memory_guard,
        max_batch=args.max_batch,
        own_heads=not given and target not in drafters and bool({Mode.AUTO, Mode.MTP} & {*modes}),
    )


def read_prompt(args: argparse.Namespace) -> str:
    """--prompt, or a file. Raises InvalidRequest when it is empty or cannot be read."""
    if args.prompt_file is not None:
        try:
            text = args.prompt_file.read_text("utf-8")
        except OSError as error:
            raise InvalidRequest(f"{args.prompt_file} cannot be read ({error.strerror}); give a text file") from error
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{args.prompt_file} is no text in UTF-8; give a text file") from error
    else:
        text = args.prompt
    if not text or not text.strip():
        raise InvalidRequest("the prompt is empty; write something to answer")
    return text
