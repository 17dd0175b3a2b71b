package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/server/hub"
)

// networkFlags say where the code of a session may connect to.
type networkFlags struct {
	AllowNet   []string `name:"allow-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Let code connect to this host: example.com, *.example.com, 10.1.2.0/24, or * for the public internet; at ports 80 and 443 unless others are named. Repeatable. Without it code reaches nothing."`
	Credential []string `name:"credential" sep:"none" placeholder:"HOST=[HEADER:]VARIABLE" help:"Add a header to what code sends to this host by HTTPS: Authorization: Bearer with the value that the variable has here, or the value as HEADER. Code never sees it. Repeatable."`
	DenyNet    []string `name:"deny-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Refuse this host although --allow-net names it. Repeatable."`
}

// options reads the flags; nil: nothing is allowed. What the user of this machine allows needs nobody else's word.
func (f networkFlags) options(getenv func(string) string) (*egress.Options, error) {
	switch {
	case len(f.AllowNet) > 0:
	case len(f.Credential) > 0:
		return nil, problem.New(problem.Usage, "--credential is for a host that --allow-net allows").WithHint("add --allow-net HOST")
	case len(f.DenyNet) > 0:
		return nil, problem.New(problem.Usage, "--deny-net takes something away from --allow-net, which is not there").WithHint("without --allow-net nothing can be reached")
	default:
		return nil, nil //nolint:nilnil // no network is no error
	}
	rules, err := egress.ParseRules(f.AllowNet, f.DenyNet)
	if err != nil {
		return nil, err
	}
	o := &egress.Options{Operator: rules}
	for _, text := range f.Credential {
		c, err := credential(text, getenv)
		if err != nil {
			return nil, err
		}
		o.Credentials = append(o.Credentials, c)
	}
	if len(o.Credentials) > 0 {
		if err := egress.CheckCredentials(o.Credentials, rules); err != nil {
			return nil, err
		}
		if o.Authority, err = egress.NewAuthority(o.Credentials); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// credential reads HOST=VARIABLE or HOST=HEADER:VARIABLE.
func credential(text string, getenv func(string) string) (c egress.Credential, err error) {
	host, what, ok := strings.Cut(text, "=")
	header, variable, own := strings.Cut(what, ":")
	if !own {
		header, variable = "Authorization", what
	}
	value := getenv(variable)
	if !ok || value == "" {
		return c, problem.New(problem.Usage, fmt.Sprintf("--credential %s: the variable %q is not set", host, variable)).WithHint("write HOST=VARIABLE or HOST=HEADER:VARIABLE with the name of a variable that has the secret")
	}
	if !own {
		value = "Bearer " + value
	}
	return egress.Credential{Host: strings.ToLower(host), Header: header, Value: value}, nil
}

// checkNetwork finds the mistakes that can be found before anything starts.
func (f networkFlags) checkNetwork(getenv func(string) string) error {
	_, err := f.options(getenv)
	return err
}

// connect gives a session its network, and tells once of each host that was refused.
func (f networkFlags) connect(ctx context.Context, live hub.Live, getenv func(string) string, tell io.Writer) error {
	o, err := f.options(getenv)
	if o == nil || err != nil {
		return err
	}
	var mu sync.Mutex
	told := map[string]bool{}
	o.Tell = func(e egress.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Refused == "" || told[e.Refused] || len(told) == 20 {
			return
		}
		told[e.Refused] = true
		fmt.Fprintln(tell, "cove: "+lang.Text(oneLine(e.Refused)))
	}
	return live.SetNetwork(ctx, egress.New(*o))
}
