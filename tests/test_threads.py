"""Fits in ten threads at once give the bits of fits one after the other, and leave BLAS as they found it."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier, Event, Lock, current_thread, get_ident
from time import sleep

import numpy as np
import pytest

from mercer import LSSVC, LSSVR, SVC, SVR, CrammerSingerSVC, Gaussian, OutputCode, TunedSVC, threads

AT_ONCE = 10
random = np.random.default_rng(0)
X = random.normal(size=(240, 4))
TARGET = np.sin(X[:, 0]) + 0.2 * random.normal(size=240)
SIGNS = np.where(TARGET > 0, 1, -1)
CLASSES = np.digitize(TARGET, [-0.4, 0.4])

MACHINES = {
    "SVC": (lambda: SVC(probability=True), SIGNS),
    "SVC of pairs": (lambda: SVC(C=10.0), CLASSES),
    "SVC of columns": (lambda: OutputCode(SVC(C=3.0), random_state=0), CLASSES),
    "CrammerSingerSVC": (lambda: CrammerSingerSVC(), CLASSES),
    "LSSVC": (lambda: LSSVC(C="loo", kernel=Gaussian(sigma="loo")), CLASSES),
    "LSSVR": (lambda: LSSVR(C="loo"), TARGET),
    "SVR": (lambda: SVR(C=5.0), TARGET),
    "TunedSVC": (lambda: TunedSVC(n_C=3, n_sigma=2, folds=3), CLASSES),
}


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Two threads of BLAS, whatever the environment says, and two again after the test."""
    with ExitStack() as stack:
        for library in threads._blas_libraries():
            stack.callback(library.set_num_threads, library.get_num_threads())
            library.set_num_threads(2)
            if library.get_num_threads() == 2:  # other tests may have loaded one that is built for one thread
                ABLE.add(library.filepath)
        assert ABLE
        yield
        assert blas_threads() == {2}


ABLE = set()


def blas_threads():
    return {library.get_num_threads() for library in threads._blas_libraries() if library.filepath in ABLE}


def answer(machine, X):
    values = machine.predict(X) if not hasattr(machine, "decision_function") else machine.decision_function(X)
    return np.asarray(values)


def at_once(fits):
    """The answers of functions that are called in threads of their own, all let go at the same time."""
    together = Barrier(len(fits))

    def call(fit):
        together.wait(timeout=60)
        return fit()

    with ThreadPoolExecutor(len(fits)) as pool:
        return list(pool.map(call, fits))


@pytest.mark.parametrize("name", MACHINES)
def test_fits_in_ten_threads_give_the_bits_of_serial_fits(name):
    make, y = MACHINES[name]
    # Ten different problems, so that one that reads another's numbers is noticed.
    parts = [np.sort(np.random.default_rng(seed).choice(240, 200, replace=False)) for seed in range(AT_ONCE)]
    fits = [lambda part=part: answer(make().fit(X[part], y[part]), X) for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        serial = [fit() for fit in fits]
        parallel = at_once(fits)
    for alone, beside in zip(serial, parallel):
        np.testing.assert_array_equal(alone, beside)


LARGE = random.normal(size=(700, 4))
SIDES = np.where(np.sin(LARGE[:, 0]) + 0.2 * random.normal(size=700) > 0, 1, -1)
# Machines that ask for one thread of BLAS beside machines that take all there are, on matrices whose factors differ in
# their last digits from one number of threads to the other.
DIRECT = {
    "cholesky": {"solver": "cholesky"},
    "spectral": {"solver": "spectral"},
    "path": {"C": "loo"},
}


@pytest.mark.parametrize("beyond", [False, True], ids=["few points", "one job"])
@pytest.mark.parametrize("name", DIRECT)
def test_machines_of_several_kinds_at_once_leave_each_other_the_bits(monkeypatch, name, beyond):
    if beyond:  # what is done where there are many points, on few
        monkeypatch.setattr(threads, "ONE_THREAD", 10)
    n_jobs = 1 if beyond else None

    def least_squares():
        return answer(LSSVC(n_jobs=n_jobs, **DIRECT[name]).fit(LARGE, SIDES), LARGE)

    def support_vectors():
        return answer(SVC(C=10.0, n_jobs=n_jobs).fit(LARGE, SIDES), LARGE)

    alone = least_squares(), support_vectors()
    for number, beside in enumerate(at_once([least_squares, support_vectors] * 4)):
        np.testing.assert_array_equal(alone[number % 2], beside)


def test_blas_is_given_back_its_threads_by_the_last_who_leaves():
    entered, left = Event(), Event()

    def first():
        with threads.one_blas_thread(), threads.one_blas_thread():
            entered.set()
            assert left.wait(timeout=60)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first)
        assert entered.wait(timeout=60)
        with threads.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}  # the other thread is still inside
        left.set()
        running.result()
    assert blas_threads() == {2}


