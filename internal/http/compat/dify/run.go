package dify

import (
	"encoding/json"
	"fmt"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

// program is what a request has run: POST /v1/sandbox/run.
type program struct {
	Language string `json:"language"`
	Code     string `json:"code"`
	Preload  string `json:"preload"` // goes before the code
	Network  bool   `json:"enable_network"`
}

// language is how programs of a language are run.
type language struct {
	file    string
	command []string
	absent  string // what is said where its interpreter is not there
	python  bool
}

// languages are those that Dify has. JavaScript is a module as require takes it, whatever is in it.
func languages() map[string]language {
	return map[string]language{
		"python3": {file: "main.py", command: []string{"python", "main.py"}, absent: "the sandboxes of this server have no Python", python: true},
		"nodejs":  {file: "main.cjs", command: []string{"node", "main.cjs"}, absent: "the sandboxes of this server have no Node.js, so that JavaScript does not run"},
	}
}

func languageOf(name string) (language, error) {
	l, ok := languages()[name]
	if !ok {
		return l, problem.New(problem.InvalidRequest, fmt.Sprintf("unsupported language %.40q", name)).WithHint("the languages are python3 and nodejs").WithCause(errLanguage)
	}
	return l, nil
}

// text is the whole program.
func (p program) text() string {
	if p.Preload == "" {
		return p.Code
	}
	return p.Preload + "\n" + p.Code
}

func (s *server) run(c *call) error {
	body, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if err != nil {
		return err
	}
	var p program
	if err := json.Unmarshal(body, &p); err != nil {
		return problem.New(problem.InvalidRequest, "the request is not what Dify sends: "+bodybudget.WhyNotJSON(err)).
			WithHint(`send {"language":"python3","code":"print(1)"}`)
	}
	l, err := languageOf(p.Language)
	if err != nil {
		return err
	}
	if p.Code == "" {
		return problem.New(problem.InvalidRequest, "the request has no code").WithHint(`send {"language":"python3","code":"print(1)"}`)
	}
	looked := "" // the rules for code are about Python
	if l.python {
		looked = p.text()
	}
	if err := s.Hub.CheckProgram(c.Context(), c.who, looked); err != nil {
		return err
	}
	return s.perform(c, p, l)
}
