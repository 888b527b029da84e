"""Case 16: a resume that is a new boot is no resume; one that keeps only the disk says so in its name."""

from __future__ import annotations

from tests.plugin.conftest import Suite, clean

PAUSE = ("-k", "test_pause or test_resume")


def test_a_new_boot_fails(benches: Suite, workers: tuple[str, ...]) -> None:
    result = benches.run("benches", *PAUSE, "--sandbox-option=fake.resume=fresh-boot", *workers)
    text = clean(result, 1)
    assert result.parseoutcomes()["failed"] == 2
    assert "resume made a new boot" in text
    assert "a provider that keeps only the disk declares pause kind `filesystem`" in text
    outcomes = {(s["series"].partition("{")[0], s["outcome"]) for s in benches.samples()}
    assert outcomes == {("fake:pause", "ok"), ("fake:resume", "failed"), ("fake:resume_to_first_exec", "failed")}
    benches.assert_nothing_left()


def test_a_boot_that_is_declared_is_labelled(benches: Suite) -> None:
    options = ("--sandbox-option=fake.resume=fresh-boot", "--sandbox-option=fake.pause_kinds=filesystem")
    result = benches.run("benches", *PAUSE, *options)
    text = clean(result, 0)
    assert "resume{kind=filesystem}" in text
    assert set(benches.series()) == {
        "fake:pause{kind=filesystem}@1/burst",
        "fake:resume{kind=filesystem}@1/burst",
        "fake:resume_to_first_exec{kind=filesystem}@1/burst",
    }


def test_a_disk_that_is_lost_as_well_fails(benches: Suite) -> None:
    options = ("--sandbox-option=fake.resume=wiped", "--sandbox-option=fake.pause_kinds=filesystem")
    text = clean(benches.run("benches", *PAUSE, *options), 1)
    assert "the file written before the pause" in text


def test_a_true_resume_passes(benches: Suite) -> None:
    text = clean(benches.run("benches", *PAUSE), 0)
    assert "resume{kind=memory}" in text
