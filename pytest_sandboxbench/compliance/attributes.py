"""What is wrong with the attributes of what a provider gives: those it lacks, and those of another type or word.

No type checker may have seen an adapter, and much of this is read only by a report, long after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from ..model import Capabilities, ExecResult, Isolation, PauseKind, Preflight, SandboxRef, SpanDeclaration

__all__ = [
    "no_texts",
    "wrong_in_preflight",
    "wrong_in_provider",
    "wrong_in_ref",
    "wrong_in_result",
    "wrong_in_sandbox",
]

_LONGEST = 200
_PATHS = ("cold", "pool", "snapshot")
_LIMITS = ("vcpus", "memory_mib", "pids")
_FLAGS = ("exec", "stream", "files", "one_shot", "shell", "network_off", "labels", "hosted")

Wanted = tuple[str, Callable[[Any], bool]]
"""What a value is, in words, and whether one is that."""


def _a(kind: type[Any], words: str) -> Wanted:
    # True is no number.
    return words, lambda value: isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _one_of(words: tuple[str, ...]) -> Wanted:
    return f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words


def _some_of(kind: type[Any], words: tuple[str, ...]) -> Wanted:
    return (
        f"a {kind.__name__} of these: {', '.join(words)}",
        lambda value: isinstance(value, kind) and all(isinstance(one, str) and one in words for one in value),
    )


_CAPABILITIES: Mapping[str, Wanted] = {
    "isolation": _one_of(get_args(Isolation)),
    "pause": _some_of(tuple, get_args(PauseKind)),
    "limits": _some_of(frozenset, _LIMITS),
    **dict.fromkeys(_FLAGS, _a(bool, "True or False")),
    "max_live": (
        "None or a whole number above 0",
        lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0),
    ),
    "spans": (
        "a tuple of SpanDeclaration",
        lambda value: isinstance(value, tuple) and all(isinstance(one, SpanDeclaration) for one in value),
    ),
}
_PREFLIGHT: Mapping[str, Wanted] = {
    "ready": _a(bool, "True or False"),
    "reason": _a(str, "a text"),
    "cure": _a(str, "a text"),
    "facts": ("names and texts", lambda value: isinstance(value, Mapping) and not no_texts(value)),
}
_SANDBOX: Mapping[str, Wanted] = {
    "unenforced": (
        "a frozenset of texts",
        lambda value: isinstance(value, frozenset) and all(isinstance(one, str) for one in value),
    ),
    "path": _one_of(_PATHS),
}
_RESULT: Mapping[str, Wanted] = {
    "exit_code": _a(int, "a whole number"),
    "stdout": _a(bytes, "bytes"),
    "stderr": _a(bytes, "bytes"),
}
_REF: Mapping[str, Wanted] = {
    "id": _a(str, "a text"),
    "details": ("names and texts", lambda value: isinstance(value, Mapping) and not no_texts(value)),
}


def _wrong(whose: str, thing: object, wanted: Mapping[str, Wanted]) -> list[str]:
    said = []
    for name, (words, is_right) in wanted.items():
        if not hasattr(thing, name):
            said.append(f"{whose} lacks the attribute `{name}`: {words}")
        elif not is_right(value := getattr(thing, name)):
            said.append(f"{whose}: `{name}` is {_shown(value)}, not {words}")
    return said


def _typed(whose: str, thing: object, kind: type[Any], wanted: Mapping[str, Wanted]) -> list[str]:
    if not isinstance(thing, kind):
        return [f"{whose} is of type {type(thing).__name__}, not {kind.__name__}"]
    return _wrong(whose, thing, wanted)


def wrong_in_provider(provider: object, name: str) -> list[str]:
    called = (f"{name!r}, as its factory was told", lambda value: value == name)
    capabilities = getattr(provider, "capabilities", None)
    return [
        *_wrong("the provider", provider, {"name": called}),
        *_typed("capabilities", capabilities, Capabilities, _CAPABILITIES),
    ]


def wrong_in_preflight(answer: object) -> list[str]:
    return _typed("what preflight gave", answer, Preflight, _PREFLIGHT)


def wrong_in_ref(ref: object, name: str, whose: str) -> list[str]:
    called = (f"{name!r}, the name of the instance", lambda value: value == name)
    return _typed(f"the reference of {whose}", ref, SandboxRef, {**_REF, "provider": called})


def wrong_in_sandbox(sandbox: object, name: str) -> list[str]:
    ref = wrong_in_ref(getattr(sandbox, "ref", None), name, "the sandbox")
    return [*ref, *_wrong("the sandbox", sandbox, _SANDBOX)]


def wrong_in_result(result: object, whose: str) -> list[str]:
    return _typed(f"what {whose} gave", result, ExecResult, _RESULT)


def no_texts(pairs: Any) -> str:
    """Those pairs that are not of texts, whatever their type says."""
    strange = {k: v for k, v in pairs.items() if not (isinstance(k, str) and isinstance(v, str))}
    return _shown(strange) if strange else ""


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
