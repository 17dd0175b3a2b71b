package dify

import (
	"context"
	"sync"
	"time"
)

// places are where programs run: so many at a time, and of one project half of them, so that there is room for others.
type places struct {
	all  chan struct{}
	most int // of one project

	mu       sync.Mutex
	projects map[string]*share
}

// share are the places of one project.
type share struct {
	taken chan struct{}
	users int // that have a place, or wait for one
}

func newPlaces(atOnce int) *places {
	return &places{all: make(chan struct{}, atOnce), most: max(1, atOnce/2), projects: map[string]*share{}}
}

// enter waits for a place, for at most so long. Problems: overloaded.
func (p *places) enter(ctx context.Context, project string, patience time.Duration) (leave func(), err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	mine := p.of(project)
	if err = take(ctx, mine.taken, late.C); err != nil {
		p.drop(project)
		return nil, err
	}
	if err = take(ctx, p.all, late.C); err != nil {
		<-mine.taken
		p.drop(project)
		return nil, err
	}
	return func() {
		<-p.all
		<-mine.taken
		p.drop(project)
	}, nil
}

// take takes a place at once when one is free, however late it is.
func take(ctx context.Context, places chan struct{}, late <-chan time.Time) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-late:
		return busy()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// of returns the share of a project, until drop.
func (p *places) of(project string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.projects[project]
	if s == nil {
		s = &share{taken: make(chan struct{}, p.most)}
		p.projects[project] = s
	}
	s.users++
	return s
}

func (p *places) drop(project string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.projects[project]; s != nil {
		if s.users--; s.users == 0 {
			delete(p.projects, project)
		}
	}
}
