

def _close_behind_show():
    """Closes the figures that plt.show() has shown, as Daytona does: the next code of a program begins new ones."""
    import functools
    import importlib.util
    import sys

    def closing(pyplot):
        show = pyplot.show

        @functools.wraps(show)
        def shown(*args, **named):
            try:
                return show(*args, **named)
            finally:
                pyplot.close("all")

        pyplot.show = shown

    class Late:
        """Has Pyplot changed when the code imports it."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "matplotlib.pyplot":
                return None
            sys.meta_path.remove(Late)
            spec = importlib.util.find_spec(name)
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                closing(module)

            spec.loader.exec_module = exec_module
            return spec

    if "matplotlib.pyplot" in sys.modules:
        closing(sys.modules["matplotlib.pyplot"])
    else:
        sys.meta_path.insert(0, Late)


_close_behind_show()
