"""A benchmark: the race at several lengths of context, with what reading the prompt took. Ids are compared as there."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.jobs import Inbox
from slipstream.measure import race as races
from slipstream.measure import report
from slipstream.measure.prompts import Question, notes
from slipstream.measure.race import Race, Run, Watch, as_prompt, race
from slipstream.measure.result import options_json, versions
from slipstream.store import machine
from slipstream.types import Mode, ModelInfo, Options, Prompt, Text, Tokens

Encode = Callable[[Prompt], list[int]]
COLD = 0.1  # of a prompt that may have been kept: the template's first words are, from any other
ALONE = 3  # questions of a single stream
Asked = Mapping[int, Mapping[Question, Tokens]]  # length of context -> what is sent for each question


@dataclass(frozen=True, slots=True)
class Cell:
    """One length of context and number of answers at the same time."""

    streams: int
    context: int  # asked for; 0: the bare questions
    prompt_tokens: tuple[int, ...]  # by question
    race: Race

    @property
    def prefill_tps(self) -> float:
        """Median of the prompts that were read from about their beginning. 0.0: none was."""
        timings = [run.answer.timings for run in (*self.race.warm_ups, *self.race.runs)]
        cold = [
            each.prefill_tps for each in timings if each is not None and each.reused_tokens < COLD * each.prompt_tokens
        ]
        return statistics.median(cold) if cold else 0.0


def asked(
    info: ModelInfo,
    encode: Encode,
    questions: Sequence[Question],
    contexts: Sequence[int],
    streams: Sequence[int],
    max_tokens: int,
) -> Asked:
    """The prompts of all cells: one stream answers the first ALONE questions in turn, n the first n at the same time.

    `encode`: of the loaded model's tokeniser. Raises InvalidRequest when a prompt and its answer do not fit the model:
    an answer that is cut short would be compared with others.
    """
    used = questions[: max(count if count > 1 else ALONE for count in streams)]
    out: dict[int, dict[Question, Tokens]] = {}
    for context in contexts:
        longest = context
        if not context or context + max_tokens <= info.context:  # else making it would only take time
            out[context] = {question: Tokens(tuple(filled(encode, question, context))) for question in used}
            longest = max(len(prompt.ids) for prompt in out[context].values())
        if longest + max_tokens > info.context:
            prompt, remedy = f"a question of {longest:,} tokens", "a shorter question"
            if context:
                prompt, remedy = f"a context of {context:,} tokens, a question", "shorter --contexts"
            raise InvalidRequest(
                f"{prompt} and an answer of {max_tokens:,} do not fit {info.name}, which has room for "
                f"{info.context:,} in all; choose {remedy} or fewer --max-tokens",
                context=info.context,
            )
    return out


def benchmark(
    inbox: Inbox,
    prompts: Asked,
    modes: Sequence[Mode],
    options: Options,
    *,
    dtype: str,
    streams: Sequence[int],
    trials: int,
    watch: Watch = lambda *_: None,
) -> Iterator[Cell]:
    """A cell for each context and number of streams, as it is done. The first mode is plain.

    The context is read once by each mode, in a run that does not count, and kept, so that a trial need not read it
    again. Raises what a job raises.
    """
    for context, of_question in prompts.items():
        for count in streams:
            own = dict([*of_question.items()][: _asked(count)])
            yield Cell(
                count,
                context,
                tuple(len(prompt.ids) for prompt in own.values()),
                race(
                    inbox,
                    [*own],
                    modes,
                    options,
                    dtype=dtype,
                    trials=trials,
                    prompts=own,
                    reuse=True,
                    together=count > 1,
                    warm_up=True,
                    watch=watch,
                ),
            )


def runs_of(prompts: Asked, modes: Sequence[Mode], streams: Sequence[int], trials: int) -> int:
    """Answers of such a `benchmark` in all, with those that do not count."""
    each = 0
    for count in streams:
        for of_question in prompts.values():
            asked = len([*of_question][: _asked(count)])
            each += asked * trials + (asked if count > 1 else 1)
    return each * len(modes)


def _asked(count: int) -> int:
    return count if count > 1 else ALONE


def filled(encode: Encode, question: Question, context: int) -> list[int]:
    """The question behind about `context` tokens of notes, in the chat template."""
    if not context:
        return encode(as_prompt(question, raw=False))
    told: list[str] = []
    count = 0
    for note in notes():
        count += len(encode(Text(f" {note}")))
        if count > context:
            break
        told.append(note)
    text = f"{' '.join(told)}\n\nThese notes need no answer. {question.text}"
    return encode(as_prompt(Question(question.kind, text), raw=False))


def counts(text: str, questions: int) -> tuple[int, ...]:
    """Streams: 1,4,8. Raises InvalidRequest when there are not so many questions."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InvalidRequest(f"--streams must be numbers such as 1,4,8, not {text!r}")
    out = tuple(dict.fromkeys(int(part) for part in parts))
    if max(out) > max(questions, 1):
        raise InvalidRequest(
            f"--streams goes up to {max(out)}, and there are {questions} questions; give as many with --prompt"
        )
    return out


