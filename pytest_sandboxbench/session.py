"""The benches of one pytest session: which there are, which belong together, what they gave. One object a process."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from . import markers, options, planning
from .baseline.bridge import PublishedSeries, Wishes, check_collection, publish, regressions
from .bench import SandboxBench
from .blocks import Blocks, provider_name
from .clock import NS_PER_S
from .errors import UsageError
from .identity import check_writable, hide_from_git, share
from .load.desk import Slots
from .load.gang_worker import ToController, say, say_benches, worker_desk, worker_hooks
from .load.preflight import secrets_of
from .measuring import FLOOR, Measuring, Settings
from .model import Preflight
from .naming import is_coroutine, is_ours, is_parametrized, measures
from .news import News
from .providers.registry import Registry
from .records.redaction import redact
from .records.schema import Row
from .records.series import SeriesTable
from .report.clean import Cleaner
from .stash import HEARD, SERIES, SESSION, VERDICTS, WISHES
from .termination import Termination
from .workers import reap_workers

if TYPE_CHECKING:
    from .budgeting import Budgets
    from .budgets.model import Verdict
    from .report.progress import Progress
    from .several import Several

__all__ = ["BenchSession", "provider_name", "session_of"]

_UNSAFE = re.compile(r"[^\w.+-]+")


def session_of(config: pytest.Config) -> BenchSession:
    """The session's object, made with the first bench that is collected, or the first result that a worker sends."""
    session = config.stash.get(SESSION, None)
    if session is None:
        session = config.stash[SESSION] = BenchSession(config)
    return session


