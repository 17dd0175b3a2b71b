"""Compiles the environment's modules, since nobody can write to it later.

The environment never changes, so the compiled files are used without a look at
their sources. The packages' own tests are left out, which nobody imports.
"""

import compileall
import py_compile
import re
import sys
import sysconfig

if __name__ == "__main__":
    compileall.compile_dir(
        sysconfig.get_path("purelib"),
        quiet=2,
        workers=0,
        rx=re.compile(r"/tests?/"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    sys.exit(0)  # files for other Pythons, such as templates, do not compile and do not matter
