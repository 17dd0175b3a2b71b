package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/config"
	"cove/internal/machine/image"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/debs"
	"cove/internal/sessions/ondisk"
)

// outlook says what becomes of the sessions on this machine's disk with this cove: those of the command line, and the server's. It changes nothing, so that it
// can be asked before an upgrade too.
func outlook(ctx context.Context, c config.Config) (local, server ondisk.Survey, err error) {
	judge, err := newJudge(c)
	if err != nil {
		return local, server, err
	}
	if local, err = (ondisk.Store{Dir: c.Folders.Sessions}).Survey(ctx, judge); err != nil {
		return local, server, err
	}
	server, err = serverSessions(c).Survey(ctx, judge)
	return local, server, err
}

// newJudge returns what says whether a session can go on: as ondisk.Store.Open will find, without preparing anything.
func newJudge(c config.Config) (func(ondisk.Base, snapshot.Manifest) ondisk.Outlook, error) {
	engine, err := newEngine(c)
	if err != nil {
		return nil, err
	}
	saver, ok := engine.(sandbox.Saver)
	if !ok { // what another engine has saved waits for that engine
		return func(ondisk.Base, snapshot.Manifest) ondisk.Outlook { return ondisk.Unreadable }, nil
	}
	own, err := saver.Fingerprint()
	if err != nil {
		return nil, err
	}
	there := map[string]bool{} // environments
	return func(b ondisk.Base, head snapshot.Manifest) ondisk.Outlook {
		key := head.Key
		base, digest := image.CutKey(key.Environment)
		base, layer := debs.CutKey(base)
		if _, known := there[key.Environment]; !known {
			_, err := os.Stat(filepath.Join(c.Folders.Data, "pyenv", filepath.Base(base), "environment.json"))
			if digest != "" && err == nil {
				_, err = images(c).Open(digest)
			}
			if layer != "" && err == nil {
				_, err = systemPackages(c).Open(layer)
			}
			there[key.Environment] = err == nil
		}
		want := snapshot.Key{Engine: own, Environment: b.Environment, Limits: b.Limits.Limits, Layers: digest == "" || key.Layers} // an image's own Python has none
		if accepts(key.Guest) {
			want.Guest = key.Guest
		}
		path, _ := keptCove(c, key)
		switch {
		case !there[key.Environment]:
			return ondisk.Unreadable
		case (&snapshot.Snapshot{Manifest: head}).Fits(want) == nil:
			return ondisk.GoesOn
		case path != "" || sandbox.ReleaseOf(key.Engine) == sandbox.ReleaseOf(own):
			return ondisk.CarriedOver
		}
		return ondisk.Unreadable
	}, nil
}

// survey says what becomes of the server's sessions, in the log too where it is not what they are used to.
func (s *server) survey(ctx context.Context) error {
	judge, err := newJudge(s.cfg)
	if err != nil {
		return err
	}
	found, err := serverSessions(s.cfg).Survey(ctx, judge)
	if err != nil {
		return err
	}
	s.about.Sessions = found
	s.seen.Gauge("cove_sessions_unfit", "Sessions on the disk that cannot go on as they were, by what becomes of them. As of the server's start.", func() float64 { return float64(found.CarriedOver) }, "outlook", "carried_over")
	s.seen.Gauge("cove_sessions_unfit", "Sessions on the disk that cannot go on as they were, by what becomes of them. As of the server's start.", func() float64 { return float64(found.Unreadable + found.Broken) }, "outlook", "lost")
	level := slog.LevelInfo
	if found.CarriedOver+found.Unreadable+found.Broken > 0 {
		level = slog.LevelWarn
	}
	s.log.LogAttrs(ctx, level, "sessions on the disk", slog.Int("sessions", found.Sessions), slog.Int("go_on", found.GoOn), slog.Int("new", found.New),
		slog.Int("carried_over", found.CarriedOver), slog.Int("unreadable", found.Unreadable), slog.Int("broken", found.Broken),
		slog.String("saved_by", strings.Join(found.MakersSorted(), ", ")), slog.Int("ways_back", found.WaysBack), slog.Int64("ways_back_bytes", found.WaysBackSize))
	return nil
}
