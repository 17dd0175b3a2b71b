package jupyter

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// A terminal is a process of the caller's personal session with a shell, which goes on when its client is gone. It is known by its label.

const (
	terminalLabel   = "jupyter-terminal:"
	longestTerminal = 60 // bytes of a name
	mostTerminals   = 100
)

type terminalModel struct {
	Name     string `json:"name"`
	Activity string `json:"last_activity"`
}

func shownTerminal(p process.Info) terminalModel {
	return terminalModel{strings.TrimPrefix(p.Label, terminalLabel), moment(p.Started)}
}

// terminals are those that run in a caller's personal session, which is "" where there is none.
func (s *server) terminals(ctx context.Context, who auth.Principal) (personal string, all []process.Info, err error) {
	session, ok, err := s.findPersonal(ctx, who)
	if err != nil || !ok {
		return "", nil, err
	}
	every, err := s.Hub.Processes(ctx, who, session.ID)
	for _, p := range every {
		if strings.HasPrefix(p.Label, terminalLabel) && p.Exit == nil && p.Terminal != nil {
			all = append(all, p)
		}
	}
	return session.ID, all, err
}

// terminal finds the one of a request's address.
func (s *server) terminal(c *call) (personal string, p process.Info, err error) {
	name := c.PathValue("name")
	personal, all, err := s.terminals(c.Context(), c.who)
	if err != nil {
		return "", p, err
	}
	for _, p := range all {
		if p.Label == terminalLabel+name {
			return personal, p, nil
		}
	}
	return "", p, problem.New(problem.ProcessNotFound, "Terminal not found: "+name)
}

func (s *server) listTerminals(c *call) error {
	_, all, err := s.terminals(c.Context(), c.who)
	if err != nil {
		return err
	}
	models := []terminalModel{}
	for _, p := range all {
		models = append(models, shownTerminal(p))
	}
	return c.reply(http.StatusOK, models)
}

// startTerminal begins a shell in the personal session.
func (s *server) startTerminal(c *call) error {
	var in struct {
		Name string `json:"name"`
		Dir  string `json:"cwd"`
	}
	err := c.read(&in)
	var dir document
	if err == nil {
		dir, err = documentOf(in.Dir)
	}
	if err == nil {
		err = s.Hub.CheckProgram(c.Context(), c.who, "")
	}
	if err != nil {
		return err
	}
	personal, err := s.personal(c.Context(), c.who)
	if err != nil {
		return err
	}
	leave, err := s.making.take(c.Context(), c.who) // names are used once
	if err != nil {
		return err
	}
	defer leave()
	_, all, err := s.terminals(c.Context(), c.who)
	if err == nil {
		in.Name, err = freeName(in.Name, all)
	}
	if err != nil {
		return err
	}
	start := process.Start{Args: []string{"bash"}, Dir: string(dir), Label: terminalLabel + in.Name, Terminal: &process.Size{Columns: 80, Rows: 24}, Followed: true}
	p, err := s.Hub.StartProcess(c.Context(), c.who, personal.ID, start)
	if problem.Has(err, problem.InvalidPath) && dir != "" { // a folder that is gone
		start.Dir = ""
		p, err = s.Hub.StartProcess(c.Context(), c.who, personal.ID, start)
	}
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, shownTerminal(p))
}

// freeName is the name of a new terminal: the one that a client wants, or the first number.
func freeName(wanted string, all []process.Info) (string, error) {
	taken := map[string]bool{}
	for _, p := range all {
		taken[strings.TrimPrefix(p.Label, terminalLabel)] = true
	}
	switch {
	case len(all) >= mostTerminals:
		return "", problem.New(problem.TooManyProcesses, "there are "+strconv.Itoa(mostTerminals)+" terminals").WithHint("close some of them")
	case wanted != "" && (len(wanted) > longestTerminal || strings.ContainsFunc(wanted, func(r rune) bool { return !isWord(r) })):
		return "", problem.New(problem.InvalidRequest, "a terminal's name has letters, digits and underscores")
	case wanted != "" && taken[wanted]:
		return "", problem.New(problem.AlreadyExists, "there is a terminal "+wanted)
	case wanted != "":
		return wanted, nil
	}
	n := 1
	for taken[strconv.Itoa(n)] {
		n++
	}
	return strconv.Itoa(n), nil
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

func (s *server) getTerminal(c *call) error {
	_, p, err := s.terminal(c)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, shownTerminal(p))
}

// deleteTerminal ends a shell with all that it has started.
func (s *server) deleteTerminal(c *call) error {
	personal, p, err := s.terminal(c)
	if err == nil {
		err = s.Hub.SignalProcess(c.Context(), c.who, personal, p.ID, "KILL", true)
	}
	if problem.Has(err, problem.ProcessEnded) {
		err = nil
	}
	return c.done(err)
}