class BenchSession:
    """What the hooks delegate to."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.wishes: Wishes = config.stash[WISHES]
        self.results = SeriesTable()
        self.header: dict[str, Any] = {}
        self.measuring: Measuring | None = None
        self.news = News(config)
        self.termination = Termination()
        self.selected = 0
        self._registry: Registry | None = None
        self._mistake = ""
        self.blocks = Blocks(self)
        self._marked = False
        self._ran = False

    # -- choosing

    @property
    def registry(self) -> Registry:
        if self._registry is None:
            try:
                hook, given = self.config.hook, self.config.getoption("sandbox_option")
                more = hook.pytest_sandboxbench_providers(config=self.config)
                self._registry = Registry(self.config.rootpath, given, more)
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None
        return self._registry

    @cached_property
    def budgets(self) -> Budgets | None:
        """None where nothing has budgets: a worker then need not load what judges them."""
        if self.wishes.disabled or not (self._marked or options.has_budgets(self.config)):
            return None
        from .budgeting import Budgets

        return Budgets(self.config)

    @cached_property
    def several(self) -> Several:
        """In the process that shows results."""
        from .several import Several

        return Several(self)

    @cached_property
    def cleaner(self) -> Cleaner:
        return Cleaner(secrets_of(self.registry))

    @property
    def names(self) -> Sequence[str]:
        """Chosen providers; ``UsageError`` for one that does not exist."""
        names: Sequence[str] = options.get(self.config, "provider") or (default_provider(),)
        try:
            self.registry.check(names)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        return names

    def check(self) -> None:
        """Refuse a mistake in the options before anything is collected. ``UsageError``."""
        for name in self.names:
            if self.registry.options(name):
                try:
                    self.registry.spec(name)
                    self.registry.make(name)
                except UsageError as error:
                    raise pytest.UsageError(self.cleaner.text(str(error))) from None
                except KeyboardInterrupt:
                    raise
                except BaseException:
                    pass  # no mistake of a person: its preflight tells what it is
        if self.config.getoption("sandbox_budget") and self.budgets is not None:
            self.budgets.check_option()

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """A bench runs for each provider and level; a test that only uses a sandbox for each provider."""
        try:
            names = self.names
            levels = options.get(self.config, "concurrency")
            self.shared  # noqa: B018 -- refuses a folder of records that is taken
            options.check(self.config)
            planning.check_levels(self.registry, names, levels)
            _check_asyncio(self.config)
        except pytest.UsageError as error:
            # Raised from here it would be an error of this file, with a traceback: `group` tells it.
            self._mistake, names, levels = str(error), ("?",), (1,)
        metafunc.parametrize("sandbox_provider", names, ids=names, indirect=True)
        if "sandbox_bench" in metafunc.fixturenames and not is_parametrized(metafunc, "concurrency"):
            metafunc.parametrize("concurrency", levels, ids=[f"c{level}" for level in levels])

    @property
    def shared(self) -> Mapping[str, str]:
        """What names this run, in a worker as its controller decided."""
        given: Mapping[str, str] | None = getattr(self.config, "workerinput", {}).get("sandboxbench")
        return share(self.config) if given is None else given

    # -- collecting

    def adopt(self, nodes: Sequence[object]) -> None:
        """Let asynchronous tests with our fixtures run on the session's event loop, where the clients live."""
        for node in nodes:
            if isinstance(node, pytest.Item) and is_ours(node) and is_coroutine(node):
                marker = node.get_closest_marker("asyncio")
                if marker is None or "loop_scope" not in marker.kwargs:
                    node.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)

    def group(self, items: Sequence[pytest.Item]) -> None:
        """After deselection: what is selected, and which tests are views on one block. ``UsageError`` for a mistake."""
        ours = [item for item in items if is_ours(item)]
        self.selected = len(ours)
        mistake = self._mistake
        if not mistake:
            try:
                self.blocks.group(ours)
                if not hasattr(self.config, "workerinput"):
                    check_collection(self.config, ours=bool(ours))
                self._marked = any(item.get_closest_marker(markers.BUDGET) for item in ours)
                if (budgets := self.budgets) is not None:
                    for item in ours:
                        budgets.about(item)
                    budgets.check([item for item in ours if measures(item)])
                if ours and not self.config.option.collectonly:
                    check_writable(Path(self.shared["records"]))
            except pytest.UsageError as error:
                mistake = str(error)
        if ours:
            say_benches(self.config, self.blocks.benches)
        if mistake and not say(self.config, "mistake", mistake):
            raise pytest.UsageError(mistake)

    # -- measuring

    @property
    def settings(self) -> Settings:
        """How much is measured, as this run was asked to."""
        return options.settings(self.config, self.wishes, int(self.shared["seed"]))

    def start(self) -> Measuring:
        """Make the measuring part, in the process that measures."""
        self.termination.install()
        config = self.config
        self.cleaner.logs(config)
        worker = getattr(config, "workerinput", {}).get("workerid", "")
        folder = Path(self.shared["records"])
        if options.get(config, "records") is None:
            hide_from_git(folder.parent)
        measuring = self.measuring = self.news.measuring = Measuring(
            self.registry,
            self.settings,
            run_id=self.shared["run_id"],
            folder=folder,
            spool_name=f"samples-{worker}.jsonl" if worker else "samples.jsonl",
            origin_ns=int(self.shared["origin_ns"]) - self._clock(worker),
            progress=None if worker else self._progress(),
            told=ToController(config) if worker else None,
            desk=worker_desk(config) if worker else None,
        )
        config.hook.pytest_sandboxbench_update_header(config=config, header=measuring.header.values)
        self.header = measuring.header.values
        return measuring

    def _clock(self, worker: str) -> int:
        """How far the controller's clock is ahead of this process's, in nanoseconds."""
        hooks = worker_hooks(self.config)
        ahead, error = (0, 0) if hooks is None else hooks.clock
        if error:
            self.news.note(
                f"{worker} is on another host: its lanes start with the others' to within {error / 1e6:.2g} ms"
            )
        return ahead

    def _progress(self) -> Progress:
        from .report.progress import Progress

        return Progress(self.config)

    def slots(self) -> Slots:
        """Our limits of the chosen providers, where several processes keep them together."""
        limits = {name: self.registry.limits(name) for name in (*self.names, FLOOR)}
        most = options.get(self.config, "max-sandboxes")
        return Slots(limits, int(options.get(self.config, "timeout") * NS_PER_S), most)

    def bench(self, node: pytest.Item, level: int) -> SandboxBench:
        return SandboxBench(self.blocks, node, level)

    def missing(self, node: pytest.Item, name: str, answer: Preflight) -> NoReturn:
        """A provider cannot run here: a skip with its cure, a failure under --sandbox-strict."""
        reason, cure = self.cleaner.text(answer.reason), self.cleaner.text(answer.cure)
        self.news.missing(name, reason, cure)
        text = f"{name} is not ready: {reason}. {cure}"
        if options.strict(self.config):
            pytest.fail(text, pytrace=False)
        pytest.skip(text)

    # -- results

    def absorb(self, text: bytes) -> list[str]:
        """Take samples in; returns the keys of their series."""
        import msgspec

        keys: dict[str, None] = {}
        for row in msgspec.json.Decoder(Row).decode_lines(text):
            self.results.add(row)
            keys[row.series] = None
        return list(keys)

    def attach(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Hand what a test measured to whoever shows it, on its report: in this process or in xdist's controller."""
        ours = is_ours(item)
        if ours or self.measuring is not None:  # the clients are closed in the teardown of the last test of all
            self.cleaner.report(report, ours=ours)
        if not ours or report.when == "teardown":
            return
        if report.when == "setup" and report.passed:
            return
        bench = getattr(item, "funcargs", {}).get("sandbox_bench")
        if report.passed and bench is not None and not bench.used:
            report.outcome = "failed"
            report.longrepr = "nothing was measured: `await sandbox_bench.measure(...)`"
        payload = {"selected": self.selected, "series": item.stash.get(SERIES, [])}
        report.sandboxbench = payload  # type: ignore[attr-defined]
        if self.budgets is not None:
            from .budgets.plain import to_plain

            verdicts: list[Verdict] = item.stash.get(VERDICTS, [])
            payload |= {"verdicts": to_plain(verdicts), "budgets": to_plain(self.budgets.marked(item))}

    def receive(self, report: pytest.TestReport, payload: Mapping[str, Any]) -> None:
        """In the process that shows results: publish the test's series."""
        from .report.published import extra_info, figures

        self._ran = self._ran or not report.skipped
        if hasattr(report, "node"):  # it came from a worker
            self.selected = max(self.selected, payload["selected"])
        self.take_in()
        if payload.get("budgets") or payload.get("verdicts") or self.judged is not None:
            self.several.hear(report.nodeid, payload)
        for key in payload["series"]:
            series = self.results.get(key)
            if series is not None:
                name = report.nodeid.rpartition("::")[2]
                facts = redact(extra_info(series, self.header), secrets_of(self.registry))
                publish(self.config, PublishedSeries(name, series.key, series.latencies, facts, figures(series)))

    @property
    def judged(self) -> Several | None:
        """What came of budgets, in the process that shows results, where there are any."""
        return self.several if "several" in vars(self) or self.budgets is not None else None

    def test_is_over(self) -> None:
        """In the process that shows results: what could be judged since is reported now."""
        if (judged := self.judged) is not None:
            judged.judge()

    def take_in(self) -> None:
        """In xdist's controller: what the workers measured until now."""
        import msgspec

        heard = self.config.stash.get(HEARD, None)
        if heard is None:
            return
        while heard.rows:
            self.absorb(heard.rows.popleft())
        if heard.header:
            self.header = msgspec.json.decode(heard.header)

    @property
    def folder(self) -> Path | None:
        """Where the records of this run are, once there are any."""
        run = self.header.get("folder")
        return Path(run) if run else None

    def finish(self, session: pytest.Session, status: int) -> Generator[None, Any, Any]:
        """Around the end of the session, in which fixtures end, and with them all sandboxes."""
        if self.judged is not None and not hasattr(self.config, "workerinput"):
            self.take_in()
            ended = status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            self.judged.end(whole=ended and not (session.shouldfail or session.shouldstop))
        session.exitstatus = self.exit_status(status)
        self.termination.ending()
        result = None
        try:
            try:
                result = yield
            except KeyboardInterrupt:
                self._interrupted(session)
            finally:
                if self.measuring is not None:  # its fixture may have been left in the middle
                    self.measuring.finish()
                    self.news.tell()
            if self.config.getoption("dist", "no") != "no" and not hasattr(self.config, "workerinput"):
                before = self.termination.interrupts > 0
                try:
                    reap_workers(self.registry, self.shared["run_id"], self.news, interrupted=before)
                except KeyboardInterrupt:
                    self._interrupted(session)
                self.take_in()
                self.news.workers()
            session.exitstatus = self.exit_status(session.exitstatus)  # what it found by then may be a leak
            return result
        finally:
            self.termination.uninstall()

    def _interrupted(self, session: pytest.Session) -> None:
        """At the end: somebody does not want to wait for the sandboxes to end. The summary says what is left."""
        self.termination.interrupts += 1
        session.exitstatus = pytest.ExitCode.INTERRUPTED

    def exit_status(self, status: int) -> int:
        """pytest's own status, unless a worse thing is known: a leak or regression 1, nothing measured 5.

        Ended by a signal, it is what a shell says of that.
        """
        if self.termination.number and status == pytest.ExitCode.INTERRUPTED:
            return 128 + self.termination.number
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            broken = "several" in vars(self) and self.several.failed
            if self.news.left or self.news.unrun or regressions(self.config) or broken:
                return pytest.ExitCode.TESTS_FAILED
            if self.selected and not self._ran and not self.config.option.collectonly and not self.wishes.skip:
                return pytest.ExitCode.NO_TESTS_COLLECTED
        return status


def default_provider() -> str:
    import sys

    return "bubblewrap" if sys.platform == "linux" else "null"


def _check_asyncio(config: pytest.Config) -> None:
    manager = config.pluginmanager
    if not (manager.hasplugin("asyncio") or manager.hasplugin("pytest_asyncio.plugin")):
        raise pytest.UsageError(
            "benches of sandboxes need pytest-asyncio, which is not loaded: -p pytest_asyncio.plugin"
        )
