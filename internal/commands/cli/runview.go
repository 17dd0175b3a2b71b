package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
)

// runView shows one execution the way python would show it.
type runView struct {
	p           *Program
	out         *outFolder
	json, quiet bool
	plotly      func() string
	live        *terminal.Live
	images      terminal.Protocol
	what        string         // what is awaited while code runs; "": running
	cell        *notebook.Cell // receives the events, too; may be nil
	pace        pace
	pip         *pipOutput // of the code that runs

	files  []kernel.File
	last   kernel.Error
	done   kernel.Done
	ended  bool
	broken bool  // standard output is closed, or
	failed error // cannot be written
	told   told
	large  announcement
	column bool // the code's output ended within a line
	whole  bool // tracebacks are shown with all frames: of a program, as python prints them, and for %tb
}

func (v *runView) execute(i *interruption, s runner, req kernel.Request) error {
	ctx, stop := context.WithCancel(i.soft)
	defer stop()
	defer v.live.Over()
	v.whole = req.Mode == kernel.Script || strings.HasPrefix(strings.TrimSpace(req.Code), "%tb")
	if !v.json {
		req.Columns = columns(v.p.Out)
	}
	if ask := req.Input; ask != nil {
		req.Input = func(prompt string, password bool) (string, error) {
			defer v.live.Hold()()
			return ask(prompt, password)
		}
	}
	v.pip = pipOutputOf(req.Code)
	v.await()
	if _, remote := s.(*remoteRun); remote {
		v.live.Await(lang.Text("waiting for the server"))
	} else {
		code, over := i.watchCode(v.p.Err)
		defer over()
		code.begins()
	}
	for e, err := range s.Execute(ctx, req) {
		if err != nil {
			return err
		}
		if _, progress := e.(kernel.Install); !progress {
			v.await()
		}
		if err := v.event(e); err != nil {
			v.unread(err)
			stop() // nobody reads any more; but what was made until now is saved
		}
	}
	if err := v.streamRests(); err != nil {
		v.unread(err)
	}
	if hint := encodingHint(ctx, s, v.last); hint != "" && !v.json && !v.broken {
		fmt.Fprint(v.p.Err, hintLine(kernel.Error{Hint: hint}))
	}
	return nil
}

// await says that the code runs, unless another program may be writing what the code says to the same terminal, as in `cove run x.py | less`.
func (v *runView) await() {
	if _, tty := terminal.Descriptor(v.p.Out); tty || !isPipe(v.p.Out) {
		v.live.Await(lang.Text(cmp.Or(v.what, "running")))
	}
}

// isPipe says whether what is written to w goes to another program.
func isPipe(w io.Writer) bool {
	f := terminal.OpenFile(w)
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// unread notes why nothing more is shown.
func (v *runView) unread(err error) {
	v.broken = true
	if !errors.Is(err, syscall.EPIPE) {
		v.failed = fmt.Errorf("write the output: %w", err)
	}
}

func (v *runView) event(e kernel.Event) error {
	if v.cell != nil {
		v.cell.Add(e)
	}
	switch e := e.(type) {
	case kernel.File:
		v.files = append(v.files, e)
	case kernel.Error:
		v.last = e
	case kernel.Done:
		v.done, v.ended = e, true
		return nil // written last, after what was saved
	}
	if v.broken {
		return nil
	}
	if v.json && v.pace.passes(e) {
		if err := (lines{v.p.Out}).event(e); err != nil {
			return err
		}
	}
	return v.show(e)
}

func (v *runView) show(e kernel.Event) error {
	if e, ok := e.(kernel.Install); ok {
		v.pip.recordInstall(e)
		v.install(e)
		return nil
	}
	if said, ok := e.(kernel.Stream); ok {
		return v.stream(said.Name, v.pip.shown(said.Name, said.Data))
	}
	err := v.streamRests()
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case kernel.Rollback:
		if !v.json {
			_, err = fmt.Fprintln(v.p.Err, "cove: "+lang.Text(e.String()))
		}
	case kernel.Display:
		return v.bundle(shown{e.Data, e.Metadata, e.ID, e.Update})
	case kernel.Result:
		return v.bundle(shown{data: e.Data, metadata: e.Metadata})
	case kernel.Error:
		if !v.json {
			if _, tty := terminal.Descriptor(v.p.Err); tty && !v.whole && len(e.Traceback) > 0 {
				e.Traceback = []string{loop.ReduceTraceback(e.Traceback)} // %tb shows all of it
			}
			err = writeTraceback(v.p.Err, withLocalHint(e)) // not for programs that read JSON, nor into notebooks: it is about this machine
		}
	}
	return err
}

// stream shows what the code wrote.
func (v *runView) stream(name string, data []byte) error {
	if v.json || len(data) == 0 {
		return nil
	}
	v.column = !bytes.HasSuffix(data, []byte("\n"))
	to := v.p.Out
	if name == "stderr" {
		to = v.p.Err
	}
	_, err := to.Write(data)
	return err
}

// streamRests shows what was held back of the streams, before something else is shown.
func (v *runView) streamRests() error {
	if v.broken {
		return nil
	}
	return errors.Join(v.stream("stdout", v.pip.takeHeld("stdout")), v.stream("stderr", v.pip.takeHeld("stderr")))
}

