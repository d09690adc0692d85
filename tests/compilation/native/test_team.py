"""Plans on teams of threads: rows in order, runs at once, runs that are cancelled, and the end of workers."""

import gc
import threading
import time

import numpy as np
import pytest

from sabir.compilation.native import Control, Team, _team, execute, host, team
from sabir.compilation.native._block import SLOTS
from sabir.compilation.native._driver import SHARES
from sabir.compilation.native._system import services
from support.plans import counting, delaying, is_mixed, mixing, owning

LONG = 300  # seconds in which each thread ends, even where other work has nearly all of the processor
# how threads wait, and how long a slice is: each alone makes its code run all the time
WAYS = {
    "usual": {},
    "turns": {"spin": 0, "patience": 1 << 60},
    "futex": {"spin": 0, "patience": 0},
    "naps": {"spin": 0, "patience": 0},
    "slices": {"slice": 0},
    "futex and slices": {"spin": 0, "patience": 0, "slice": 0},
}


def own_team(threads, way="usual"):
    """A team with a crew of its own, which waits in one way."""
    crew = _team._Crew(threads, host(), services(futex=way != "naps"))
    for name, number in WAYS[way].items():
        crew.block[SLOTS[name]] = number
    return Team(threads, crew)


def present(of):
    return int(of._crew.block[SLOTS["present"]])


def complete(of):
    """Let the team start its workers, and wait until they are all there."""
    plan = mixing(1)
    end = time.monotonic() + LONG
    while present(of) < of.threads - 1:
        finish(of, plan)
        assert time.monotonic() < end
    return of


def finish(of, plan, control=None):
    return execute(of, plan.where[0], 0, len(plan.rows), plan.where[1], control or Control(), lambda: None)


def workers():
    return {t for t in threading.enumerate() if t.name.startswith("sabir-")}


def wait_until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_each_row_reads_what_all_threads_wrote(threads, way):
    plan = mixing(400)
    with_threads = complete(own_team(threads, way))
    assert finish(with_threads, plan) == 400
    assert is_mixed(plan)


@pytest.mark.parametrize("way", ["usual", "futex", "slices"])
def test_every_thread_does_every_row_once(way):
    plan = counting(300)
    finish(complete(own_team(3, way)), plan)
    assert plan.memory[0].reshape(-1, 2).tolist() == [[3, 3]] * 300


@pytest.mark.parametrize("way", ["usual", "futex", "slices"])
@pytest.mark.parametrize("threads", [2, 3])
def test_every_share_of_a_fine_row_is_done_once(threads, way):
    plan = counting(300, fine=True)
    finish(complete(own_team(threads, way)), plan)
    shares = threads * SHARES
    assert plan.memory[0].reshape(-1, 2).tolist() == [[shares, shares]] * 300


@pytest.mark.parametrize("threads", [2, 3])
def test_a_thread_does_one_share_at_a_time(threads):
    """The scratch memory of its number is its own."""
    plan = owning(200, steps=2000)
    finish(complete(own_team(threads)), plan)
    now, wrong, did = plan.memory[0][:7], plan.memory[0][7], plan.memory[0][8:]
    assert not now.any()
    assert wrong == 0
    assert did.sum() == 200 * threads * SHARES
    assert not did[threads:].any()


@pytest.mark.parametrize("fine", [False, True])
def test_a_run_does_the_shares_of_workers_that_are_late(monkeypatch, fine):
    work, begin = _team._work, threading.Event()
    monkeypatch.setattr(_team, "_work", lambda *args: begin.wait() and work(*args))
    late, plan = own_team(3), counting(300, fine=fine)
    shares = 3 * SHARES if fine else 3
    try:
        assert finish(late, plan) == 300
        assert plan.memory[0].reshape(-1, 2).tolist() == [[shares, shares]] * 300
        assert present(late) == 0
    finally:
        begin.set()
    for _ in range(20):  # the workers come while runs go on
        plan = mixing(50)
        finish(late, plan)
        assert is_mixed(plan)
    wait_until(lambda: present(late) == 2)


def test_thousands_of_short_runs():
    with_two = complete(own_team(2))
    plan = counting(2)
    control = Control()
    for _ in range(5000):
        assert with_two.run(plan.where[0], 0, 2, plan.where[1], control) in {1, 2}
    assert plan.memory[0][0] == 10_000


def test_short_runs_after_rests_wake_sleepers():
    for way in ("usual", "futex", "naps"):
        with_three = complete(own_team(3, way))
        for rest in (0, 0.0001, 0.001, 0.005) * 5:
            plan = mixing(3)
            time.sleep(rest)
            finish(with_three, plan)
            assert is_mixed(plan)


def test_a_part_of_a_plan_leaves_the_other_rows_alone():
    plan = counting(9)
    with_two = complete(own_team(2))
    assert execute(with_two, plan.where[0], 3, 7, plan.where[1], Control(), lambda: None) == 7
    assert plan.memory[0][::2].tolist() == [0, 0, 0, 2, 2, 2, 2, 0, 0]
    for first, last in ((4, 4), (5, 2)):
        assert with_two.run(plan.where[0], first, last, plan.where[1], Control()) == first
    assert plan.memory[0][::2].tolist() == [0, 0, 0, 2, 2, 2, 2, 0, 0]


def test_a_slice_ends_between_rows_and_the_check_is_called():
    calls = []
    plan = counting(20)
    with_two = complete(own_team(2, "slices"))
    execute(
        with_two,
        plan.where[0],
        0,
        20,
        plan.where[1],
        Control(),
        lambda: calls.append(plan.memory[0][::2].sum()),
    )
    assert calls == [2 * row for row in range(1, 20)]


