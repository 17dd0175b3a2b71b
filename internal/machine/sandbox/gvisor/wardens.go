package gvisor

import (
	"cmp"
	"context"
)

// mostCreated is how many sandboxes a warden creates before another one takes its place. gVisor keeps a thread and a descriptor of a mount namespace for each sandbox that was ever created in a process
// (goferToHostRPC.OpenMount), which end with the process alone.
const mostCreated = 128

// hireWarden returns the warden for a new sandbox, started when there is none.
func (e *Engine) hireWarden() (*remote, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.needWarden(); err != nil {
		return nil, err
	}
	if e.warden.created++; e.warden.created >= cmp.Or(e.most, mostCreated) {
		e.replaceWarden()
	}
	e.warden.using++
	return e.warden, nil
}

// needWarden makes sure that there is a warden. The caller holds mu.
func (e *Engine) needWarden() error {
	if e.warden != nil && !ended(e.warden.done) {
		return nil
	}
	w, err := e.startWarden()
	if err == nil {
		e.warden = w
	}
	return err
}

func (e *Engine) startWarden() (*remote, error) {
	return startWarden(e.exe, e.flags(), e.withheld == "")
}

// replaceWarden has another warden create the sandboxes from now on, or as soon as there is one: nothing waits for its start. The sandboxes of the one before the last are taken over when they need it,
// so that there are never more than three. The caller holds mu.
func (e *Engine) replaceWarden() {
	if e.next == nil || ended(e.next.done) {
		if e.hiring {
			return
		}
		e.hiring = true
		go func() {
			w, err := e.startWarden()
			e.mu.Lock()
			defer e.mu.Unlock()
			e.hiring = false
			switch {
			case err != nil: // the next sandbox has it tried again
			case e.warden == nil: // all sandboxes have ended meanwhile
				w.close()
			default:
				e.next = w
			}
		}()
		return
	}
	last := e.former
	e.former, e.warden, e.next = e.warden, e.next, nil
	e.warden.created++
	if e.former.using == 0 {
		go e.former.close()
		e.former = nil
	}
	if last != nil {
		go last.leave()
	}
}

// wardenOf returns the warden that drives a sandbox: the one that created it, or one that has taken it over.
func (e *Engine) wardenOf(s *running) (*remote, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !ended(s.warden.done) {
		return s.warden, nil
	}
	if err := e.needWarden(); err != nil {
		return nil, err
	}
	if err := e.warden.call(context.Background(), "Adopt", CreateArgs{ID: s.ID(), Dir: s.instance.Path}, &struct{}{}); err != nil {
		return nil, err
	}
	e.warden.using++
	s.warden, s.adopted = e.warden, true
	return s.warden, nil
}

// dismissWarden ends a sandbox's warden when that was its last one.
func (e *Engine) dismissWarden(s *running) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := s.warden
	if w.using--; w.using > 0 || ended(w.done) {
		return
	}
	switch w {
	case e.warden:
		e.warden = nil
		if e.next != nil {
			e.next.close()
			e.next = nil
		}
	case e.former:
		e.former = nil
	default:
		return // it leaves
	}
	w.close()
}