def test_many_who_enter_and_leave_at_once_leave_blas_as_it_was():
    def often():
        for _ in range(200):
            with threads.one_blas_thread():
                assert blas_threads() == {1}

    at_once([often] * AT_ONCE)
    assert blas_threads() == {2}


def test_large_work_keeps_the_threads_of_blas_unless_one_job_was_asked_for():
    with threads.limit(2), threads.blas_threads(threads.ONE_THREAD + 1):
        assert blas_threads() == {2}
    with threads.limit(1), threads.blas_threads(threads.ONE_THREAD + 1):
        assert blas_threads() == {1}
    with threads.limit(2), threads.blas_threads(threads.ONE_THREAD):
        assert blas_threads() == {1}


def test_an_executor_takes_the_place_of_the_threads():
    with ThreadPoolExecutor(2, thread_name_prefix="elsewhere") as executor:
        names = threads.run(lambda _: current_thread().name, [(i,) for i in range(4)], executor=executor)
    assert all(name.startswith("elsewhere") for name in names)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_up_to_the_one_that_ends_the_work_are_kept(workers):
    with threads.limit(workers):
        found = threads.run(lambda i: i, [(i,) for i in range(10)], go_on=lambda i: i < 3)
    assert found == [0, 1, 2, 3]


def test_one_task_at_a_time_runs_in_the_thread_that_asks():
    """More at a time would not fit in memory."""
    tasks = [(number,) for number in range(6)]
    with threads.limit(2):
        assert threads.run(lambda _: get_ident(), tasks, most=1) == [get_ident()] * 6
        assert get_ident() not in threads.run(lambda _: get_ident(), tasks, most=2)


def busy_threads(work, total, most=None):
    """What tasks of this work are told of threads, their answers, and the most threads that they had together."""
    lock, busy, highest, told = Lock(), [0], [0], [0] * len(work)

    def task(number):
        share = told[number] = threads.count()
        with lock:
            busy[0] += share
            highest[0] = max(highest[0], busy[0])
        sleep(0.005)
        own = threads.run(lambda part: part * number, [(part,) for part in range(3)])
        with lock:
            busy[0] -= share
        return own

    with threads.limit(total):
        answers = threads.run_by_work(task, [(number,) for number in range(len(work))], work, most)
    return told, answers, highest[0]


@pytest.mark.parametrize("total", [1, 2, 5, 16])
@pytest.mark.parametrize("work", [[1.0] * 7, [100.0, 1.0, 1.0, 1.0], [1.0, 3.0, 2.0, 10.0, 0.1], [5.0], []])
def test_threads_are_shared_out_by_work_and_answers_keep_their_order(work, total):
    told, answers, highest = busy_threads(work, total)
    assert answers == [[0, number, 2 * number] for number in range(len(work))]
    assert highest <= total
    if len(work) > 1:
        shares = np.array(work) / sum(work) * total
        assert (np.abs(np.array(told) - np.clip(shares, 1, total)) <= 0.5).all()


def test_no_more_tasks_run_at_a_time_than_fit_in_memory():
    lock, running, highest = Lock(), [0], [0]

    def task():
        with lock:
            running[0] += 1
            highest[0] = max(highest[0], running[0])
        sleep(0.01)
        with lock:
            running[0] -= 1

    with threads.limit(8):
        threads.run_by_work(task, [()] * 9, [20.0] + [1.0] * 8, 2)
    assert highest[0] == 2


def test_an_error_in_a_task_reaches_the_caller_and_later_calls_run():
    def task(number):
        if number == 1:
            raise ValueError("wrong")
        return number

    with threads.limit(4):
        with pytest.raises(ValueError, match="wrong"):
            threads.run_by_work(task, [(0,), (1,), (2,)], [9.0, 1.0, 1.0])
        assert threads.run_by_work(task, [(0,), (2,)], [9.0, 1.0]) == [0, 2]


def test_one_large_pair_among_small_ones_has_several_threads_and_the_same_optimum():
    sizes = {0: 1800, 1: 1700, 2: 60, 3: 60}
    labels = np.repeat(list(sizes), list(sizes.values()))
    points = random.normal(size=(len(labels), 3)) + 0.7 * labels[:, None]
    found = []
    for most in (1, 4, 4):
        machine = SVC(C=10.0, solver="decomposition", memory="24 MiB", n_jobs=most).fit(points, labels)
        found.append((machine.dual_objective_, machine.objective_))
        coefficients = machine.dual_coef_
    (low, high), (other_low, other_high), again = found
    assert other_low <= high
    assert low <= other_high
    assert again == (other_low, other_high)
    repeated = SVC(C=10.0, solver="decomposition", memory="24 MiB", n_jobs=4).fit(points, labels)
    np.testing.assert_array_equal(repeated.dual_coef_, coefficients)