def test_a_long_plan_returns_in_slices():
    long = delaying(1_000_000)  # more than ten seconds
    for threads in (1, 2):
        row = complete(own_team(threads)).run(long.where[0], 0, len(long.rows), long.where[1], Control())
        assert 0 < row < len(long.rows)


def test_a_check_that_raises_leaves_the_team_usable():
    def fail():
        raise TimeoutError

    with_two = complete(own_team(2))
    long = delaying(1_000_000)
    with pytest.raises(TimeoutError):
        execute(with_two, long.where[0], 0, len(long.rows), long.where[1], Control(), fail)
    plan = counting(50)
    finish(with_two, plan)
    assert plan.memory[0].tolist() == [2] * 100


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_cancel_from_another_thread(threads):
    some = complete(own_team(threads))
    long = delaying(1_000_000)
    control = Control()
    timer = threading.Timer(0.05, control.cancel)
    timer.start()
    row = finish(some, long, control)
    timer.join()
    assert 0 < row < len(long.rows)
    assert control.cancelled
    assert some.run(long.where[0], row, len(long.rows), long.where[1], control) == row  # it stays cancelled
    plan = mixing(50)
    finish(some, plan)
    assert is_mixed(plan)


@pytest.mark.parametrize("way", ["usual", "futex", "naps"])
def test_all_threads_stop_after_the_same_row(way):
    with_three = complete(own_team(3, way))
    plan = counting(5000)
    for pause in np.linspace(0, 0.001, 20):
        plan.memory[0][:] = 0
        control = Control()
        timer = threading.Timer(pause, control.cancel)
        timer.start()
        row = finish(with_three, plan, control)
        timer.join()
        counts = plan.memory[0][::2]
        assert (counts[:row] == 3).all()
        assert not counts[row:].any()


def test_runs_of_several_threads_at_once():
    with_two = complete(own_team(2))
    failures = []

    def work():
        for rows in (1, 2, 5, 100) * 20:
            plan = mixing(rows)
            finish(with_two, plan)
            if not is_mixed(plan):
                failures.append(rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    assert not failures


def test_a_run_goes_alone_while_the_workers_are_busy():
    with_two = complete(own_team(2))
    control = Control()
    plan = counting(1)
    long = delaying(10, steps=100_000_000)  # each row takes longer than a run of the other plan
    other = threading.Thread(target=finish, args=(with_two, long, control))
    other.start()
    wait_until(lambda: with_two._crew.block[SLOTS["busy"]] == 1)
    finish(with_two, plan)
    control.cancel()
    other.join(LONG)
    assert not other.is_alive()
    assert plan.memory[0].tolist() == [1, 1]


def test_teams_of_one_size_share_their_workers():
    before = workers()
    first, second = team(7, host()), team(7, host())
    assert workers() <= before  # they start with the first run; those of an earlier test may end meanwhile
    complete(first)
    complete(second)
    assert len(workers() - before) == 6
    first.release()
    plan = mixing(20)
    finish(second, plan)
    assert is_mixed(plan)
    assert len(workers() - before) == 6
    second.release()
    wait_until(lambda: workers() <= before)


def test_workers_end_when_the_last_team_is_dropped():
    before = workers()
    dropped = complete(team(6, host()))
    block = _team.weakref.ref(dropped._crew.block)
    assert len(workers() - before) == 5
    del dropped
    gc.collect()
    wait_until(lambda: workers() <= before)
    wait_until(lambda: block() is None)


def test_a_released_team_runs_alone():
    with_two = complete(team(2, host()))
    with_two.release()
    with_two.release()
    plan = counting(5)
    finish(with_two, plan)
    assert plan.memory[0].tolist() == [1] * 10
    assert with_two.threads == 2


def test_a_run_goes_on_when_its_team_is_released():
    before = workers()
    with_five = complete(team(5, host()))
    long, control = delaying(1_000_000), Control()
    other = threading.Thread(target=finish, args=(with_five, long, control))
    other.start()
    wait_until(lambda: with_five._crew.block[SLOTS["busy"]] == 1)
    with_five.release()
    control.cancel()
    other.join(LONG)
    assert not other.is_alive()
    wait_until(lambda: workers() <= before)


def test_teams_that_come_and_go():
    before = workers()
    for turn in range(60):
        some = team(2 + turn % 3, host())
        plan = mixing(3)
        finish(some, plan)
        assert is_mixed(plan)
    del some
    wait_until(lambda: workers() <= before)


def test_a_system_that_has_no_more_threads(monkeypatch):
    begin = threading.Thread.start
    for allowed in (0, 1):
        left = [allowed]

        def start(thread, left=left):
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
            begin(thread)

        some = own_team(3)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            finish(some, mixing(1))
        wait_until(lambda some=some, allowed=allowed: present(some) == allowed)
        plan = counting(4)
        finish(some, plan)
        assert plan.memory[0].tolist() == [allowed + 1] * 8


def test_an_interrupt_while_workers_start(monkeypatch):
    begin = threading.Thread.start

    def start(thread):
        begin(thread)
        raise KeyboardInterrupt

    before = workers()
    some = own_team(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            finish(some, mixing(1))
    wait_until(lambda: workers() <= before)
    plan = counting(4)
    finish(complete(some), plan)
    assert plan.memory[0].tolist() == [3] * 8
