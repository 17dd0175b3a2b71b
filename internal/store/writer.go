package store

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/problem"
)

const (
	// largestBatch and longestBatch bound how many writes share a transaction, and for how long it takes more.
	largestBatch = 256
	longestBatch = 20 * time.Millisecond
)

// writer is the one that writes to an SQLite database. What costs is not a write but having the disk confirm it, so the writes that wait
// while it does become one transaction, each behind a savepoint of its own: one that fails takes no other with it.
type writer struct {
	db      *sql.DB
	ask     chan *writing
	quit    chan struct{}
	once    sync.Once
	stopped chan struct{}
}

// writing is one write.
type writing struct {
	ctx   context.Context
	do    func(context.Context, queryer) error
	taken atomic.Bool // by the writer, or by the caller who gave up
	done  chan struct{}
	err   error
	panic any
}

func newWriter(db *sql.DB) *writer {
	w := &writer{db: db, ask: make(chan *writing), quit: make(chan struct{}), stopped: make(chan struct{})}
	go w.run()
	return w
}

// close refuses further writes and waits for the one that runs.
func (w *writer) close() {
	w.once.Do(func() { close(w.quit) })
	<-w.stopped
}

// write returns when the write is on the disk or has failed. A caller who gives up while it waits takes it back; once it runs it is seen through.
func (w *writer) write(ctx context.Context, do func(context.Context, queryer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &writing{ctx: ctx, do: do, done: make(chan struct{})}
	select {
	case w.ask <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return problem.New(problem.Unavailable, codeUnavailable, "the database is closed").WithHint("start the server again")
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panic != nil {
		panic(j.panic)
	}
	return j.err
}

func (w *writer) run() {
	defer close(w.stopped)
	for {
		select {
		case j := <-w.ask:
			w.batch(j)
		case <-w.quit:
			return
		}
	}
}

// batch runs the write and those that wait behind it, and commits them all.
func (w *writer) batch(first *writing) {
	var batch []*writing
	// An interrupted statement would take the whole transaction back, so nobody's context ends it.
	ctx := context.Background()
	tx, err := w.db.BeginTx(ctx, nil)
	began := time.Now()
	if err != nil {
		// Those who wait behind it would each wait as long for the same answer.
		for j := first; j != nil; j = w.next(0, began) {
			j.err = err
			close(j.done)
		}
		return
	}
	for j := first; j != nil; j = w.next(len(batch), began) {
		if !j.taken.CompareAndSwap(false, true) {
			continue
		}
		batch = append(batch, j)
		if err = w.one(context.WithoutCancel(j.ctx), tx, j); err != nil {
			break
		}
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		_ = tx.Rollback()
	}
	for _, j := range batch {
		if j.err == nil {
			j.err = err
		}
		close(j.done)
	}
}

func (w *writer) next(have int, began time.Time) *writing {
	if have >= largestBatch || time.Since(began) > longestBatch {
		return nil
	}
	select {
	case j := <-w.ask:
		return j
	default:
		return nil
	}
}

// one runs a write behind a savepoint. Its error is one that ends the whole transaction.
func (w *writer) one(ctx context.Context, tx *sql.Tx, j *writing) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	func() {
		defer func() { j.panic = recover() }()
		j.err = j.do(ctx, tx)
	}()
	if j.err != nil || j.panic != nil {
		// SQLite takes the whole transaction back by itself on a full disk and the like; then there is no savepoint any more.
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
			if j.err != nil {
				return j.err
			}
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE one")
	return err
}
