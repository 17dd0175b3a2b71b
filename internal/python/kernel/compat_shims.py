

# ---------------------------------------------------------------------------------------------------------------------
# What code expects that was written for a desktop or for Jupyter (compat_shims.py, between error_hints.py and spawn.py in one file)

# Back ends of matplotlib that need a screen, by all their names.
INTERACTIVE = frozenset("""
    gtk gtk3 gtk4 gtk3agg gtk4agg gtk3cairo gtk4cairo ipympl macosx nbagg notebook osx qt qt4 qt5 qt6 qtagg qt4agg qt5agg qt6agg qtcairo qt5cairo tk tkagg tkcairo
    webagg widget wx wxagg wxcairo
""".split())
INLINE = "module://matplotlib_inline.backend_inline"


class Manners:
    """Has the usual ways of showing figures and progress work where there is neither a screen nor a browser's widget."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.said = False

    def inline(self, name):
        """The name of a back end that works here."""
        text = name.lower().rpartition("backend_")[2] if isinstance(name, str) else ""
        if text not in INTERACTIVE:
            return name
        if not self.said:
            self.said = True
            print("Interactive figures need a screen, and there is none here; figures are shown inline.", file=sys.stderr)
        return INLINE

    def adapt_matplotlib(self, matplotlib):
        use = matplotlib.use
        matplotlib.use = functools.wraps(use)(lambda backend, **kwargs: use(self.inline(backend), **kwargs))

    def adapt_pyplot(self, pyplot):
        switch = pyplot.switch_backend
        pyplot.switch_backend = functools.wraps(switch)(lambda newbackend: switch(self.inline(newbackend)))

    def adapt_inline(self, backend):
        """Has show() in a script leave its figures open, as it does for `python FILE` without a screen: code goes on to save them. It shows each once, until it is changed."""
        show = backend.show

        def shown(close=None, block=None):
            if self.kernel.request.get("mode") != "script":
                return show(close, block)
            from matplotlib._pylab_helpers import Gcf
            try:
                for manager in Gcf.get_all_fig_managers():
                    figure = manager.canvas.figure
                    if figure.stale or not hasattr(figure, "_cove_shown"):
                        backend.display(figure, metadata=backend._fetch_figure_metadata(figure))
                        figure.stale, figure._cove_shown = False, True
            finally:
                shown._to_draw = []
                if close:  # at the script's end
                    Gcf.destroy_all()

        backend.show = functools.wraps(show)(shown)

    def adapt_figure(self, module):
        """Has a figure remember the file of the workspace that it was saved as, until it is changed: clients that save figures need no second one."""
        save, draw, drawn = module.Figure.savefig, module.Figure.draw, set()  # the figures that are being drawn, which changes them, too

        def changed(callback, figure, stale):
            if stale and id(figure) not in drawn:
                figure._cove_saved = None
            if callback is not None:
                callback(figure, stale)

        def savefig(figure, fname, *args, **kwargs):
            result = save(figure, fname, *args, **kwargs)
            if isinstance(fname, (str, os.PathLike)) and os.path.isfile(fname):
                name = os.path.relpath(os.path.realpath(os.fsdecode(fname)), os.path.realpath(self.kernel.home))
                if not hasattr(figure, "_cove_saved"):
                    figure.stale_callback = functools.partial(changed, figure.stale_callback)
                figure._cove_saved = None if name.startswith(os.pardir) else name
            return result

        def drawing(figure, *args, **kwargs):
            drawn.add(id(figure))
            try:
                return draw(figure, *args, **kwargs)
            finally:
                drawn.discard(id(figure))

        module.Figure.savefig, module.Figure.draw = functools.wraps(save)(savefig), functools.wraps(draw)(drawing)

    @staticmethod
    def adapt_bokeh(_):
        """Has show() display a page, where Bokeh would open one in a browser, or where a notebook has to have loaded its scripts; with output_file() the file is what is shown."""
        from bokeh.io import notebook, showing
        show = showing._show_with_state

        def page(plot, state, handle):
            if handle:
                return notebook.show_doc(plot, state, handle)
            if state.file:
                return None
            from bokeh.embed import file_html
            from bokeh.io import curdoc
            from bokeh.resources import INLINE
            from IPython.display import HTML, display

            title = getattr(getattr(plot, "title", None), "text", None)
            display(HTML(file_html(plot, INLINE, title if isinstance(title, str) and title else "Bokeh plot", theme=curdoc().theme, _always_new=True)))  # it may be a part of another one later

        def shown(plot, state, *args, **kwargs):
            if not state.file and not state.notebook:
                state.output_notebook()
            return show(plot, state, *args, **kwargs)

        notebook.install_notebook_hook("jupyter", lambda *args, **kwargs: None, page, notebook.show_app, overwrite=True)
        showing._show_with_state = functools.wraps(show)(shown)

    @staticmethod
    def adapt_pyecharts(module):
        """Has render_notebook() make a whole page, and not a part for a notebook with RequireJS; code may say otherwise."""
        module.CurrentConfig.NOTEBOOK_TYPE = module.NotebookType.NTERACT

    def adapt_tqdm(self, module):
        """Has bars for notebooks be those for terminals, where the client shows no widgets."""
        if self.kernel.widgets.wanted() and getattr(module, "IProgress", None) is not None:
            return
        from tqdm.std import tqdm, trange
        module.tqdm = module.tqdm_notebook = tqdm
        module.trange = module.tnrange = trange

    @staticmethod
    def adapt_line_profiler(module):
        """Has %lprun find the sources of cells."""
        generated = module.is_generated_code
        module.is_generated_code = lambda filename: filename.startswith("<cell ") or generated(filename)


def load_ipython_extension(shell):
    """Loads %store, with its values where a later kernel of the session finds them."""
    from IPython.extensions import storemagic
    from IPython.external.pickleshare import PickleShareDB
    shell.db = PickleShareDB(os.path.join(os.environ.get("HOME") or "/", ".ipython", "db"))
    storemagic.load_ipython_extension(shell)