// install tells of packages on standard error, where they are told apart from what the code says.
func (v *runView) install(e kernel.Install) {
	if v.json {
		return
	}
	if line := v.large.announce(e.Progress); line != "" && !v.quiet {
		v.endLine()
		fmt.Fprintln(v.p.Err, line)
	}
	if e.Progress != nil {
		if !v.quiet && !v.column {
			v.live.Progress(lang.Text(progressText(*e.Progress)))
		}
		return
	}
	v.live.Over()
	v.await()
	t := taleOf(e)
	v.endLine()
	if t.installed != "" && !v.quiet {
		fmt.Fprintln(v.p.Err, lang.Text(t.installed))
	}
	if !v.quiet {
		for _, note := range t.notes {
			fmt.Fprintln(v.p.Err, "cove: "+lang.Text(note))
		}
	}
	for _, trouble := range v.told.news(t.troubles) {
		fmt.Fprintln(v.p.Err, "cove: "+lang.Text(trouble))
	}
}

// endLine ends the line of the code's output on a terminal, before something else is written.
func (v *runView) endLine() {
	if v.column && v.live != nil {
		fmt.Fprintln(v.p.Err)
		v.column = false
	}
}

func writeTraceback(w io.Writer, e kernel.Error) error {
	for _, line := range e.Traceback {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(e.Traceback) == 0 {
		if _, err := fmt.Fprintf(w, "%s: %s\n", e.Name, e.Value); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, hintLine(e))
	return err
}

// hintLine is the line below a traceback that helps to mend the error, or "".
func hintLine(e kernel.Error) string {
	if e.Hint == "" {
		return ""
	}
	return lang.Sprintf("Hint: %s\n", lang.Text(e.Hint))
}

func (v *runView) bundle(d shown) error {
	s, ok := v.out.figure(d, v.plotly)
	text := markdownText(d.data)
	if picture := drawing(v.p.Out, v.images, d); picture != "" && !v.json {
		if _, err := io.WriteString(v.p.Out, picture); err != nil {
			return err
		}
	}
	switch {
	case v.json && ok && s.Path != "":
		return lines{v.p.Out}.saved(s)
	case v.json:
		return nil
	case text != "" && v.p.lays(v.p.Out):
		var e escapes
		text = strings.Join(terminal.Markdown(stripColours(e.clean([]byte(text))), v.p.markdown(v.p.Out)), "\n")
	case text == "" && ok:
		return nil
	case text == "":
		text = display.Text(d.data)
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(v.p.Out, text)
	return err
}

// finish saves the files, says what happened and returns the exit code.
func (v *runView) finish(i *interruption, s fetcher) (int, error) {
	if !v.ended {
		return 0, problem.New(problem.NoOutcome, "the execution ended without an outcome")
	}
	figures := len(v.out.saved)
	if v.done.Lost != kernel.LostSession {
		v.out.files(i.hard, s, v.files)
	}
	v.out.release()
	if v.json && !v.broken {
		for _, s := range v.out.saved[figures:] {
			if err := (lines{v.p.Out}).saved(s); err != nil {
				return 0, err
			}
		}
		if err := (lines{v.p.Out}).event(v.done); err != nil {
			return 0, err
		}
	}
	if v.json {
		v.out.saved = nil // said already
	}
	if !v.quiet {
		v.out.list(v.p.Err)
		if v.done.Dropped > 0 {
			notef(v.p.Err, "%s of output were left out; --max-output allows more", humanSize(v.done.Dropped))
		}
	}
	v.explain()
	code, lost := v.exitCode(i), v.out.failure()
	switch {
	case code != 0 && (v.done.Outcome != kernel.OutcomeInterrupted || i.exitCode() != 0): // the code's own, or a signal's
		lost = errors.Join(v.failed, lost)
	case v.failed != nil:
		return 0, errors.Join(v.failed, lost)
	case v.broken:
		code = exitBrokenPipe
	case code == 0:
		return 0, lost
	}
	v.p.alsoFailed(lost, v.json && !v.broken)
	return code, nil
}

// alsoFailed tells of a failure where the exit code says something else.
func (p *Program) alsoFailed(err error, json bool) {
	if err == nil {
		return
	}
	p.report(err)
	if json {
		_ = lines{p.Out}.failure(err)
	}
}

// explain says how the code ended when Python itself did not.
func (v *runView) explain() {
	if v.done.Outcome == kernel.OutcomeInterrupted || v.broken || v.exited() {
		return
	}
	if v.done.Outcome != kernel.OutcomeOK && v.done.Message != "" {
		fmt.Fprintln(v.p.Err, "cove: "+lang.Text(oneLine(v.done.Message)))
	}
	switch v.done.Outcome {
	case kernel.OutcomeMemory:
		fmt.Fprintln(v.p.Err, "  "+lang.Text("--memory allows more"))
	case kernel.OutcomeTimeout:
		fmt.Fprintln(v.p.Err, "  "+lang.Text("--timeout allows more"))
	}
	if v.done.Outcome == kernel.OutcomeRestart {
		fmt.Fprintln(v.p.Err, "  "+lang.Text("to go on, add --restart: variables and imports are lost then, files are kept"))
	}
}

// exited says that the code left the interpreter on its own, with os._exit: what python would say nothing about.
func (v *runView) exited() bool { return v.done.Outcome == kernel.OutcomeDied && v.done.Signal == "" }

func (v *runView) exitCode(i *interruption) int {
	switch v.done.Outcome {
	case kernel.OutcomeOK:
		return v.done.ExitCode & 0xff
	case kernel.OutcomeError:
		if v.last.Name == "MemoryError" {
			return exitMemory
		}
		if code := v.done.ExitCode & 0xff; code != 0 || v.last.Name == "" {
			return code
		}
		return exitUncaught
	case kernel.OutcomeTimeout:
		return exitTimeout
	case kernel.OutcomeInterrupted:
		return cmp.Or(i.exitCode(), exitInterrupted)
	case kernel.OutcomeMemory:
		return exitMemory
	case kernel.OutcomeDied:
		if n := signalNumber(v.done.Signal); n != 0 {
			return 128 + n
		}
		return v.done.ExitCode & 0xff
	default:
		return exitFailure
	}
}
