"""Many clients for many minutes: does the server stay well?

    python tests/bench/soak.py --minutes 10      # a tiny random model with a drafter
    python tests/bench/soak.py --url http://127.0.0.1:8765 --pid 1234

Clients of all dialects ask at random, streamed or not, short and long, and some hang up at a random moment. First every
store that has a bound is filled: kept prompts in memory and on disk, kept responses, the request log. Then the time has
six parts, and after each of them the clients pause until the server has come to rest: how much memory answers take
meanwhile depends on how long they are, and says nothing of a leak. Reported: answers that were wrong in form, memory at
rest with what the stores hold, the last two rests against the first two, the most memory while working, and how
long cancelled work went on (the server's own figure). The exit status is 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

MAX_GROWTH = 0.03
CANCEL_S = 0.15
SAMPLE_S = 2.0
ANSWER_S = 300.0  # for one answer: what takes longer is an error
DRAIN_S = 60.0  # for what is under way when a part's time is up
REST_S = 4.0  # after the last answer: the engine gives memory back after two
PARTS = 6
FULL = 0.9  # of a limit: a store is full, as a prompt that does not fit takes no room
FILL_S = 120.0
RESPONSES = 256  # that the server keeps
CACHES = ("--prompt-cache-ram", "16MiB", "--prompt-cache-disk", "32MiB")
MIB = 2**20
Json = dict[str, Any]


@dataclass
class Tally:
    answers: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    errors: list[str] = field(default_factory=list[str])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", help="a server that runs already; give its --pid too")
    parser.add_argument("--pid", type=int)
    args = parser.parse_args()
    if args.url:
        return asyncio.run(soak(args.url, args.pid, args))
    with tiny_server() as (url, pid):
        return asyncio.run(soak(url, pid, args))


@contextmanager
def tiny_server() -> Generator[tuple[str, int]]:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from slipstream.types import Mode
    from tiny_runs import write_byte_drafter, write_target

    with tempfile.TemporaryDirectory(prefix="slipstream-soak-") as name:
        folder = Path(name)
        write_target(folder / "target", max_position_embeddings=8192)
        write_byte_drafter(folder / "drafter", Mode.DSPARK)
        # Caches small enough to be full soon: what grows then is a leak.
        command = [sys.executable, "-m", "slipstream", "serve", "--port", "0", "--pin", *CACHES, "--model"]
        command += [str(folder / "target"), "--drafter", str(folder / "drafter")]
        home = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=home) as server:
            assert server.stdout is not None
            ready = next((found for line in server.stdout if (found := re.search(r"ready at (\S+)", line))), None)
            assert ready is not None, "the server ended; see above"
            try:
                yield ready[1], server.pid
            finally:
                server.terminate()
                began = time.monotonic()
                server.communicate(timeout=30)
                print(f"server: ended {server.returncode} in {time.monotonic() - began:.1f} s")


@dataclass(frozen=True, slots=True)
class Rest:
    """The server without work, after a part of the time."""

    bytes: int
    ram: int  # kept prompts, in bytes
    disk: int
    entries: int
    responses: int
    response_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.bytes / MIB:6.1f} MiB; kept prompts {self.ram / MIB:.1f} MiB and {self.disk / MIB:.1f} MiB on disk "
            f"in {self.entries} entries; {self.responses} responses of {self.response_bytes / MIB:.1f} MiB"
        )


async def soak(url: str, pid: int | None, args: argparse.Namespace) -> int:
    tally = Tally()
    chances = [random.Random(args.seed * 1000 + n) for n in range(args.clients)]
    working: list[int] = []
    rests: list[Rest] = []
    async with httpx2.AsyncClient(base_url=url, timeout=ANSWER_S, verify=False, trust_env=False) as http:
        try:
            began = time.monotonic()
            await fill(http, chances)
            print(f"filled in {time.monotonic() - began:.0f} s: {await at_rest(http, pid)}", flush=True)
            for part in range(PARTS):
                until = time.monotonic() + args.minutes * 60 / PARTS
                clients = [client(http, chance, until, tally) for chance in chances]
                await asyncio.gather(*clients, watch(pid, until, working))
                rests.append(await at_rest(http, pid))
                print(f"at rest {part + 1}: {rests[-1]}", flush=True)
            metrics = (await http.get("/metrics.json")).json()
        except (TimeoutError, httpx2.HTTPError) as error:
            print(f"the server did not come to rest within {DRAIN_S:g} s ({type(error).__name__})")
            return 1
    return report(tally, rests, working, metrics)


async def fill(http: httpx2.AsyncClient, chances: list[random.Random]) -> None:
    """Every store that has a bound."""
    waiting = asyncio.Semaphore(len(chances))
    chance = chances[0]

    async def ask_for(path: str, body: Json) -> None:
        async with waiting:
            (await http.post(path, json={"model": "any", **body})).raise_for_status()

    short = [ask_for("/v1/responses", {"input": f"{n}", "max_output_tokens": 16}) for n in range(RESPONSES)]
    await asyncio.gather(*short)
    until = time.monotonic() + FILL_S
    while time.monotonic() < until:
        kept = (await http.get("/admin/cache")).json()
        if all(kept[f"{store}_bytes"] >= FULL * kept[f"{store}_limit"] for store in ("ram", "disk")):
            return
        text = "".join(chance.choice("abcdefgh ") for _ in range(2000))
        await asyncio.gather(*(ask_for("/v1/completions", {"prompt": f"{n}{text}", "max_tokens": 1}) for n in range(4)))
    print(f"the kept prompts were not full after {FILL_S:g} s")


async def at_rest(http: httpx2.AsyncClient, pid: int | None) -> Rest:
    """Raises TimeoutError."""
    async with asyncio.timeout(DRAIN_S):
        while (await http.get("/health")).json()["active"]:
            await asyncio.sleep(0.05)
    await asyncio.sleep(REST_S)
    kept = (await http.get("/admin/cache")).json()
    responses = (await http.get("/metrics.json")).json()["kept_responses"]
    return Rest(
        resident(pid) if pid is not None else 0,
        kept.get("ram_bytes", 0),
        kept.get("disk_bytes", 0),
        len(kept.get("entries", ())),
        responses["count"],
        responses["bytes"],
    )


async def client(http: httpx2.AsyncClient, chance: random.Random, until: float, tally: Tally) -> None:
    while time.monotonic() < until:
        path, body = request(chance)
        leaves_s = chance.uniform(0, 1) if chance.random() < 0.25 else None
        try:
            async with asyncio.timeout(leaves_s):
                wrong = await ask(http, path, body)
        except TimeoutError:
            tally.left += 1
            continue
        except Exception as error:  # whatever it is, it is what we look for
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            tally.errors.append(f"{path}: {wrong}")
        tally.answers[f"{path}{' stream' if body.get('stream') else ''}"] += 1


def request(chance: random.Random) -> tuple[str, Json]:
    length = chance.choice((10, 100, 100, 1000, 5000))
    text = "".join(chance.choice("abcdefgh ") for _ in range(length))
    tokens = chance.choice((1, 10, 50, 200))
    stream = chance.random() < 0.5
    messages = [{"role": "user", "content": text}]
    model: Json = {"model": "any", "stream": stream, "temperature": chance.choice((0, 0.8))}
    ollama = {**model, "options": {"num_predict": tokens}}
    return chance.choice(
        [
            ("/v1/chat/completions", {**model, "messages": messages, "max_tokens": tokens}),
            ("/v1/chat/completions", {**model, "messages": messages, "max_tokens": tokens, "n": 2}),
            ("/v1/completions", {**model, "prompt": text, "max_tokens": tokens, "logprobs": 1}),
            ("/v1/responses", {**model, "input": text, "max_output_tokens": max(16, tokens)}),
            ("/v1/messages", {**model, "messages": messages, "max_tokens": tokens}),
            ("/v1/messages/count_tokens", {"model": "any", "messages": messages}),
            ("/api/chat", {**ollama, "messages": messages}),
            ("/api/generate", {**ollama, "prompt": text}),
        ]
    )


# What the last line of each stream looks like.
ENDINGS = {
    "/v1/chat/completions": "data: [DONE]",
    "/v1/completions": "data: [DONE]",
    "/v1/responses": 'data: {"type":"response.',
    "/v1/messages": 'data: {"type":"message_stop"',
    "/api/chat": '"done":true',
    "/api/generate": '"done":true',
}


async def ask(http: httpx2.AsyncClient, path: str, body: Json) -> str | None:
    """What is wrong with the answer, if anything."""
    if not body.get("stream"):
        response = await http.post(path, json=body)
        if response.status_code != 200:
            return f"{response.status_code} {response.text[:200]}"
        json.loads(response.text)
        return None
    last = ""
    async with http.stream("POST", path, json=body) as response:
        if response.status_code != 200:
            return f"{response.status_code} {(await response.aread())[:200]!r}"
        async for line in response.aiter_lines():
            last = line or last
    return None if ENDINGS[path] in last else f"ended with {last[:200]!r}"


async def watch(pid: int | None, until: float, memory: list[int]) -> None:
    while pid is not None and time.monotonic() < until:
        if not (size := resident(pid)):
            return  # it has ended: every client says so
        memory.append(size)
        await asyncio.sleep(SAMPLE_S)


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 for one that has ended."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return int(told.stdout.strip() or 0) * 1024


def report(tally: Tally, rests: list[Rest], working: list[int], metrics: Json) -> int:
    print(f"{sum(tally.answers.values())} answers, {tally.left} clients that left")
    for kind, count in sorted(tally.answers.items()):
        print(f"  {count:6} {kind}")
    print(f"{len(tally.errors)} errors")
    for error in tally.errors[:10]:
        print(f"  {error}")
    growth = grown([rest.bytes for rest in rests])
    if working:
        print(
            f"memory at rest: {rests[-1].bytes / MIB:.0f} MiB at the end; at most {max(working) / MIB:.0f} MiB at work"
        )
        print(f"growth, the last two rests against the first two: {growth:+.1%}")
    else:
        print("memory: not watched (no --pid)")
    cancel = metrics["cancel_s"]
    print(f"cancelled: {cancel['count']}, the slowest within {cancel['largest'] * 1000:.0f} ms")
    print("  " + ", ".join(f"{count} within {float(bound) * 1000:g} ms" for bound, count in cancel["within"].items()))
    print(f"engine: finished {metrics['finished']}, failed {metrics['failed']}")
    is_well = not tally.errors and not metrics["failed"] and growth < MAX_GROWTH and cancel["largest"] < CANCEL_S
    return 0 if is_well else 1


def grown(rests: list[int]) -> float:
    before, after = sum(rests[:2]), sum(rests[-2:])
    return after / before - 1 if before else 0.0


if __name__ == "__main__":
    sys.exit(main())
