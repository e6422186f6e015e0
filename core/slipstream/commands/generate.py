"""`slipstream generate`: one answer, as it comes, and what it took."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from slipstream.commands.options import Serving, add_pair, add_sampling, options, read_prompt, serving
from slipstream.commands.output import print_json
from slipstream.events import Delta, Event, Finish
from slipstream.jobs import Waiting
from slipstream.measure.result import Answer, as_json
from slipstream.types import Chat, Mode, Options, Request, Text


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("generate", help="answer one prompt")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", help="the question")
    what.add_argument("--prompt-file", type=Path, help="a text file with the question")
    parser.add_argument("--system", help="a system message before the question")
    parser.add_argument("--raw-prompt", action="store_true", help="the prompt as it is, without the chat template")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.AUTO.value, help="who drafts")
    parser.add_argument("--logprobs", type=int, help="note each token's log-probability and so many alternatives")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    add_pair(parser)
    add_sampling(parser, max_tokens=512)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    mode = Mode(args.mode)
    chosen = options(args, mode, logprobs=args.logprobs)
    text = read_prompt(args)
    with serving(args, (mode,)) as engine:
        if args.raw_prompt:
            prompt = Text(text)
        else:
            system = ({"role": "system", "content": args.system},) if args.system else ()
            prompt = Chat((*system, {"role": "user", "content": text}))
        answer = follow(engine, Request(prompt, chosen), show=not args.json)
    if args.json:
        drafters = ", ".join(engine.info.drafters) or "none"
        print_json(as_json(answer, engine.info, chosen, drafter=drafters))
    else:
        print(f"\n{summary(answer, chosen)}", file=sys.stderr)
    return 130 if answer.reason is Finish.CANCELLED else 0


def follow(engine: Serving, request: Request, *, show: bool) -> Answer:
    """Run a request to its end, showing its text as it comes. Ctrl-C ends it early and keeps what was made."""
    answer = Answer()

    def take(event: Event) -> None:
        answer.add(event)
        if show and isinstance(event, Delta):
            print(event.text, end="", flush=True)

    waiting = Waiting(engine.inbox, request)
    while True:
        try:
            for event in waiting:
                take(event)
            return answer
        except KeyboardInterrupt:
            waiting.job.cancel()


def summary(answer: Answer, chosen: Options) -> str:
    """The closing line."""
    assert answer.timings is not None
    timings = answer.timings
    parts = [f"{timings.output_tokens} token{'s' * (timings.output_tokens != 1)}"]
    if timings.decode_tps:
        parts.append(f"{timings.decode_tps:.1f} tok/s")
    parts.append(f"prefill {timings.prefill_tps:.0f} tok/s")
    if answer.rounds:
        sources = ", ".join(f"{count} {source}" for source, count in answer.by_source.items())
        parts.append(f"{timings.tokens_per_round:.2f} tokens per round ({sources})")
    if chosen.temperature:
        parts.append(f"seed {chosen.seed}")
    if answer.reason is Finish.LENGTH:
        parts.append("ended at --max-tokens")
    return " · ".join(parts)
