"""Compiles the environment's modules, since nobody can write to it later.

The environment never changes, so the compiled files are used without a look at
their sources. The packages' own tests are left out, which nobody imports.
"""

import compileall
import ctypes
import os
import py_compile
import re
import signal
import sys
import sysconfig

SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2)
build = os.getpid()


def end_with_the_build():
    """Ends a worker when the build is killed, which would otherwise leave it asleep with the lock on the environments."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != build:
        os._exit(1)  # it was killed before the signal was set


if __name__ == "__main__":
    os.register_at_fork(after_in_child=end_with_the_build)
    compileall.compile_dir(
        sysconfig.get_path("purelib"),
        quiet=2,
        workers=0,
        rx=re.compile(r"/tests?/"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    sys.exit(0)  # files for other Pythons, such as templates, do not compile and do not matter
