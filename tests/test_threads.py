"""Threads of the event loop: none is waited for, an idle one is used again, no call waits for another one."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_sandboxbench.threads import DaemonThreads, run, use_daemons


def test_a_process_ends_while_a_call_hangs_in_a_thread() -> None:
    script = """
import asyncio, time
from pytest_sandboxbench.threads import run

async def main():
    try:
        await asyncio.wait_for(asyncio.to_thread(time.sleep, 60), 0.2)
    except TimeoutError:
        print("late")

run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "late\n", "")


def test_calls_one_after_another_share_a_thread() -> None:
    async def main() -> set[int]:
        return {await asyncio.to_thread(threading.get_ident) for _ in range(200)}

    assert len(run(main())) == 1


def test_calls_at_once_wait_for_nobody() -> None:
    number = 60
    together = threading.Barrier(number)

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(together.wait, 20) for _ in range(number)))

    run(main())


def test_results_and_errors_come_back() -> None:
    def broken() -> None:
        raise SystemExit(3)

    threads = DaemonThreads()
    assert threads.submit(divmod, 7, 2).result(5) == (3, 1)
    assert isinstance(threads.submit(broken).exception(5), SystemExit)
    assert threads.submit(int, "7").result(5) == 7


def test_idle_threads_end_with_the_loop_and_keep_nothing_alive() -> None:
    class Client:
        def use(self) -> threading.Thread:
            return threading.current_thread()

    async def main() -> threading.Thread:
        client = Client()
        seen = weakref.ref(client)
        used = await asyncio.to_thread(client.use)
        del client
        until = time.monotonic() + 5
        while seen() is not None and time.monotonic() < until:
            gc.collect()
            await asyncio.sleep(0.01)
        assert seen() is None
        return used

    thread = run(main())
    thread.join(5)
    assert not thread.is_alive()


def test_nothing_begins_after_the_end() -> None:
    threads = DaemonThreads()
    threads.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        threads.submit(int)


def test_a_pool_of_somebodys_own_stays() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="mine"))
        use_daemons(loop)
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(main()).startswith("mine")


def test_asyncios_own_pool_does_not() -> None:
    async def main() -> str:
        await asyncio.to_thread(int)
        use_daemons(asyncio.get_running_loop())
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(main()).startswith("sandboxbench")
