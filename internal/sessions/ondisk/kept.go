package ondisk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/snapshot"
)

// How long a keeper may take to end after it stopped answering, and how often its end is checked.
const (
	endGrace = 2 * time.Second
	endPoll  = 5 * time.Millisecond
)

// errOtherLimits means that a session in memory has other limits than the user asks for.
var errOtherLimits = errors.New("the session is in memory with other limits")

// identity returns what has to be the same in a client for it to use a session in memory.
func identity(k snapshot.Key) string { return fmt.Sprintf("%+v", k) }

// reach connects to the process that keeps the session in memory, if the record names one. It always does when there is one.
func (s *LeasedSession) reach(ctx context.Context) error {
	if s.rec.Memory == nil {
		return nil
	}
	if s.opts.keeping && keeper.Lives(s.dir) {
		return problem.New(problem.SessionInMemory, "session "+s.name+" is in memory already")
	}
	kept, err := connect(ctx, s.dir)
	switch {
	case err == nil:
		return s.found(kept)
	case keeper.Gone(err) && !keeper.Lives(s.dir):
		s.notice(s.rec.lossNotice())
		s.rec.Memory, s.rec.Running, s.rec.Executions = nil, nil, s.rec.Head.Executions
		return nil
	case problem.Has(err, problem.KeeperVersion):
		return s.otherCove()
	case ctx.Err() != nil:
		return err
	}
	return problem.New(problem.KeeperSilent, fmt.Sprintf("process %d, which keeps session %s in memory, does not answer", s.rec.Memory.PID, s.name)).
		WithCause(err).WithHint(fmt.Sprintf("end the process with `kill %d`, or with `kill -9 %d`; then %s", s.rec.Memory.PID, s.rec.Memory.PID, s.rec.remains()))
}

// connect connects to a keeper. One that is just ending is waited for.
func connect(ctx context.Context, dir string) (*keeper.Remote, error) {
	for begun := time.Now(); ; time.Sleep(endPoll) {
		kept, err := keeper.Connect(ctx, dir)
		if err == nil || !keeper.Gone(err) || !keeper.Lives(dir) || time.Since(begun) > endGrace {
			return kept, err
		}
	}
}

func (s *LeasedSession) found(kept *keeper.Remote) error {
	s.kept = kept
	ahead, left := s.rec.Memory.Unsaved, s.rec.Running
	if left == nil {
		left = s.rec.Memory.Left
	}
	if left != nil {
		ahead = true
		s.notice(left.interrupted(s.name) + "; everything else is still in memory")
		s.rec.remember(func(m *Memory) { m.Left = nil })
	}
	if ahead { // what changed it is not recorded: assume code
		s.at = s.at.on(codeBegins)
	}
	return nil
}

// interrupted says what became of the code of a command that was killed.
func (o Owner) interrupted(name string) string {
	return fmt.Sprintf("the last command (process %d, %s) ended while it used session %s: what it was running is interrupted", o.PID, clock(o.Since), name)
}

// fits returns an error when this process cannot use the sandbox in memory, because another version of cove keeps it.
func (s *LeasedSession) fits() error {
	if s.kept.Identity() == identity(s.ground.Key) {
		return nil
	}
	return s.otherCove()
}

func (s *LeasedSession) otherCove() error {
	return problem.New(problem.KeeperVersion, "session "+s.name+" is kept in memory by another version of cove").
		WithHint(fmt.Sprintf("use that version of cove; or run `cove session pause %s`, which saves the session for that version; `cove session undo` and `rm` work with any version", s.name))
}

// join uses the session in the keeper's memory.
func (s *LeasedSession) join(ctx context.Context, head *snapshot.Snapshot) (Live, error) {
	live, err := s.ground.Join(ctx, s.kept, head)
	if problem.Has(err, problem.KernelLost) {
		s.at = s.at.on(kernelDies)
		s.notice("the interpreter of session " + s.name + " did not stop the code of the last command and was killed: the variables are lost")
		live, err = s.ground.Join(ctx, s.kept, head)
	}
	return live, err
}

// inMemory says whether the session is still in the memory of another process. The caller holds mu.
func (s *LeasedSession) inMemory() bool {
	if s.kept == nil || s.rec.Memory == nil {
		return false
	}
	select {
	case <-s.kept.Done():
		return false
	default:
		return true
	}
}

// abandon ends a session that could not be started.
func (s *LeasedSession) abandon(ctx context.Context, live Live) error {
	if s.kept == nil {
		return live.Close(ctx)
	}
	_, err := live.Leave(ctx)
	return err
}

// release stops using a session in memory and leaves it there; false says that it is not in memory, or not any more.
func (s *LeasedSession) release(ctx context.Context) (bool, error) {
	s.mu.Lock()
	there := s.inMemory()
	s.mu.Unlock()
	if !there {
		return false, nil
	}
	if s.busy.Acquire(ctx, everything) == nil {
		defer s.busy.Release(everything)
	} else {
		s.notice("session " + s.name + " was left in memory while its code ran; the next command interrupts that")
	}
	_, err := s.Leave(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inMemory() {
		return false, nil
	}
	s.kept.Release()
	crashed := s.at.holds == inFilesAlone && s.rec.Head.Snapshot != ""
	if crashed {
		text := fmt.Sprintf("session %s has lost its variables; `cove session undo %s` goes back to %s", s.name, s.name, s.rec.Head)
		s.notices, s.rec.Notice = append(s.notices, text), &Notice{Time: time.Now(), Text: text}
	}
	s.rec.remember(func(m *Memory) {
		m.Unsaved = s.ahead()
		if s.at.ahead == undoAhead || crashed {
			m.Pinned = max(m.Pinned, s.opts.Depth, 1)
		}
	})
	s.rec.Running, s.rec.Used, s.rec.Kernels, s.rec.Installed = nil, time.Now(), s.kernels(), s.Installed()
	return true, errors.Join(err, s.rec.write(s.dir))
}
