"""The inside of a scripted sandbox: a dictionary of files, a few commands, and a memory that a new boot loses.

The commands are ``true``, ``false``, ``echo``, ``cat``, ``sleep``, ``pwd``, ``printenv``, ``mkdir``, ``rm``,
``sh -c`` with ``exit N`` or one of these, ``python3 -c`` with ``print`` of constants and their sums and products,
``sys.exit`` and nothing else, and the three scripts by which state and facts are proved, known by a mark in their
text (the constants below). Anything else is answered with 127, unless the setting ``commands`` names it.
"""

from __future__ import annotations

import ast
import operator
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..model import ExecResult

__all__ = ["CHECK_MARK", "FACTS_MARK", "PLANT_MARK", "Guest", "Ran"]

FACTS_MARK = "# sandboxbench: facts"
"""In the text of a script that prints ``key=value`` lines about the guest."""

CHECK_MARK = "# sandboxbench: check"
"""In the text of a script that prints the environment of process ``$1``."""

PLANT_MARK = "SANDBOXBENCH_NONCE"
"""In the text of a script that leaves a process with ``$1`` in its environment and prints its pid.

Where the text has ``"$1" >FILE``, that file is written.
"""

_FIRST_PID = 100
_IN_MEMORY = ("/dev/shm/", "/run/", "/proc/")
_SHELL_ONLY = set("|&;<>()$`\\\n*?[#~")
_PLANTED_FILE = re.compile(r'"\$1" *>([\w./-]+)')
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A command's result and how long it runs before: ``sleep 60`` is 60.0."""

    result: ExecResult
    lasts_s: float = 0.0


def _ok(stdout: str | bytes = b"") -> Ran:
    return Ran(ExecResult(0, stdout.encode() if isinstance(stdout, str) else stdout, b""))


def _fails(exit_code: int, stderr: str) -> Ran:
    return Ran(ExecResult(exit_code, b"", stderr.encode() + b"\n"))


