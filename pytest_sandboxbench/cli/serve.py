"""``sandboxbench serve e2b``: a local imitation of a hosted provider, for tests, demos, and whoever has no key."""

from __future__ import annotations

import argparse
import asyncio
import errno
import signal
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from .. import threads
from ..errors import UsageError

__all__ = ["add_command"]

PORT = 3210

_STEPS = """faults: OPERATION=STEP,STEP,...
  each request of the operation takes the next step, and after the last one all is well;
  STEP is [COUNTx]WHAT, and WHAT one of
    ok             served as it should be
    429, 503, ...  that status, and nothing is done; 429:2 says Retry-After: 2
    slow:SECONDS   served so much later
    drop           the connection is closed without an answer, and nothing is done
    lose           it is done, and the answer is lost
    hang           no answer until the client goes away
  and a last step ... starts again from the first. Operations: {operations}"""


def add_command(commands: argparse._SubParsersAction[Any], seconds: Callable[[str], float]) -> None:
    from ..serve.faults import OPERATIONS

    serve = commands.add_parser(
        "serve",
        help="a local imitation of a hosted provider, with real sandboxes of this machine behind it",
        epilog=_STEPS.format(operations=", ".join(OPERATIONS)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("kind", choices=("e2b",), metavar="e2b", help="which service")
    serve.add_argument(
        "--port", type=int, default=PORT, metavar="N", help=f"of 127.0.0.1 ({PORT}); 0 is any that is free"
    )
    serve.add_argument("--key", metavar="KEY", help="the key that it takes (e2b_local)")
    serve.add_argument("--max-live", type=int, metavar="N", help="how many sandboxes may run at once; more are a 429")
    serve.add_argument("--create-rate", type=float, metavar="R", help="how many creates a second; more are a 429")
    serve.add_argument(
        "--ready-after", type=seconds, default=0.0, metavar="S", help="a sandbox answers so much later than its create"
    )
    serve.add_argument("--fault", action="append", default=[], metavar="SCRIPT", help="what goes wrong: see below")
    serve.set_defaults(run=_serve)


def _serve(arguments: argparse.Namespace) -> int:
    if find_spec("aiohttp") is None:
        raise UsageError("the local server needs aiohttp: pip install 'pytest-sandboxbench[serve]'")
    if arguments.max_live is not None and arguments.max_live < 1:
        raise UsageError("--max-live: a whole number from 1 on")
    if arguments.create_rate is not None and not arguments.create_rate > 0:
        raise UsageError("--create-rate: a number above 0")
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError("--port: a number from 0 to 65535")
    return threads.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    from aiohttp import web

    from ..serve.e2b import KEY, Imitation
    from ..serve.e2b_house import House
    from ..serve.faults import Faults

    faults = Faults(arguments.fault)
    house = House(max_live=arguments.max_live, create_rate=arguments.create_rate, ready_after=arguments.ready_after)
    lacking = await house.open()
    if lacking:
        raise UsageError(f"no sandbox of bubblewrap can be made here: {lacking}")
    key = arguments.key or KEY
    runner = web.AppRunner(Imitation(house, faults, key=key).app, access_log=None)
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", arguments.port, shutdown_timeout=1, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise UsageError(f"port {arguments.port} is taken: --port 0 takes one that is free") from None
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        print(
            f"A local imitation of E2B, with bubblewrap sandboxes of this machine: its times say nothing of E2B.\n"
            f"In another terminal:\n\n"
            f"    export E2B_API_KEY={key} E2B_API_URL={url} E2B_SANDBOX_URL={url}\n"
            f"    pytest benches/ --provider e2b\n\n"
            f"Ctrl-C ends it, and destroys what is left in it.",
            flush=True,
        )
        await over.wait()
    finally:
        await runner.cleanup()
        await house.close()
    return 0
