package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"sync/atomic"
	"time"

	"cove/internal/core/problem"
)

const (
	// largestBatch and longestBatch bound how many writes share a transaction, and for how long it takes more.
	largestBatch = 256
	longestBatch = 20 * time.Millisecond
)

// writer is the one that writes to an SQLite database. What costs is not a write but having the disk confirm it, so the writes that wait
// while it does become one transaction, each after a savepoint of its own: one that fails takes no other with it.
type writer struct {
	db      *sql.DB
	conn    *prepared // nil until the first write; its goroutine's alone
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
		return problem.New(problem.DatabaseUnavailable, "the database is closed").WithHint("start the server again")
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
	defer w.disconnect()
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
	began := time.Now()
	db, err := w.connect(ctx)
	if err == nil {
		err = db.run(ctx, "BEGIN IMMEDIATE") // one that began to read first could not wait for the lock
	}
	if err != nil {
		w.disconnect()
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
		if err = w.one(context.WithoutCancel(j.ctx), db, j); err != nil {
			break
		}
	}
	if err == nil {
		err = db.run(ctx, "COMMIT")
	}
	if err != nil {
		_ = db.run(ctx, "ROLLBACK") // there is none to take back where SQLite did so itself
	}
	for _, j := range batch {
		if j.err == nil {
			j.err = err
		}
		close(j.done)
	}
}

// connect returns the connection that writes.
func (w *writer) connect(ctx context.Context) (*prepared, error) {
	if w.conn == nil {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		w.conn = &prepared{Conn: conn, ready: map[string]*sql.Stmt{}}
	}
	return w.conn, nil
}

// disconnect gives the connection up, whatever is wrong with it.
func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	w.conn.forget()
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // or it would be used again
	_ = w.conn.Close()
	w.conn = nil
}

// prepared is a connection that remembers what it was asked to do: SQLite needs about as long to read a short statement as to carry it out, and there
// are few of them.
type prepared struct {
	*sql.Conn
	ready map[string]*sql.Stmt
}

// mostPrepared bounds how many statements are remembered. Those that write many rows have as many texts as there are numbers of rows.
const mostPrepared = 200

// ExecContext implements queryer.
func (p *prepared) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if len(text) > longestPrepared {
		return p.Conn.ExecContext(ctx, text, args...)
	}
	s, err := p.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// QueryRowContext implements queryer.
func (p *prepared) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if len(text) <= longestPrepared {
		if s, err := p.statement(ctx, text); err == nil {
			return s.QueryRowContext(ctx, args...)
		}
	}
	return p.Conn.QueryRowContext(ctx, text, args...)
}

// statement returns one that is remembered from now on.
func (p *prepared) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := p.ready[text]; s != nil {
		return s, nil
	}
	if len(p.ready) >= mostPrepared {
		p.forget()
	}
	s, err := p.PrepareContext(ctx, text)
	if err == nil {
		p.ready[text] = s
	}
	return s, err
}

// longestPrepared is a text that is worth remembering.
const longestPrepared = 2_000

func (p *prepared) run(ctx context.Context, text string) error {
	_, err := p.ExecContext(ctx, text)
	return err
}

func (p *prepared) forget() {
	for _, s := range p.ready {
		_ = s.Close()
	}
	clear(p.ready)
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

// one runs a write after a savepoint. Its error is one that ends the whole transaction.
func (w *writer) one(ctx context.Context, db *prepared, j *writing) error {
	if err := db.run(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	func() {
		defer func() { j.panic = recover() }()
		j.err = j.do(ctx, db)
	}()
	if j.err != nil || j.panic != nil {
		// SQLite takes the whole transaction back by itself on a full disk and the like; then there is no savepoint any more.
		if err := db.run(ctx, "ROLLBACK TO one"); err != nil {
			return cmp.Or(j.err, err)
		}
	}
	return db.run(ctx, "RELEASE one")
}
