"""``sandboxbench template e2b NAME``: CPU and memory of a hosted sandbox come from its template; this builds one."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import Any

from .. import threads
from ..errors import UsageError

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[Any]) -> None:
    template = commands.add_parser(
        "template", help="build a template whose sandboxes have so much CPU and memory, for providers that want one"
    )
    template.add_argument("kind", choices=("e2b",), metavar="e2b", help="at which service")
    template.add_argument("name", metavar="NAME", help="what it is to be called; one of that name is built anew")
    template.add_argument("--vcpus", type=int, default=2, metavar="N", help="of each sandbox (2)")
    template.add_argument("--memory-mib", type=int, default=4096, metavar="N", help="of each sandbox (4096)")
    template.add_argument("--from", dest="base", default="base", metavar="TEMPLATE", help="what it is made from (base)")
    template.set_defaults(run=_build)


def _build(arguments: argparse.Namespace) -> int:
    if find_spec("e2b") is None:
        raise UsageError("E2B's SDK is not installed: pip install 'pytest-sandboxbench[e2b]'")
    if not os.environ.get("E2B_API_KEY"):
        raise UsageError("E2B_API_KEY is not set: export E2B_API_KEY=e2b_... (https://e2b.dev/dashboard?tab=keys)")
    if arguments.vcpus < 1 or arguments.memory_mib < 1:
        raise UsageError("--vcpus and --memory-mib: whole numbers from 1 on")
    return threads.run(_built(arguments))


async def _built(arguments: argparse.Namespace) -> int:
    from e2b import AsyncTemplate

    from ..errors import CreateFailed
    from ..providers.e2b_errors import translated
    from ..report.text import harmless

    name, vcpus, memory = arguments.name, arguments.vcpus, arguments.memory_mib
    wanted = AsyncTemplate().from_template(arguments.base)
    try:
        await AsyncTemplate.build(wanted, name, cpu_count=vcpus, memory_mb=memory)
    except Exception as error:
        raise UsageError(str(translated(error, f"building template {name}", CreateFailed))) from error
    options = f"e2b.image={name}", f"e2b.vcpus={vcpus}", f"e2b.memory_mib={memory}"
    print(
        f"built {harmless(name)}, with {vcpus} vCPU and {memory} MiB. To measure it, and see that its guests have that:"
    )
    print(f"  pytest benches/ --provider e2b {' '.join(f'--sandbox-option {harmless(option)}' for option in options)}")
    return 0
