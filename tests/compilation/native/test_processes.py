"""Workers and processes: the end of one, Ctrl-C, forks, and two processes at once."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

LONG = 300  # seconds in which each process ends, even where other work has nearly all of the processor
HEAD = """
import atexit, os, signal, sys, threading, time
from sabir.compilation.native import Control, _team, execute, host, team
from sabir.compilation.native._block import SLOTS
from support.plans import delaying, is_mixed, mixed, mixing

def run(team, rows=200):
    plan = mixing(rows)
    execute(team, plan.where[0], 0, rows, plan.where[1], Control(), lambda: None)
    return is_mixed(plan)

def begin_endless(team, control):
    plan = delaying(1_000_000)
    control = control or Control()
    return execute(team, plan.where[0], 0, len(plan.rows), plan.where[1], control, lambda: None)

def complete(team):
    while team._crew.block[SLOTS['present']] < team.threads - 1:
        assert run(team, 1)
    return team

with_three = complete(team(3, host()))
assert run(with_three)
"""


def start(body):
    paths = os.pathsep.join(p for p in sys.path if p)
    # Python warns of forks while threads run
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", HEAD + textwrap.dedent(body)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process):
    """What a process that ended well printed."""
    try:
        output, errors = process.communicate(timeout=LONG)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    return output.split()


ENDS = {
    "workers poll": "print('end')",
    "workers sleep": "time.sleep(0.05); print('end')",
    "a daemon thread runs a plan": """
        threading.Thread(target=begin_endless, args=(with_three, None), daemon=True).start()
        while with_three._crew.block[SLOTS['busy']] == 0: pass
        print('end')
        """,
    "workers were released": "with_three.release(); print('end')",
    "a run at exit": "atexit.register(lambda: print('end', run(with_three) and run(team(2, host()))))",
    "a run while the interpreter ends": """
        class Late:
            def __init__(self):
                self.teams, self.plans, self.controls = (with_three, team(4, host())), (mixing(20), mixing(20)), (Control(), Control())
                self.where, self.expected = [plan.where for plan in self.plans], mixed(20).tolist()
            def __del__(self):
                for team, plan, where, control in zip(self.teams, self.plans, self.where, self.controls):
                    row = 0
                    while row < 20:  # a run returns after each slice of time
                        row = team.run(where[0], row, 20, where[1], control)
                    right = plan.memory[0].tolist() == self.expected
                    os.write(1, b'end ' if right else b'wrong ')
        sys.modules['late'] = Late()
        del Late, with_three
        """,
}


@pytest.mark.parametrize("name", ENDS)
def test_workers_do_not_hold_up_the_end_of_a_process(name):
    assert ended(start(ENDS[name])) in (["end"], ["end", "True"], ["end", "end"])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_stops_a_run_and_the_team_stays_usable(threads):
    process = start(f"""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        some = complete(team({threads}, host()))
        try:
            threading.Timer(0.2, print, ('begun',), {{'flush': True}}).start()
            begin_endless(some, None)
        except KeyboardInterrupt:
            print('interrupted', run(some) and run(with_three))
        """)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert ended(process) == ["interrupted", "True"]


FORKS = """
def child(case, work):
    print(case, flush=True)
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        os._exit(0 if work() else 1)
    assert os.waitpid(pid, 0)[1] == 0, case

def nested():
    return run(with_three) and (child('nested', lambda: run(with_three)) or run(with_three))

def hold():
    with _team._lock:
        held.set()
        time.sleep(0.5)

new = team(2, host())
child('early', lambda: run(new))
child('later', lambda: run(with_three))
time.sleep(0.05)
child('asleep', lambda: run(with_three))

control = Control()
other = threading.Thread(target=begin_endless, args=(with_three, control))
other.start()
while with_three._crew.block[SLOTS['busy']] == 0: pass
child('busy', lambda: run(with_three))
control.cancel()
other.join()

plan = delaying(1_000_000)
row = with_three.run(plan.where[0], 0, len(plan.rows), plan.where[1], Control())
child('between', lambda: 0 < row < with_three.run(plan.where[0], row, len(plan.rows), plan.where[1], Control()))
child('child', nested)
child('released', lambda: with_three.release() or run(with_three))

held = threading.Event()
threading.Thread(target=hold).start()
held.wait()
child('locked', lambda: run(with_three) and run(team(4, host())))
print('parent', run(with_three))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_starts_workers_of_its_own():
    cases = ["early", "later", "asleep", "busy", "between", "child", "nested", "released", "locked"]
    assert ended(start(FORKS)) == [*cases, "parent", "True"]


def test_two_processes_at_once():
    processes = [start("print(all(run(with_three, 50) for _ in range(200)))") for _ in range(2)]
    assert [ended(process) for process in processes] == [["True"], ["True"]]
