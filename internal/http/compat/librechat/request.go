package librechat

import (
	"encoding/json"
	"path"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

const (
	mostInputs  = 200 // files of an execution
	longestHint = 1000
)

// request is POST /librechat/exec.
type request struct {
	Language string          `json:"lang"`
	Code     string          `json:"code"`
	Args     json.RawMessage `json:"args"` // a list, or one text
	Session  string          `json:"session_id"`
	Files    []input         `json:"files"`
	Hint     string          `json:"runtime_session_hint"`

	args []string
}

// input is a file that the code is to find.
type input struct {
	ID      string `json:"id"`
	Storage string `json:"storage_session_id"`
	Session string `json:"session_id"` // of older clients, in its place
	Name    string `json:"name"`
}

func (i input) storage() string {
	if i.Storage != "" {
		return i.Storage
	}
	return i.Session
}

// place is where the file is put: below the workspace, which is also /mnt/data.
func (i input) place() string {
	name := strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(i.Name, "/mnt/data/")), "/")
	if name == "" {
		return i.ID
	}
	return name
}

func (s *server) read(c *call) (r request, err error) {
	if err := s.decode(c, &r); err != nil {
		return r, err
	}
	return r, r.check()
}

// decode reads the body of a request.
func (s *server) decode(c *call, into any) error {
	body, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return problem.New(problem.InvalidRequest, "the request is not what LibreChat sends: "+bodybudget.WhyNotJSON(err))
	}
	return nil
}

// check returns what is wrong with a request. It reads the arguments.
func (r *request) check() error {
	invalid := func(text string) error { return problem.New(problem.InvalidRequest, text) }
	if len(r.Args) > 0 && string(r.Args) != "null" {
		var one string
		if json.Unmarshal(r.Args, &r.args) != nil {
			if json.Unmarshal(r.Args, &one) != nil {
				return invalid("args is a list of texts")
			}
			r.args = []string{one}
		}
	}
	switch {
	case r.Code == "":
		return invalid("there is no code")
	case len(r.Files) > mostInputs:
		return invalid("there are too many files")
	case len(r.Hint) > longestHint:
		return invalid("runtime_session_hint is too long")
	}
	return nil
}
