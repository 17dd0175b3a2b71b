// Package bench measures cove beside its peers on the machine that it runs on.
//
// Everything happens in one run: a row is one question ("how long is a round trip?"), a subject is one thing that is
// asked (cove, a Jupyter kernel gateway, docker, ...). A row takes one sample of every subject, then the next one of
// every subject, and so on, so that what else the machine does hits all of them alike. A first round warms caches and is
// thrown away. Every sample checks the answer that came back: a wrong one is a failure and has no time.
//
// What is timed: from the request until the result is in hand and the execution is known to be over. Of a program that
// runs once (`python3 -c`, `docker run`) only the time until its result's line arrives counts, not its exit. Freeing what
// a sample used is never timed.
//
// Everything that a run starts is gone when Run returns, however it ends; what one that was killed left is removed by
// the next. What is kept for later runs is in <data>/bench: the gateway's virtual environment and the root file system
// for docker.
package bench

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// Options say what is measured.
type Options struct {
	Data    string             // cove's data folder
	Env     *pyenv.Environment // the standard environment; all subjects that can use it do
	Cove    Cove               // nil leaves cove out
	Command string             // path of the cove program, for `cove serve` and `cove run` as processes of their own; "" leaves these out
	Version string             // cove's

	Rows     []string  // IDs; none means all
	Subjects []string  // IDs; none means all. Ratios need cove
	Rounds   int       // samples of each subject in the rows that take several; 0 means each row's own number
	Quick    bool      // few samples, few sessions at once
	Install  bool      // install what peers need from the distribution, when root
	Progress io.Writer // told what happens; nil is quiet
}

// teardown bounds how long subjects may take to go after a run or a sample.
const teardown = 30 * time.Second

// Run measures. When ctx ends, it stops early and returns a report of what it has, with Complete false. An error means
// that nothing could be measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	rows, err := choose(codeUnknownRow, o.Rows, Rows(), func(r Row) string { return r.ID })
	if err != nil {
		return nil, err
	}
	if _, err := choose(codeUnknownSubject, o.Subjects, SubjectIDs(), func(id string) string { return id }); err != nil {
		return nil, err
	}
	shop, err := openWorkshop(o.Data, o.Progress)
	if err != nil {
		return nil, err
	}
	r := &Runner{Rows: rows, Subjects: subjects(shop, o), Rounds: o.Rounds, Quick: o.Quick, Progress: o.Progress}
	report := r.Run(ctx)
	report.Version, report.Python = o.Version, o.Env.Version
	report.Libraries = map[string]string{}
	for _, name := range []string{"numpy", "pandas", "matplotlib", "ipython"} {
		report.Libraries[name] = o.Env.Packages[name]
	}
	return report, shop.close()
}

// SubjectIDs are the values that Options.Subjects may have.
func SubjectIDs() []string {
	return []string{coveID, coveServeID, "cove-run", "python3", "bubblewrap", "docker", "docker-exec", "docker-kept", "gateway", "gateway-prespawn", "jupyter-terminals", "uv-target", "pip-target", "relay", clientLoopID, coveLoopID, coveCodeID, coveHostID}
}

// subjects makes those that are wanted, without starting anything.
func subjects(shop *workshop, o Options) []Subject {
	kit := &gatewayKit{shop: shop, env: o.Env}
	daemon := &dockerDaemon{shop: shop, env: o.Env, install: o.Install}
	var all []Subject
	agents, beside := []Subject(nil), &outside{}
	if o.Cove != nil {
		all = append(all, NewCove(o.Cove, shop.scratch))
	}
	if o.Command != "" {
		server := &coveServer{shop: shop, data: o.Data, command: o.Command, outside: beside}
		all = append(all, server)
		agents = newCoveAgents(server)
		all = append(all, &oneShot{id: "cove-run", title: "cove run", note: "a process of its own: the command's own start is in it",
			shop: shop, argv: func(code string) []string { return []string{o.Command, "run", "-q", "-c", code} }})
	}
	all = append(all, newPython(shop, o.Env), newBubblewrap(shop, o.Env, o.Install),
		&dockerRun{daemon: daemon}, &dockerExec{daemon: daemon}, &dockerKept{daemon: daemon},
		&gateway{kit: kit}, &prespawned{kit: kit}, &jupyterTerminals{kit: kit}, newUVTarget(shop, o.Env), newPipTarget(shop, o.Env), &relay{shop: shop, env: o.Env},
		&clientLoop{outside: beside})
	all = append(all, agents...)
	if len(o.Subjects) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(s Subject) bool { return !slices.Contains(o.Subjects, s.About().ID) })
}

// choose returns the entries of all that are named, in all's order.
func choose[T any](unknown problem.InvalidCode, names []string, all []T, id func(T) string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	what := strings.TrimPrefix(string(unknown), "bench_unknown_")
	var known []string
	for _, one := range all {
		known = append(known, id(one))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, problem.New(unknown, "there is no "+what+" "+name).
				WithHint("the " + what + "s are " + strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(names, id(one)) }), nil
}
