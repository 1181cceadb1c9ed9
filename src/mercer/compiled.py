"""The one place that says how mercer's loops are compiled.

All loops are serial and release the interpreter lock; `mercer.threads` runs them side by side.  Numba's own thread
pool is not used because it may not be entered from two Python threads at once.

Machine code is kept on disk, that of each signature in a file of its own (`KeptCode`).  Where the package lies in a
folder that cannot be written, Numba falls back to the user's cache folder; where that cannot be written either, the
code goes to a private temporary folder and lasts as long as the process.  A disk that is full when the code is to be
kept is a warning, not the end of the call.
"""

import atexit
import hashlib
import os
import pickle
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config, environment, types
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic

from mercer.errors import NotSaved

F = TypeVar("F", bound=Callable[..., Any])

PROBE = 1 << 16  # bytes that a folder must take; a full disk often still takes an empty file

# Reordering sums is allowed (it makes reductions vectorise); NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp", "afn"}


def _can_write(folder: Path) -> bool:
    """Whether files can be made in `folder`, or in its nearest parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(bytes(PROBE))
            stream.flush()
    except OSError:
        return False
    return True


def _provide_cache_folder() -> None:
    """Point Numba to a temporary cache when neither the package nor the user's folder can be written."""
    here = Path(__file__).resolve().parent
    if config.CACHE_DIR or _can_write(here / "__pycache__"):
        return
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if _can_write(Path(user) / "numba"):
        return
    folder = tempfile.mkdtemp(prefix="mercer-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    config.CACHE_DIR = folder


_provide_cache_folder()


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """What a function compiled before knows of its module: nothing where that was not loaded.

    Compiled loops ask for none of it.  Numba would load the module of every function of its own that a loop calls, and
    with `numpy.empty` all that it knows of arrays, strings and random numbers.
    """
    found = environment.lookup_environment(name)
    if found is None:
        found = environment.Environment(getattr(sys.modules.get(module), "__dict__", {}))
        found.consts[:] = constants
        found.env_name = name
        environment.Environment._memo[name] = found
    return found


class KeptCode:
    """Machine code of one function on disk: a file for the types of its arguments and the processor it is made for.

    Numba counts these files, and keeps the counts in an index beside them.  Processes that compile at the same time
    may give the same number to code for other types, and run each other's; code of a source that has changed stands
    behind a new index until it is overwritten.  Here the name of a file follows from what it is for, and the file says
    whose code it holds.
    """

    def __init__(self, folder: str, name: str, source: Any) -> None:
        self.folder, self.name, self.source = Path(folder), name, (numba.__version__, source)

    def _path(self, key: Any) -> Path:
        signature, machine, _ = key
        digest = hashlib.sha256(f"{signature} {machine}".encode()).hexdigest()
        return self.folder / f"{self.name}.{digest[:16]}.nbc"

    def load(self, key: Any) -> Any:
        """What was saved for this key, None where nothing was, or for another source, code or release of Numba."""
        try:
            with self._path(key).open("rb") as stream:
                if pickle.load(stream) != self.source:
                    return None
                owner, data = pickle.load(stream)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return data if owner == key else None

    def save(self, key: Any, data: Any) -> None:
        """Write the file whole, or not at all."""
        path = self._path(key)
        content = pickle.dumps(self.source) + dumps((key, data))
        fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            fresh.write_bytes(content)
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def flush(self) -> None:
        """Forget what is kept, which compiling anew overwrites."""
        for path in self.folder.glob(f"{self.name}.*.nbc"):
            path.unlink(missing_ok=True)


def _kept_where_possible(dispatcher: Any) -> Any:
    """The same compiled function; where its machine code cannot be kept on disk it is compiled in every process."""
    store = dispatcher._cache
    store._cache_file = KeptCode(store.cache_path, store._impl.filename_base, store._impl.locator.get_source_stamp())
    save = store.save_overload

    def attempt(signature: Any, compiled: Any) -> None:
        try:
            save(signature, compiled)
        except OSError as error:
            store.disable()
            warnings.warn(
                f"{store.cache_path}: compiled code cannot be kept there ({error.strerror or error}), so that every "
                "process compiles again; make room, or name another folder in NUMBA_CACHE_DIR",
                NotSaved,
                stacklevel=2,
            )

    def load(signature: Any, context: Any) -> Any:
        # Code kept before needs Numba's runtime, but not all that Numba knows of compiling, which takes longer to load
        # than a small fit takes.
        rtsys.initialize(context)
        rebuild, environment._rebuild_env = environment._rebuild_env, _environment
        try:
            with store._guard_against_spurious_io_errors():
                return store._load_overload(signature, context)
        finally:
            environment._rebuild_env = rebuild

    store.save_overload, store.load_overload = attempt, load
    return dispatcher


def _form_for_loops(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The compiled function in the form that other loops call, which compiles faster.

    The form that Python calls carries wrappers that take its arguments from Python's objects, and is kept on disk; this
    one is linked into the code of its caller and needs neither.
    """
    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)


def _compiled(function: F, **flags: Any) -> F:
    """Compile a function, serial and without the interpreter's lock, in one form for Python and one for other loops."""
    options = {"nogil": True, "error_model": "numpy"} | flags
    dispatcher = _kept_where_possible(numba.njit(cache=True, **options)(function))
    inner = cache(partial(_form_for_loops, function, options))
    dispatcher.get_call_template = lambda positional, named: inner().get_call_template(positional, named)
    dispatcher.get_overload = lambda signature: inner().get_overload(signature)
    return cast(F, dispatcher)


def loop(function: F) -> F:
    """Compile a numeric loop; sums may be reordered."""
    return _compiled(function, fastmath=FAST)


def exact_loop(function: F) -> F:
    """Compile a numeric loop whose floating-point operations keep their written order."""
    return _compiled(function)


def _extremum(comparison: str) -> Any:
    """The lesser or greater of two finite floats, marked so that a search over an array runs in vector registers.

    Python's own min and max must honour NaN, which keeps the compiler from reordering the comparisons.
    """
    flags = ("nnan", "ninf", "nsz", "reassoc", "contract")

    @intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
    def choose(typingctx: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, y = arguments
            return builder.select(builder.fcmp_ordered(comparison, x, y, flags=flags), x, y, flags=flags)

        return a(a, a), code

    return choose


lesser = _extremum("<")
greater = _extremum(">")


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def borrowed(typingctx: Any, array: Any) -> Any:
    """The same array for a loop that does not keep it: its owner keeps it alive, a loop's own until it is `given_back`.

    Every slice of an array that is owned is counted, and given back, by an instruction that locks a line of the cache;
    where several threads slice the same array they wait for each other, and in steps on a few hundred points a third
    of the time went there.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), code


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def given_back(typingctx: Any, array: Any) -> Any:
    """The end of a loan: an array that a loop made itself lives at least until here."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_dummy_value()

    return types.void(array), code


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def rounded(typingctx: Any, value: Any) -> Any:
    """The value as it is rounded here: no sum or product around it is put in another order.

    The permission to reorder sums is that of the outermost loop and of all that is compiled into it.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        fence = builder.module.declare_intrinsic("llvm.arithmetic.fence", [kind])
        return builder.call(fence, arguments)

    return value(value), code