@dataclass(slots=True)
class Guest:
    """One booted guest. ``facts`` are what it says of itself, ``commands`` extra commands with their output."""

    facts: Mapping[str, str]
    commands: Mapping[str, str]
    env: Mapping[str, str]
    files: dict[str, bytes] = field(default_factory=dict)
    boots: int = 1
    _processes: dict[int, str] = field(default_factory=dict)

    def boot(self, *, wipe: bool = False) -> None:
        """Start anew: no process and no file in memory is left, and with ``wipe`` no file at all."""
        self._processes.clear()
        self.boots += 1
        self.files = {p: data for p, data in self.files.items() if not (wipe or p.startswith(_IN_MEMORY))}

    def read(self, path: str) -> bytes | None:
        """A file's content, ``None`` where there is none. Processes and the boot id are files of ``/proc``."""
        if path == "/proc/sys/kernel/random/boot_id":
            return f"00000000-0000-4000-8000-{self.boots:012d}\n".encode()
        parts = path.split("/")
        if len(parts) == 4 and parts[1] == "proc" and parts[3] == "environ" and parts[2].isdecimal():
            nonce = self._processes.get(int(parts[2]))
            return None if nonce is None else f"{PLANT_MARK}={nonce}\0".encode()
        return self.files.get(path)

    def run(self, argv: Sequence[str], stdin: bytes, cwd: str | None, env: Mapping[str, str]) -> Ran:
        """Run one command to its end; ``env`` is added to the guest's own."""
        if not argv:
            return _fails(127, "no command")
        name, args = argv[0].rpartition("/")[2], list(argv[1:])
        environment = {**self.env, **env}
        commands: dict[str, Callable[[], Ran | None]] = {
            "true": lambda: _ok(),
            "false": lambda: Ran(ExecResult(1, b"", b"")),
            "echo": lambda: _ok(" ".join(args) + "\n"),
            "cat": lambda: self._cat(args, stdin),
            "sleep": lambda: self._sleep(args),
            "pwd": lambda: _ok(posixpath.join("/", cwd or "") + "\n"),
            "printenv": lambda: self._printenv(args, environment),
            "mkdir": lambda: _ok(),
            "rm": lambda: self._rm(args),
            "sh": lambda: self._sh(args, stdin, cwd, env),
            "python3": lambda: self._python(args),
        }
        ran = commands[name]() if name in commands else None
        if ran is not None:
            return ran
        if name in self.commands:
            return _ok(self.commands[name])
        if name in commands:
            return _fails(2, f"{name}: the scripted guest cannot run {args!r}; setting commands={name} accepts it")
        return _fails(127, f"{argv[0]}: not found in the scripted guest; setting commands={name} adds it")

    def _cat(self, paths: list[str], stdin: bytes) -> Ran:
        out = b""
        for path in paths or ["-"]:
            data = stdin if path == "-" else self.read(path)
            if data is None:
                return Ran(ExecResult(1, out, f"cat: {path}: No such file or directory\n".encode()))
            out += data
        return _ok(out)

    def _sleep(self, args: list[str]) -> Ran:
        try:
            seconds = sum(map(float, args))
        except ValueError:
            return _fails(1, f"sleep: invalid time interval {args!r}")
        return Ran(ExecResult(0, b"", b""), max(0.0, seconds))

    def _printenv(self, names: list[str], environment: Mapping[str, str]) -> Ran:
        if not names:
            return _ok("".join(f"{k}={v}\n" for k, v in environment.items()))
        found = [environment[name] for name in names if name in environment]
        return Ran(ExecResult(int(len(found) < len(names)), "".join(f"{v}\n" for v in found).encode(), b""))

    def _rm(self, args: list[str]) -> Ran:
        for path in args:
            self.files = {p: data for p, data in self.files.items() if p != path and not p.startswith(path + "/")}
        return _ok()

    def _sh(self, args: list[str], stdin: bytes, cwd: str | None, env: Mapping[str, str]) -> Ran | None:
        if len(args) < 2 or args[0] != "-c":
            return None
        script, argument = args[1], args[3] if len(args) > 3 else ""
        if FACTS_MARK in script:
            return _ok("".join(f"{k}={v}\n" for k, v in self.facts.items()))
        if CHECK_MARK in script and "/proc/" in script:
            data = self.read(f"/proc/{argument}/environ")
            return _fails(1, f"no process {argument}") if data is None else _ok(data.replace(b"\0", b"\n"))
        if PLANT_MARK in script:
            pid = _FIRST_PID + len(self._processes)
            self._processes[pid] = argument
            if written := _PLANTED_FILE.search(script):
                self.files[written[1]] = argument.encode()
            return _ok(f"{pid}\n")
        if _SHELL_ONLY & set(script):
            return None
        try:
            words = shlex.split(script)
        except ValueError:
            return _fails(2, f"sh: syntax error in {script!r}")
        if not words:
            return _ok()
        if words[0] == "exit":
            code = words[1] if len(words) > 1 else "0"
            return Ran(ExecResult(int(code) % 256, b"", b"")) if code.isdecimal() else None
        return self.run(words, stdin, cwd, env)

    def _python(self, args: list[str]) -> Ran | None:
        if len(args) < 2 or args[0] != "-c":
            return None
        out = ""
        try:
            for statement in ast.parse(args[1]).body:
                match statement:
                    case ast.Import(names=[ast.alias(name="sys", asname=None)]):
                        pass
                    case ast.Expr(ast.Call(func=ast.Name("print"), args=values, keywords=[])):
                        out += " ".join(str(_constant(value)) for value in values) + "\n"
                    case ast.Expr(ast.Call(ast.Attribute(ast.Name("sys"), "exit"), args=[ast.Constant(int(code))])):
                        return Ran(ExecResult(code % 256, out.encode(), b""))
                    case _:
                        return None
        except SyntaxError as error:
            return _fails(1, f"SyntaxError: {error.msg}")
        except ValueError:
            return None
        return _ok(out)


def _constant(node: ast.expr) -> object:
    """The value of a literal, or of a sum, difference or product of whole numbers; ``ValueError`` otherwise."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _constant(node.left), _constant(node.right)
        if isinstance(left, int) and isinstance(right, int):
            return _ARITHMETIC[type(node.op)](left, right)
    return ast.literal_eval(node)