def lengths(text: str) -> tuple[int, ...]:
    """Contexts as people write them: 0,4k,16k. Raises InvalidRequest."""
    out: list[int] = []
    for part in text.split(","):
        number, unit = part.strip().lower(), 1
        if number.endswith("k"):
            number, unit = number[:-1], 1024
        if not number.isdecimal():
            raise InvalidRequest(f"--contexts must be tokens such as 0,4k,16k, not {text!r}")
        out.append(int(number) * unit)
    return tuple(dict.fromkeys(out))


def as_table(cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: one row for each context and arm."""
    heads = ["streams", "context", "prefill tok/s", *report.heads(cells[0].race)]
    kinds = report.kinds(cells[0].race)
    rows: list[list[str]] = []
    for cell in cells:
        prefill = f"{cell.prefill_tps:,.0f}" if cell.prefill_tps else ""
        about = [str(cell.streams), f"{statistics.median(cell.prompt_tokens):,.0f}", prefill]
        for row in report.rows(cell.race, kinds):
            rows.append([*about, *row])
            about = ["", "", ""]
    return heads, rows


def alone(cells: Sequence[Cell]) -> list[tuple[Cell, int, int]]:
    """Of answers that were made at the same time: how many are those of the single stream, of how many that it has too.

    Plain decoding's, so that only what shares a round is compared. A tie may part them.
    """
    said = {
        (cell.context, run.question): run.answer.tokens for cell in cells if cell.streams == 1 for run in _plain(cell)
    }
    out: list[tuple[Cell, int, int]] = []
    for cell in cells:
        both = [run for run in _plain(cell) if (cell.context, run.question) in said]
        if cell.streams > 1 and both:
            same = sum(run.answer.tokens == said[cell.context, run.question] for run in both)
            out.append((cell, same, len(both)))
    return out


def _plain(cell: Cell) -> list[Run]:
    return [run for run in cell.race.runs if run.mode is cell.race.arms[0].mode and run.trial == 0]


def as_markdown(cells: Sequence[Cell], stamp: Mapping[str, Any]) -> str:
    """`stamp`: what was measured, on what, and what disturbed it."""
    heads, rows = as_table(cells)
    lines = [
        f"# Benchmark: {stamp['model']}",
        "",
        "; ".join(f"{name} {value}" for name, value in stamp.items() if name not in ("model", "marks", "options")),
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        *(f"{cell.streams} × {cell.context:,}: {report.verdict_sentence(cell.race)}" for cell in cells),
        *(
            f"{cell.streams} × {cell.context:,}: {same} of {both} say what they say alone."
            for cell, same, both in alone(cells)
        ),
        *(f"\nMarked: {mark}" for mark in stamp["marks"]),
    ]
    return "\n".join(lines) + "\n"


def as_json(cells: Sequence[Cell], stamp: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **stamp,
        "cells": [
            {
                "context": cell.context,
                "streams": cell.streams,
                "prompt_tokens": list(cell.prompt_tokens),
                "prefill_tps": round(cell.prefill_tps, 2),
                **races.as_json(cell.race),
            }
            for cell in cells
        ],
    }


def stamp_of(info: ModelInfo, options: Options, trials: int) -> dict[str, Any]:
    """What somebody needs to know to compare figures, and what disturbed them."""
    disturbed = machine.disturbance()
    return {
        "model": info.name,
        "dtype": info.dtype,
        "quantisation": info.quantisation,
        **machine.facts(),
        "power": machine.power(),
        **{name: value for name, value in versions().items() if name != "system"},
        "tokens": options.max_tokens,
        "temperature": options.temperature,
        "trials": trials,
        "options": options_json(options),
        "marks": [] if disturbed is None else [f"the machine was {disturbed} when the benchmark began"],
    }
