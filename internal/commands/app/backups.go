package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/archive"
)

// backupRetry is the longest wait before a backup that failed is made again, and before it is looked again for what others have done to the place.
const backupRetry = time.Hour

// backups makes the backups of a server, and removes its old ones. Each server backs up for itself: stored files are on the disk of the server that took them.
type backups struct {
	place  archive.Place
	mark   archive.Mark // of this server's archives, among those of others in the same place
	every  time.Duration
	keep   int // 0: all
	write  func(context.Context, io.Writer) error
	verify func(context.Context, io.Reader) error // nil: archives are not read back
	newest atomic.Int64                           // when the newest good one was begun, in seconds since 1970; 0: there is none
}

// openBackups says at once what is wrong with the settings; whether the place can be used is found out by the first backup, because a server is to work without.
func (s *server) openBackups(context.Context, cli.ServerOptions) error {
	made := &backups{mark: archive.MarkOf(s.owner.Home), keep: s.cfg.Backup.Keep}
	s.seen.Gauge("cove_backup_timestamp_seconds", "When the newest backup of this server was begun, since 1970. 0: there is none.", func() float64 { return float64(made.newest.Load()) })
	s.seen.Gauge("cove_backup_interval_seconds", "How often this server is to make a backup. 0: never.", func() float64 { return made.every.Seconds() })
	if s.cfg.Backup.To == "" {
		return nil
	}
	place, name, err := archive.At(s.cfg.Backup.To, s.cfg.Backup, os.Getenv)
	if err == nil && name != "" {
		err = problem.New(problem.ConfigInvalid, "backup.to names an archive").WithHint("give a folder, or s3://BUCKET/PREFIX")
	}
	if err != nil {
		return err
	}
	made.place, made.every = place, time.Duration(s.cfg.Backup.Every)
	made.write = func(ctx context.Context, w io.Writer) error { return backup(ctx, s.store, s.cfg, w) }
	if s.cfg.Backup.Verify {
		made.verify = s.tryBackup
	}
	s.backups = made
	return nil
}

// tryBackup restores an archive into a folder of the server's, which also goes when the next one is tried after a kill.
func (s *server) tryBackup(ctx context.Context, r io.Reader) error {
	dir := filepath.Join(s.cfg.Folders.Server, "verifying")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return unwritableFolder(dir, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	found, err := verify(ctx, s.cfg, dir, r)
	if err == nil && found.Elsewhere > 0 {
		s.log.Warn("the backup names files that are not in it: they are on the disks of other servers, or were deleted while it was made", "files", found.Elsewhere)
	}
	return err
}

// keepBackups makes each backup when it is due, until ctx ends.
func (s *server) keepBackups(ctx context.Context) {
	b := s.backups
	if b == nil {
		return
	}
	for {
		wait, err := b.due(ctx)
		if err == nil && wait <= 0 {
			wait = 0
			err = s.makeBackup(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.seen.Count(telemetry.Backups, 1, "failed")
			wait = min(b.every, backupRetry)
			s.log.Error("no backup was made", "to", b.place.Path(""), "again_in", wait, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(wait, backupRetry)):
		}
	}
}

// due returns how long it is until the next backup, by what is in the place.
func (b *backups) due(ctx context.Context) (time.Duration, error) {
	own, err := b.own(ctx)
	if err != nil || len(own) == 0 {
		return 0, err
	}
	begun := archive.Begun(own[0])
	b.newest.Store(begun.Unix())
	return time.Until(begun.Add(b.every)), nil
}

// own returns the names of this server's archives, the newest first.
func (b *backups) own(ctx context.Context) (names []string, err error) {
	all, err := b.place.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if b.mark.Own(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// makeBackup makes one, tries it, and removes those that are too many. What cannot be removed takes room and is no reason to have no backup.
func (s *server) makeBackup(ctx context.Context) error {
	b, begun := s.backups, time.Now()
	s.unremoved(ctx, b.place.Sweep(ctx, b.mark.Own))
	name := b.mark.Name(begun)
	size, err := b.place.Write(ctx, name, func(w io.Writer) error { return b.write(ctx, w) })
	if err != nil {
		return err
	}
	if err := b.try(ctx, name); err != nil {
		if ctx.Err() != nil {
			return err // it is tried no more, which says nothing of it
		}
		return errors.Join(err, b.place.Remove(ctx, name))
	}
	b.newest.Store(begun.Unix())
	s.seen.Count(telemetry.Backups, 1, "ok")
	s.log.Info("a backup was made", "archive", b.place.Path(name), "bytes", size, "restored_for_a_try", b.verify != nil, "seconds", time.Since(begun).Seconds())
	s.unremoved(ctx, b.prune(ctx))
	return nil
}

func (s *server) unremoved(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Warn("what is left of old backups could not be removed", "from", s.backups.place.Path(""), "error", err)
	}
}

// try reads an archive back.
func (b *backups) try(ctx context.Context, name string) error {
	if b.verify == nil {
		return nil
	}
	r, err := b.place.Read(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(b.verify(ctx, r), r.Close())
}

// prune removes this server's oldest archives, when there are newer ones enough.
func (b *backups) prune(ctx context.Context) error {
	own, err := b.own(ctx)
	if err != nil || b.keep == 0 || len(own) <= b.keep {
		return err
	}
	for _, name := range own[b.keep:] {
		if err := b.place.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
