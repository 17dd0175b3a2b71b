package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cove/internal/core/lang"
	"cove/internal/llm/loop"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
)

// toolAsker asks the user about calls of tools, one after another.
type toolAsker struct {
	err     io.Writer
	before  []string                // those of which a server is told that they do
	allowed []string                // names and patterns of tools that need no word
	hold    func() (release func()) // keeps others from drawing on the terminal meanwhile; nil: nobody does
	open    func() (io.ReadWriteCloser, error)

	mu sync.Mutex
}

// about returns the user's word about a call. Without a terminal there is nobody to ask, and the call is not made.
func (a *toolAsker) about(ctx context.Context, name, arguments string) tool.Word {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.ContainsFunc(a.allowed, func(pattern string) bool { return tool.Matches(pattern, name) }) {
		return tool.Word{Run: true}
	}
	if len(arguments) > tool.MostAsked { // what is not read whole is not agreed to
		return tool.Word{Note: "its arguments are too long to be shown"}
	}
	terminal, err := a.terminal()
	if err != nil {
		notef(a.err, "the code wanted to call %s, which you want to be asked about, and there is no terminal\n  allow it with --allow-tools %s", oneLine(name), oneLine(name))
		return tool.Word{Note: "nobody could be asked: there is no terminal"}
	}
	defer func() { _ = terminal.Close() }()
	if a.hold != nil {
		defer a.hold()()
	}
	defer context.AfterFunc(ctx, func() { _ = terminal.Close() })()
	forgetTyped(terminal)
	lang.Fprintf(terminal, "The code wants to call %s with\n  %s\n", oneLine(name), oneLine(arguments))
	lines := bufio.NewReader(terminal)
	for {
		lang.Fprintf(terminal, "Call it? [y]es, [n]o, [a]lways: ")
		line, err := lines.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return tool.Word{Run: true}
		case "a", "always":
			a.allowed = append(a.allowed, name)
			return tool.Word{Run: true}
		case "n", "no":
			return tool.Word{}
		}
		if err != nil {
			return tool.Word{}
		}
	}
}

// callAsker asks the user about the calls of tools that the events of a turn tell of.
type callAsker struct {
	*toolAsker
	approve   func(ctx context.Context, execution string, number int, w tool.Word) error
	execution string // that runs
}

// hear asks about a call beside what goes on, and hands the answer over.
func (c *callAsker) hear(ctx context.Context, e loop.Event) {
	switch e := e.(type) {
	case loop.Start:
		c.execution = e.Execution
	case loop.Output:
		if call, ok := e.Event.(kernel.CallAsks); ok {
			go c.ask(ctx, c.execution, call)
		}
	}
}

func (c *callAsker) ask(ctx context.Context, execution string, call kernel.CallAsks) {
	err := c.approve(ctx, execution, call.Number, c.about(ctx, call.Name, call.Arguments))
	if err != nil && ctx.Err() == nil {
		notef(c.err, "the call of %s was not decided: %s", oneLine(call.Name), oneLine(spoken(err)))
	}
}

// forgetTyped drops what was typed before a question was there to be answered.
func forgetTyped(terminal any) {
	f, ok := terminal.(*os.File)
	if !ok {
		return
	}
	if c, err := f.SyscallConn(); err == nil { // not Fd, after which closing the file would not end a read
		_ = c.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
}

func (a *toolAsker) terminal() (io.ReadWriteCloser, error) {
	if a.open != nil {
		return a.open()
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}
