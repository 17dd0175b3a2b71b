package cli

import (
	"context"
	"fmt"
	"io"
	"sync"

	"cove/internal/egress"
	"cove/internal/hub"
	"cove/internal/problem"
)

// networkFlags say where the code of a session may connect to.
type networkFlags struct {
	AllowNet []string `name:"allow-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Let code connect to this host: example.com, *.example.com, 10.1.2.0/24, or * for the public internet; at ports 80 and 443 unless others are named. Repeatable. Without it code reaches nothing."`
	DenyNet  []string `name:"deny-net" sep:"none" placeholder:"HOST[:PORTS]" help:"Refuse this host although --allow-net names it. Repeatable."`
}

// rules reads the flags. none says that nothing is allowed.
func (f networkFlags) rules() (rules egress.Rules, none bool, err error) {
	if len(f.AllowNet) == 0 {
		if len(f.DenyNet) > 0 {
			return rules, true, problem.New(problem.Usage, "--deny-net takes something away from --allow-net, which is not there").WithHint("without --allow-net nothing can be reached")
		}
		return rules, true, nil
	}
	rules, err = egress.ParseRules(f.AllowNet, f.DenyNet)
	return rules, false, err
}

// connect gives a session its network, and tells once of each host that was refused. What the user of this machine allows needs nobody else's word.
func (f networkFlags) connect(ctx context.Context, live hub.Live, tell io.Writer) error {
	rules, none, err := f.rules()
	if err != nil || none {
		return err
	}
	var mu sync.Mutex
	told := map[string]bool{}
	return live.SetNetwork(ctx, egress.New(egress.Options{Operator: rules, Tell: func(e egress.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Refused == "" || told[e.Refused] || len(told) == 20 {
			return
		}
		told[e.Refused] = true
		fmt.Fprintln(tell, "cove: "+oneLine(e.Refused))
	}}))
}
