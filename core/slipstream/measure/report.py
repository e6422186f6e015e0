"""A race in words: the table, the verdict's sentence, and the report as Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from slipstream.measure.race import Race, Spread, as_json
from slipstream.measure.result import options_json, versions
from slipstream.measure.verdict import Verdict
from slipstream.store import machine
from slipstream.types import Mode, ModelInfo, Options

NAMES = {
    Mode.BASELINE: "plain",
    Mode.DSPARK: "DSpark",
    Mode.DFLASH: "DFlash",
    Mode.MTP: "MTP",
    Mode.LOOKUP: "lookup",
    Mode.AUTO: "auto",
}


def kinds(race: Race) -> list[str]:
    return list(dict.fromkeys(run.question.kind for run in race.runs))


def heads(race: Race) -> list[str]:
    return ["arm", "tok/s", "against plain", *kinds(race), "tokens per round", "verdict"]


def rows(race: Race, by: Sequence[str] | None = None) -> list[list[str]]:
    """One for each arm, under `heads`. `by`: kinds of another race, where several stand under each other."""
    by = kinds(race) if by is None else by
    out: list[list[str]] = []
    for arm in race.arms:
        speedup = "–" if arm.speedup is None else f"{arm.speedup.median:.2f}×{_range(race, arm.speedup)}"
        verdict = arm.verdict.value.capitalize()
        if arm.mode is Mode.BASELINE:
            verdict = "" if arm.verdict is Verdict.IDENTICAL else "Does not repeat itself"
        by_kind = [f"{arm.speedup_by_kind[kind]:.2f}×" if kind in arm.speedup_by_kind else "–" for kind in by]
        tps = f"{arm.tps.median:.2f}{_range(race, arm.tps)}"
        out.append([NAMES[arm.mode], tps, speedup, *by_kind, f"{arm.tokens_per_round:.2f}", verdict])
    return out


def _range(race: Race, values: Spread) -> str:
    """Nothing for one trial, whose lowest and highest are itself."""
    return f" ({spread(values)})" if race.trials > 1 else ""


def trials(count: int) -> str:
    """What the figures of so many trials are."""
    return "1 trial" if count == 1 else f"median of {count} trials (lowest–highest)"


def spread(values: Spread) -> str:
    return f"{values.low:.2f}–{values.high:.2f}"


def differences(race: Race) -> list[str]:
    """Every place where an arm parted from plain, or plain from itself; each once."""
    found = [
        f"{NAMES[arm.mode]}, {question.kind}: {comparison.sentence}"
        for arm in race.arms
        for question, comparison in arm.comparisons
        if comparison.verdict is not Verdict.IDENTICAL
    ]
    return list(dict.fromkeys(found))


def verdict_sentence(race: Race) -> str:
    """Starts with the verdict and a colon."""
    where = "; ".join(differences(race))
    if race.repeats is Verdict.DIFFERENT:
        return f"Different: plain decoding does not repeat itself here, so no arm can be held to it. {where}"
    match race.verdict:
        case Verdict.IDENTICAL:
            return "Identical: every arm said the same, token for token."
        case Verdict.TIE:
            return f"Numeric tie: {where}"
        case Verdict.DIFFERENT:
            return f"Different: no speed-up is claimed. {where}"


def as_json_text(race: Race, info: ModelInfo, options: Options, marks: Sequence[str] = ()) -> str:
    """`marks`: what disturbed the race, such as other clients of the server."""
    out: dict[str, Any] = {
        "model": info.name,
        "path": info.path,
        "dtype": info.dtype,
        "quantisation": info.quantisation,
        "context": info.context,
        "options": options_json(options),
        "machine": machine.facts(),
        "versions": versions(),
        "marks": list(marks),
        **as_json(race),
    }
    return json.dumps(out, indent=1, ensure_ascii=False) + "\n"


def as_markdown(race: Race, info: ModelInfo, options: Options, marks: Sequence[str] = ()) -> str:
    head = heads(race)
    sampling = f"temperature {options.temperature:g}, seed {options.seed}" if options.temperature else "greedy"
    asked = dict.fromkeys(run.question for run in race.runs)
    lines = [
        f"# Race: {info.name}",
        "",
        f"{info.dtype}, {info.quantisation}, context {info.context}; {sampling}, {options.max_tokens} tokens; "
        f"{trials(race.trials)}; "
        + ", ".join(f"{name} {version}" for name, version in (*machine.facts().items(), *versions().items())),
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows(race)),
        "",
        verdict_sentence(race),
        *(f"\nMarked: {mark}" for mark in marks),
        "",
        "Prompts:",
        "",
        *(f"- {question.kind}: {' '.join(question.text.split())}" for question in asked),
        "",
        "| trial | arm | prompt | tokens | tok/s |",
        "|---|---|---|---|---|",
        *(
            f"| {run.trial + 1 or 'warm-up'} | {NAMES[run.mode]} | {run.question.kind} "
            f"| {len(run.answer.tokens)} | {run.tps:.2f} |"
            for run in (*race.warm_ups, *race.runs)
        ),
    ]
    return "\n".join(lines) + "\n"
