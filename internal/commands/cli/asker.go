package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"cove/internal/commands/terminal"
)

// signalNumber is the number of a signal's name, or 0.
func signalNumber(name string) int { return int(unix.SignalNum(name)) }

// columns returns how wide the terminal is that w is, or 0.
func columns(w any) int {
	wide, _ := terminal.Size(w)
	return wide
}

// asker answers input() and getpass() of the code from the user's terminal, or from a pipe.
type asker struct {
	p       *Program
	in      io.Reader
	prompts io.Writer
	lines   *bufio.Reader
	mu      sync.Mutex // threads of the code may ask at one time
}

// newAsker reads p.In, or the controlling terminal when standard input was the program itself.
func newAsker(p *Program, consumed, json bool) *asker {
	a := &asker{p: p, in: p.In, prompts: p.Out}
	if json {
		a.prompts = p.Err
	}
	if consumed {
		a.in = strings.NewReader("")
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			a.in, a.prompts = tty, tty
		}
	}
	return a
}

func (a *asker) input(prompt string, password bool) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := fmt.Fprint(a.prompts, prompt); err != nil {
		return "", err
	}
	if fd, ok := terminal.Descriptor(a.in); ok && password {
		text, err := term.ReadPassword(fd)
		fmt.Fprintln(a.prompts)
		return string(text), err
	}
	if a.lines == nil {
		a.lines = bufio.NewReader(a.in)
	}
	line, err := a.lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
}

// agreed asks a person on a terminal, and returns whether the answer begins with a y. Where nobody can be asked it returns true.
func (p *Program) agreed(question string) bool {
	if _, tty := terminal.Descriptor(p.In); !tty {
		return true
	}
	answer, err := (&asker{in: p.In, prompts: p.Err}).input(question+" [y/N] ", false)
	return err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y")
}
