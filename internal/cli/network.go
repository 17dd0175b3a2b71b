package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"cove/internal/egress"
	"cove/internal/hub"
	"cove/internal/problem"
)

// networkFlags say where the code of a session may connect to.
type networkFlags struct {
	AllowNet   []string `name:"allow-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Let code connect to this host: example.com, *.example.com, 10.1.2.0/24, or * for the public internet; at ports 80 and 443 unless others are named. Repeatable. Without it code reaches nothing."`
	Credential []string `name:"credential" sep:"none" placeholder:"HOST=[HEADER:]VARIABLE" help:"Add a header to what code sends to this host by HTTPS: Authorization: Bearer with the value that the variable has here, or the value as HEADER. Code never sees it. Repeatable."`
	DenyNet    []string `name:"deny-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Refuse this host although --allow-net names it. Repeatable."`
}

// rules reads the flags. none says that nothing is allowed.
func (f networkFlags) rules() (rules egress.Rules, none bool, err error) {
	if len(f.AllowNet) == 0 {
		if len(f.Credential) > 0 {
			return rules, true, problem.New(problem.Usage, "--credential is for a host that --allow-net allows").WithHint("add --allow-net HOST")
		}
		if len(f.DenyNet) > 0 {
			return rules, true, problem.New(problem.Usage, "--deny-net takes something away from --allow-net, which is not there").WithHint("without --allow-net nothing can be reached")
		}
		return rules, true, nil
	}
	rules, err = egress.ParseRules(f.AllowNet, f.DenyNet)
	return rules, false, err
}

// credentials reads the flags.
func (f networkFlags) credentials(getenv func(string) string, rules egress.Rules) (all []egress.Credential, authority *egress.Authority, err error) {
	for _, text := range f.Credential {
		host, what, ok := strings.Cut(text, "=")
		header, variable, own := strings.Cut(what, ":")
		if !own {
			header, variable = "Authorization", what
		}
		value := getenv(variable)
		if !ok || value == "" {
			return nil, nil, problem.New(problem.Usage, fmt.Sprintf("--credential %s: the variable %q is not set", host, variable)).WithHint("write HOST=VARIABLE or HOST=HEADER:VARIABLE with the name of a variable that has the secret")
		}
		if !own {
			value = "Bearer " + value
		}
		all = append(all, egress.Credential{Host: strings.ToLower(host), Header: header, Value: value})
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	if err := egress.CheckCredentials(all, rules); err != nil {
		return nil, nil, err
	}
	authority, err = egress.NewAuthority(all)
	return all, authority, err
}

// checkNetwork finds the mistakes that can be found before anything starts.
func (f networkFlags) checkNetwork(getenv func(string) string) error {
	rules, _, err := f.rules()
	if err == nil {
		_, _, err = f.credentials(getenv, rules)
	}
	return err
}

// connect gives a session its network, and tells once of each host that was refused. What the user of this machine allows needs nobody else's word.
func (f networkFlags) connect(ctx context.Context, live hub.Live, getenv func(string) string, tell io.Writer) error {
	rules, none, err := f.rules()
	if err != nil || none {
		return err
	}
	credentials, authority, err := f.credentials(getenv, rules)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	told := map[string]bool{}
	return live.SetNetwork(ctx, egress.New(egress.Options{Operator: rules, Credentials: credentials, Authority: authority, Tell: func(e egress.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Refused == "" || told[e.Refused] || len(told) == 20 {
			return
		}
		told[e.Refused] = true
		fmt.Fprintln(tell, "cove: "+oneLine(e.Refused))
	}}))
}
