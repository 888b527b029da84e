"""``--sandbox-shape`` and the marker's ``shape=``: how the lanes of a round are let go."""

from __future__ import annotations

import pytest

from .conftest import Suite, clean, errors


def bench(mark: str, name: str = "it") -> str:
    return f"""
    import pytest

    @pytest.mark.sandbox_bench({mark})
    async def test_{name}(sandbox_bench):
        await sandbox_bench.measure()
    """


@pytest.mark.parametrize(
    ("shape", "key", "number"),
    [
        ("burst", "fake:exec@2/burst", 6),
        ("closed-10", "fake:exec@2/closed-10", 30),
        ("rate-200.0", "fake:exec@2/rate-200", 6),
        ("stagger-0.01s", "fake:exec@2/stagger-10ms", 6),
    ],
)
def test_each_shape_is_measured_and_names_its_series(suite: Suite, shape: str, key: str, number: int) -> None:
    suite.one_bench()
    clean(suite.run("--sandbox-concurrency=2", f"--sandbox-shape={shape}"), 0)
    assert suite.series() == {key: number}
    assert [block["shape"] for block in suite.header()["blocks"]] == [key.rpartition("/")[2]]
    suite.assert_nothing_left()


def test_a_shape_under_xdist(suite: Suite) -> None:
    suite.one_bench()
    clean(suite.run("-n", "2", "--sandbox-concurrency=3", "--sandbox-shape=closed-9"), 0)
    assert suite.series() == {"fake:exec@3/closed-9": 27}
    suite.assert_nothing_left()


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("closed", "'closed' is no load shape: closed needs its number; write for example closed-100"),
        ("wave", "'wave' is no load shape: the shapes are burst, closed-100, closed-10s, rate-20, stagger-50ms"),
        ("rate-0", "'rate-0' is no load shape: rate-N is N arrivals a second"),
    ],
)
def test_mistakes_name_the_value_and_an_example(suite: Suite, shape: str, told: str) -> None:
    text = clean(suite.bare(f"--sandbox-shape={shape}"), 4)
    assert text.count(told) == 1
    assert "argument --sandbox-shape" in text


def test_the_ini_key(suite: Suite) -> None:
    suite.ini("sandbox_shape = closed-4")
    suite.one_bench()
    clean(suite.run(), 0)
    assert suite.series() == {"fake:exec@1/closed-4": 12}


def test_a_mistake_in_the_ini_file(suite: Suite) -> None:
    suite.ini("sandbox_shape = wrong")
    suite.one_bench()
    result = suite.bare("--sandbox-provider=fake")
    clean(result, 4)
    (error,) = errors(result)
    assert "sandbox_shape: 'wrong' is no load shape" in error


def test_fewer_requests_than_lanes_are_told_before_anything_runs(suite: Suite) -> None:
    suite.one_bench()
    result = suite.run("--sandbox-concurrency=1,8", "--sandbox-shape=closed-5")
    clean(result, 4)
    (error,) = errors(result)
    assert "test_one.py::test_exec[fake-c8]: closed-5 is fewer requests than the 8 lanes" in error
    assert "write for example closed-80" in error
    assert suite.calls("create") == []


def test_the_marker_is_stronger_than_the_option(suite: Suite) -> None:
    suite.write(test_own=bench('"exec", shape="closed-04"'))
    clean(suite.run("--sandbox-shape=rate-20"), 0)
    assert suite.series() == {"fake:exec@1/closed-4": 12}


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ('"closed"', "shape='closed': 'closed' is no load shape: closed needs its number"),
        ("100", "shape=100: it is a text: burst, closed-100"),
        ('""', "shape='': '' is no load shape"),
    ],
)
def test_a_mistake_in_a_marker_names_the_test(suite: Suite, shape: str, told: str) -> None:
    suite.write(test_own=bench(f'"exec", shape={shape}'))
    result = suite.run()
    clean(result, 4)
    (error,) = errors(result)
    assert "test_own.py::test_it[fake-c1]: marker sandbox_bench: " in error
    assert told in error


def test_two_shapes_of_one_operation_are_two_blocks(suite: Suite) -> None:
    one, other = bench('"startup", shape="closed-5"', "closed"), bench('"create"', "burst")
    suite.write(test_one=one, test_two=bench('"destroy", shape="closed-5"'), test_three=other)
    clean(suite.run(), 0)
    assert [block["id"] for block in suite.header()["blocks"]] == ["start@1/closed-5", "start@1"]
    assert suite.series()["fake:destroy@1/closed-5"] == 15
    assert suite.series()["fake:destroy@1/burst"] == 3


def test_an_act_of_ones_own_may_have_two_shapes(suite: Suite) -> None:
    suite.write(
        test_own="""
        import pytest

        async def act(sandbox):
            await sandbox.exec(["true"])

        @pytest.mark.sandbox_bench("mine", shape="closed-5")
        async def test_closed(sandbox_bench):
            await sandbox_bench.measure(act)

        @pytest.mark.sandbox_bench("mine")
        async def test_burst(sandbox_bench):
            await sandbox_bench.measure(act)
        """
    )
    clean(suite.run(), 0)
    assert suite.series() == {"fake:mine@1/closed-5": 15, "fake:mine@1/burst": 3}


@pytest.mark.parametrize(
    ("shape", "level", "number"), [("burst", 1, 60), ("burst", 2, 40), ("closed-3", 2, 18), ("stagger-1ms", 2, 12)]
)
def test_how_much_is_measured_where_nobody_says(suite: Suite, shape: str, level: int, number: int) -> None:
    suite.one_bench()
    arguments = ("--sandbox-provider=fake", f"--sandbox-concurrency={level}", f"--sandbox-shape={shape}")
    clean(suite.bare(*arguments, "--sandbox-warmup=0"), 0)
    assert suite.series() == {f"fake:exec@{level}/{shape}": number}
