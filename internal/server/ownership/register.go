package ownership

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cove/internal/core/ident"
)

// Options say who registers.
type Options struct {
	Store Store
	// Folder is the home's: the one below which the sessions of all its owners are.
	Folder string
	// Alone is for a process that holds a lock which keeps every other such process away from the folder: its predecessors in the home are dead.
	Alone   bool
	Command string       // for messages: "cove serve"
	Log     *slog.Logger // nil: none
}

// Owner is this process as an owner. It renews its lease in the background until Release.
type Owner struct {
	Record
	folder string
	store  Store
	log    *slog.Logger
	lock   *lock
	alone  bool

	stop context.CancelFunc
	done chan struct{}
	lost chan struct{}
	once sync.Once
	seen watch // the renewing goroutine's alone
}

// Register makes this process an owner, in one transaction. Owners of the same home that are proved to be dead are removed with it; what they left
// unfinished is for the caller's hub to end (hub.Recover). Problems: data_folder_unusable, and those of the store.
func Register(ctx context.Context, o Options) (*Owner, error) {
	home, err := HomeOf(o.Folder)
	if err != nil {
		return nil, err
	}
	own := &Owner{
		Record: Record{ID: ident.New(ident.Owner), Home: home, About: self(o.Command)},
		folder: o.Folder, store: o.Store, log: o.Log, alone: o.Alone, done: make(chan struct{}), lost: make(chan struct{}),
	}
	if own.log == nil {
		own.log = slog.New(slog.DiscardHandler)
	}
	others, err := o.Store.Owners(ctx)
	if err != nil {
		return nil, err
	}
	dead, recorded := own.proved(others)
	if own.lock, err = newLock(o.Folder, own.ID); err != nil {
		return nil, err
	}
	if own.Record, err = o.Store.AddOwner(ctx, own.Record, o.Alone, dead); err != nil {
		own.lock.release()
		return nil, err
	}
	recorded[own.ID] = true
	clean(o.Folder, recorded)
	own.seen = watch{}.saw(own.Since)
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	own.stop = stop
	go own.keep(keeping)
	return own, nil
}

// proved returns the owners of this home that this machine proves to be dead, and the others.
func (o *Owner) proved(others []Record) (dead []string, living map[string]bool) {
	living = map[string]bool{}
	for _, r := range others {
		if r.ID != o.ID && r.Home == o.Home && gone(o.folder, r, o.About) {
			dead = append(dead, r.ID)
			continue
		}
		living[r.ID] = true
	}
	return dead, living
}

// Alone says that no other process is alone in this home meanwhile: what of the home's disk belongs to no living owner is this one's to see to.
func (o *Owner) Alone() bool { return o.alone }

// Lost is closed when others have taken this process for dead. The database takes nothing more from it; it has to end.
func (o *Owner) Lost() <-chan struct{} { return o.lost }

// Fenced notes that the database took something no more because this owner is dead.
func (o *Owner) Fenced() { o.once.Do(func() { close(o.lost) }) }

// keep renews the lease and looks for dead others until ctx ends.
func (o *Owner) keep(ctx context.Context) {
	defer close(o.done)
	timer := time.NewTimer(Round)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		next := Round
		if err := o.round(ctx); IsLost(err) {
			o.log.ErrorContext(ctx, "others took this process for dead", "owner", o.ID, "error", err)
			o.Fenced()
			return
		} else if err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "the lease of this process was not renewed", "owner", o.ID, "error", err)
			next = retry
		}
		timer.Reset(next)
	}
}

// round renews the lease, and removes others that are dead.
func (o *Owner) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Round)
	defer cancel()
	now, err := o.store.RenewOwner(ctx, o.ID)
	if err != nil {
		return err
	}
	o.seen = o.seen.saw(now)
	others, err := o.store.Owners(ctx)
	if err != nil {
		return err
	}
	var dead []Record
	for _, r := range others {
		if r.ID != o.ID && (o.seen.dead(r) || r.Home == o.Home && gone(o.folder, r, o.About)) {
			dead = append(dead, r)
		}
	}
	if len(dead) == 0 {
		return nil
	}
	n, err := o.store.RemoveOwners(ctx, o.ID, dead)
	if n > 0 {
		o.log.WarnContext(ctx, "other processes were found dead", "owners", n)
	}
	return err
}

// Release is the end of an owner that has ended all that it began. What it left all the same is others' to end.
func (o *Owner) Release(ctx context.Context) error {
	o.stop()
	<-o.done
	err := o.store.RemoveOwner(ctx, o.ID)
	if err == nil {
		o.lock.release()
	}
	return err
}
