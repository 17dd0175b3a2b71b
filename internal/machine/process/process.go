// Package process has what is said of the processes that a session has beside its kernels: how to start one, what is known of it, and what it emits. Such a
// process belongs to the session and to nobody's connection: it goes on when its caller has left, and is saved, paused, resumed and forked with the session.
package process

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// Bounds of a Start.
const (
	mostArguments  = 4096
	longestCommand = 128 << 10 // bytes of all arguments, or of the variables
	mostVariables  = 256
	longestLabel   = 100
	longestDir     = 4096
	largestSize    = 2000 // columns or rows
	// LongestTime is the longest time limit.
	LongestTime = 30 * 24 * time.Hour
)

// Start says what to start.
type Start struct {
	Args     []string // the program and its arguments; a program without a slash is looked for in the PATH
	Line     string   // in the place of Args: for bash -c
	Dir      string   // "": the workspace; else relative to it, or absolute
	Env      map[string]string
	Label    string // of the caller's
	Root     bool   // it runs as root, which not every session has
	Input    bool   // it has a standard input; without one it reads an end at once
	Terminal *Size  // it has a terminal in the place of pipes, whatever Input is
	Followed bool   // somebody is going to follow it at once: its output waits for the first who does, some seconds
	Timeout  time.Duration
}

// Size is the size of a terminal, in characters.
type Size struct {
	Columns int
	Rows    int
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// CheckEnvironment returns what is wrong with variables.
func CheckEnvironment(env map[string]string) error {
	size := 0
	for name, value := range env {
		if !variable().MatchString(name) {
			return invalid(fmt.Sprintf("%.80q cannot be the name of a variable", name), "a name has letters, digits and underscores, and does not begin with a digit")
		}
		if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
			return invalid(fmt.Sprintf("the variable %s has characters that are no text", name), "variables are UTF-8 without zeros")
		}
		size += len(name) + len(value) + 2
	}
	if len(env) > mostVariables || size > longestCommand {
		return invalid("there are too many variables, or they are too long", "put them into a file, and have the program read that")
	}
	return nil
}

// Check returns what is wrong with a start.
func (s *Start) Check() error {
	size := len(s.Line)
	texts := append([]string{s.Line, s.Dir, s.Label}, s.Args...)
	for _, a := range s.Args {
		size += len(a) + 1
	}
	if err := CheckEnvironment(s.Env); err != nil {
		return err
	}
	switch {
	case (len(s.Args) == 0) == (s.Line == ""):
		return invalid("a process is started from its arguments or from a line for the shell", "give one of the two")
	case len(s.Args) > 0 && s.Args[0] == "":
		return invalid("the program has no name", "give a name such as python, or a path")
	case len(s.Args) > mostArguments || size > longestCommand:
		return invalid("the command is too long", "put it into a file, and run that")
	case utf8.RuneCountInString(s.Label) > longestLabel:
		return invalid(fmt.Sprintf("a label has at most %d characters", longestLabel), "")
	case len(s.Dir) > longestDir:
		return invalid("the path of the folder is too long", "")
	case slices.ContainsFunc(texts, func(text string) bool { return strings.ContainsRune(text, 0) || !utf8.ValidString(text) }):
		return invalid("the command has characters that are no text", "arguments and variables are UTF-8 without zeros")
	case s.Timeout < 0 || s.Timeout > LongestTime:
		return invalid("the time limit is not between 0 and 30 days", "leave it out for a process that may take any time")
	}
	if s.Terminal != nil {
		return s.Terminal.Check()
	}
	return nil
}

// Check returns what is wrong with a size.
func (s Size) Check() error {
	if s.Columns < 1 || s.Columns > largestSize || s.Rows < 1 || s.Rows > largestSize {
		return invalid(fmt.Sprintf("a terminal has 1 to %d columns and rows", largestSize), "")
	}
	return nil
}

func invalid(text, hint string) error {
	p := problem.New(problem.ProcessInvalid, text)
	if hint != "" {
		p = p.WithHint(hint)
	}
	return p
}

// Command returns the arguments to run.
func (s *Start) Command() []string {
	if s.Line != "" {
		return []string{"bash", "-c", s.Line}
	}
	return s.Args
}

// Environment returns base with the variables of the start, which go before.
func (s *Start) Environment(base map[string]string) []string {
	all := maps.Clone(base)
	if s.Terminal != nil {
		all["TERM"], all["COLORTERM"] = "xterm-256color", "truecolor"
		delete(all, "NO_COLOR")
	}
	maps.Copy(all, s.Env)
	var env []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// Info is what is known of a process. What the sandbox says of it is bounded, and not to be believed.
type Info struct {
	ID       string // ident.Process
	PID      int    // in the sandbox
	Args     []string
	Dir      string
	Label    string
	Root     bool
	Input    bool  // it can be written to
	Terminal *Size // nil: it has none
	Started  time.Time
	Exit     *Exit // nil: it runs
	Kept     int64 // the first byte of its output that is kept
	Written  int64 // bytes of output
}

// Port is a TCP port at which a program of the session listens.
type Port struct {
	Number  int
	Address string // that it listens at: "0.0.0.0", "127.0.0.1", "::"
}

// Exit is the end of a process.
type Exit struct {
	At     time.Time
	Code   int    // its status, if no signal ended it
	Signal string // "SIGKILL", or ""
	Reason Reason
}

// Reason says why cove ended a process.
type Reason string

// The reasons.
const (
	ByItself  Reason = ""
	ForTime   Reason = "timeout" // its time limit
	ForMemory Reason = "memory"  // the session's memory
)

// Status is the exit status that a shell gives such an end: that of the program, or 128 and the signal's number.
func (e Exit) Status() int {
	if e.Signal == "" {
		return e.Code
	}
	return 128 + int(unix.SignalNum(e.Signal))
}

// Kind is the kind of an event.
type Kind string

// The kinds. A gap says that output is not kept any more; it goes on at At.
const (
	Stdout   Kind = "stdout"
	Stderr   Kind = "stderr"
	Terminal Kind = "terminal"
	Gap      Kind = "gap"
	Ended    Kind = "exit"
)

// Event is something that a process emits. Positions are numbers of bytes since it began, over all its streams.
type Event struct {
	Kind Kind
	At   int64 // where Data begins
	Data []byte
	Exit *Exit // of Ended
	// Recycle, where it is not nil, may be called by who does not need Data any more. Nobody has to.
	Recycle func()
}

// Next is the position after the event, from which one goes on.
func (e Event) Next() int64 { return e.At + int64(len(e.Data)) }

// ParseSignal returns a signal by its name, with or without SIG, or by its number.
func ParseSignal(name string) (syscall.Signal, error) {
	n, err := strconv.Atoi(name)
	if err != nil {
		n = int(unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")))
	}
	if n < 1 || n > 64 {
		return 0, invalid(fmt.Sprintf("there is no signal %.40q", name), "signals are INT, TERM, KILL, HUP and others, or their numbers")
	}
	return syscall.Signal(n), nil
}

// SignalName is the name of a signal, "SIGKILL", or its number where it has none.
func SignalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return strconv.Itoa(n)
}
