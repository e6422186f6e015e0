"""Every error a person can meet, cut by what they can do next.

SlipstreamError
├── InvalidRequest      an option or prompt is wrong: change it
│   └── ContextFull     the prompt does not fit the context: shorten it
├── ModelNotFound       nothing at that name or path: check it, or download it
├── ModelIncomplete     files are missing or cut short: finish the download
├── UnsupportedModel    we do not know this architecture or format: choose another
├── PairMismatch        the drafter was made for another target: choose its own
├── WontFit             not enough memory: smaller model, or shorter context
├── DownloadFailed      the hub or the disk said no; what was fetched is kept
│   ├── TokenNeeded     the hub wants to know who asks (401): paste a token
│   ├── LicenceNeeded   its publisher asks to accept terms (403): open the model's page
│   ├── NotOnHub        no such repository, revision or file (404): check the name
│   ├── RateLimited     too many requests (429): wait `retry_after_s`
│   ├── Unreachable     no network, time-outs, a hub in trouble: try again
│   ├── DiskFull        too little room: free space, or choose another folder
│   ├── DamagedDownload the bytes are not what the hub promised, twice: try again later
│   └── FormatRefused   nothing there may or can be loaded: choose another repository
├── Unsteady            the machine is hot or busy: let it rest, or measure all the same
├── Busy                the queue is full: try again in `retry_after_s`
├── EngineFaulted       a forward pass failed, caches cannot be trusted: reload
└── Closed              the engine is shutting down

Each carries a `code` (stable, for programs), a sentence that says what to do, and the facts behind it.
"""

from __future__ import annotations

from typing import ClassVar

_LONGEST_REASON = 200


class SlipstreamError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


def reason(error: BaseException) -> str:
    """What another program's error says, to be put into a sentence: its first line, without an end of its own."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:_LONGEST_REASON].rstrip(" .:;,")


class InvalidRequest(SlipstreamError):
    code = "invalid_request"


class ContextFull(InvalidRequest):
    code = "context_full"

    def __init__(self, prompt_tokens: int, context: int) -> None:
        super().__init__(
            f"prompt is too long: {prompt_tokens} tokens > {context} maximum; "
            "shorten it or use a model with a larger context",
            prompt_tokens=prompt_tokens,
            context=context,
        )


class ModelNotFound(SlipstreamError):
    code = "model_not_found"


class ModelIncomplete(SlipstreamError):
    code = "model_incomplete"


class UnsupportedModel(SlipstreamError):
    code = "unsupported_model"


class PairMismatch(SlipstreamError):
    code = "pair_mismatch"


class WontFit(SlipstreamError):
    code = "wont_fit"


class DownloadFailed(SlipstreamError):
    code = "download_failed"


class TokenNeeded(DownloadFailed):
    code = "token_needed"


class LicenceNeeded(DownloadFailed):
    code = "licence_needed"


class NotOnHub(DownloadFailed):
    code = "not_on_hub"


class RateLimited(DownloadFailed):
    code = "rate_limited"

    def __init__(self, message: str, retry_after_s: float, **facts: object) -> None:
        super().__init__(message, retry_after_s=retry_after_s, **facts)
        self.retry_after_s = retry_after_s


class Unreachable(DownloadFailed):
    code = "unreachable"


class DiskFull(DownloadFailed):
    code = "disk_full"


class DamagedDownload(DownloadFailed):
    code = "damaged_download"


class FormatRefused(DownloadFailed):
    code = "format_refused"


class Unsteady(SlipstreamError):
    code = "unsteady"

    def __init__(self, state: str) -> None:
        super().__init__(
            f"this machine is {state}, so what is measured now would mislead; let it rest and try again, "
            "or measure all the same with --force",
            state=state,
        )


class Busy(SlipstreamError):
    code = "busy"

    def __init__(self, waiting: int, retry_after_s: float = 1.0) -> None:
        super().__init__(
            f"{waiting} requests are already waiting; try again in {retry_after_s:g} s",
            waiting=waiting,
            retry_after_s=retry_after_s,
        )


class EngineFaulted(SlipstreamError):
    code = "engine_faulted"


class Closed(SlipstreamError):
    code = "closed"
