package session

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// Variables go from a sandbox to one of another release by a file in the workspace, which the code of variables.py writes in one and reads in the other. It
// runs with the rights of the session's code, so a hostile file can do no more than that code.

//go:embed variables.py
var variablesProgram string

const (
	// variablesMost bounds what variables take as pickles, in bytes. The pickles are in the sandbox's memory besides the variables themselves, so they get half
	// of the memory that is free there, if that is less.
	variablesMost = 256 << 20
	// variablesGrace is how much longer than variablesTime a kernel may take before it is interrupted.
	variablesGrace = 15 * time.Second
	// variablesPrefix begins the file's name.
	variablesPrefix = ".cove-variables-"
)

// variablesTime bounds how long packing and unpacking the variables may take each. It is a variable for tests.
var variablesTime = time.Minute

// VariablesRecord is the key of a PAX record that says that a file in a salvaged archive is for TakeVariables.
const VariablesRecord = "COVE.variables"

// Taken says which variables of a session could be carried over to a new sandbox.
type Taken struct {
	Taken int      `json:"taken"` // how many could be
	Left  []string `json:"left"`  // the names of variables that could not: at most 100
	More  int      `json:"more"`  // how many others could not
}

// packVariables writes the main kernel's variables to a file in the workspace and returns its path there.
func (s *Live) packVariables(ctx context.Context) (string, error) {
	at := variablesPrefix + rand.Text()
	room := int64(variablesMost)
	if _, err := s.transfer(ctx, fmt.Sprintf("resident = int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n"+
		"pack(space, hidden, %q, min(%d, (%d - resident) // 2), %g)", s.inWorkspace(at), room, s.opts.Limits.Memory, variablesTime.Seconds())); err != nil {
		return at, err
	}
	return at, nil
}

// TakeVariables restores the variables from the workspace's file in which a salvaged archive has them, and removes the file.
func (s *Live) TakeVariables(ctx context.Context, at string) (Taken, error) {
	said, err := s.transfer(ctx, fmt.Sprintf("unpack(space, %q, %g)", s.inWorkspace(at), variablesTime.Seconds()))
	var got Taken
	if err == nil && json.Unmarshal(bytes.TrimSpace(said), &got) != nil {
		err = problem.New(problem.VariablesInvalid, "the variables could not be packed: the sandbox sent no usable answer")
	}
	if rerr := s.Remove(context.WithoutCancel(ctx), at, false); err == nil {
		err = rerr
	}
	return got, err
}

func (s *Live) inWorkspace(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil {
		return name
	}
	return path.Join(s.sandbox.Layout().Workspace, name)
}

// transfer runs variables.py and one more line after it in a namespace of its own, and returns what that line printed.
func (s *Live) transfer(ctx context.Context, last string) ([]byte, error) {
	quoted, err := json.Marshal(variablesProgram + "\n" + last + "\n")
	if err != nil {
		return nil, err
	}
	code := fmt.Sprintf("exec(%s, {'space': globals(), 'hidden': get_ipython().user_ns_hidden})", quoted)
	var said []byte
	for ev, err := range s.Execute(ctx, kernel.Request{Code: code, Timeout: variablesTime + variablesGrace, OutputLimit: 64 << 10}) {
		if err != nil {
			return nil, err
		}
		switch e := ev.(type) {
		case kernel.Stream:
			if e.Name == "stdout" {
				said = append(said, e.Data...)
			}
		case kernel.Done:
			if e.Outcome != kernel.OutcomeOK {
				return nil, problem.New(problem.VariablesLost, fmt.Sprintf("carrying the variables over ended as %s", e.Outcome))
			}
		}
	}
	return said, nil
}
