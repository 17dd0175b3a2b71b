package ondisk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/semaphore"

	"cove/internal/core/problem"
)

// Adopt makes the named session from one that runs already and is not on the disk yet; executions is how many have run in it. Nothing of it is saved so far:
// Close saves it. After an error live is unchanged. Problems: session_name, session_exists, and those of Prepare.
func (s Store) Adopt(ctx context.Context, name string, o Options, live Live, executions int) (*LeasedSession, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	ground, err := o.Prepare(ctx, o.Base)
	if err != nil {
		return nil, err
	}
	l, rec, err := s.create(name, o.Command, func(string) (Record, error) {
		r := newRecord(name, o)
		r.Environment, r.Python, r.Installed = ground.Key.Environment, ground.Python, live.Installed()
		r.Executions = executions
		r.Running = &Owner{PID: os.Getpid(), Command: o.Command, Since: time.Now()}
		return r, nil
	})
	if errors.Is(err, fs.ErrExist) {
		return nil, exists(name)
	}
	if err != nil {
		return nil, problem.Of(err)
	}
	return &LeasedSession{
		Live: live, name: name, dir: l.dir, lease: l, ground: ground, opts: o, rec: rec, busy: semaphore.NewWeighted(everything),
		at: state{ahead: codeAhead}, ended: live.Lost(),
	}, nil
}
