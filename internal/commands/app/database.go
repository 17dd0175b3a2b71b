package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/memory"
	"cove/internal/core/seal"
	"cove/internal/http/api"
	"cove/internal/http/compat/mcp"
	"cove/internal/machine/sandbox"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ownership"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
)

// openStore opens the database that the settings name, and makes an SQLite one that is missing.
func openStore(ctx context.Context, c config.Config, log *slog.Logger) (*store.Store, error) {
	if file := c.SQLite(); file != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, unwritableFolder(filepath.Dir(file), err)
		}
	}
	keys, err := seal.ParseKeys(c.Encryption.Key)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Options{Database: c.DatabaseAddress(), Log: log, Keys: keys})
}

// databaseName is the database without its password.
func databaseName(c config.Config) string {
	if file := c.SQLite(); file != "" {
		return "SQLite, " + file
	}
	u, err := url.Parse(c.Store.Database)
	if err != nil {
		return "PostgreSQL"
	}
	return "PostgreSQL, " + u.Host + u.Path
}

// databasePassword is what of the database's address must not be said, "" when there is none.
func databasePassword(c config.Config) string {
	u, err := url.Parse(c.Store.Database)
	if err != nil || c.SQLite() != "" {
		return ""
	}
	if password, ok := u.User.Password(); ok {
		return password
	}
	return u.Query().Get("password")
}

// openRecords opens the database for a command, with a hub on it. The local project and its owner are made with it.
func openRecords(version string) func(context.Context, config.Config, cli.RecordsOptions) (*cli.Records, error) {
	return func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
		if o.Sessions == nil {
			return recordsOf(ctx, c, o, nil)
		}
		own := &ownSessions{version: version, cfg: c, progress: o.Sessions}
		r, err := recordsOf(ctx, c, o, own)
		if err == nil {
			r.Ahead = own.ahead
			r.API = api.New(api.Options{Hub: r.Hub, Accounts: r.Accounts, Audit: r.Audit, Version: version, Log: o.Log, NoSharing: true})
			r.MCP = mcp.New(mcp.Options{Hub: r.Hub, Log: o.Log, Version: version, Timeout: time.Duration(c.Sandbox.Timeout), Idle: ownIdle, Home: own.home, Private: true})
		}
		return r, err
	}
}

func recordsOf(ctx context.Context, c config.Config, o cli.RecordsOptions, own *ownSessions) (_ *cli.Records, err error) {
	var s *store.Store
	if o.Scratch {
		s, err = store.Open(ctx, store.Options{Memory: true})
	} else {
		s, err = openStore(ctx, c, nil)
	}
	if err != nil {
		return nil, err
	}
	accounts := &auth.Accounts{Store: s, Audit: s}
	r := &cli.Records{Store: s, Accounts: accounts, Audit: s}
	r.Backup = func(ctx context.Context, w io.Writer) error {
		return backup(ctx, s, c, w)
	}
	r.Close = func() error {
		accounts.Wait()
		return s.Close()
	}
	err = accounts.FoundLocal(ctx)
	if err == nil && o.Command != "" {
		err = openLocalHub(ctx, c, s, r, o, own)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// openLocalHub makes the command's process an owner with a hub, until r is closed. Where nothing outlives the process, or it only reads and cannot become an
// owner (the disk is full, or nothing may be written there), the hub has no owner, and what dead owners left is not looked for.
func openLocalHub(ctx context.Context, c config.Config, s *store.Store, r *cli.Records, o cli.RecordsOptions, own *ownSessions) (err error) {
	var me *ownership.Owner
	if !o.Scratch {
		me, err = ownership.Register(ctx, ownership.Options{Store: s, Folder: filepath.Join(c.Folders.Sessions, homeFolder), Command: o.Command, Log: o.Log})
	}
	if err != nil && !o.Reads {
		return err
	}
	if me == nil {
		r.Hub, err = localHub(c, s, nil, o, own)
		return err
	}
	r.Lost = me.Lost()
	closed := r.Close
	r.Close = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		return errors.Join(me.Release(ctx), closed())
	}
	if r.Hub, err = localHub(c, s.By(me.ID, me.Fenced), me, o, own); err != nil {
		return err
	}
	return r.Hub.Recover(ctx)
}

// homeFolder is beside the sessions with a name, and cannot be one.
const homeFolder = ".home"

// What the hub of a command keeps of one execution or turn, and takes as its code.
const (
	localStream = 16 << 20
	localCode   = 16 << 20
)

// localHub is the hub of a command's process. Its sessions are those that the command brings, whose limits are their own,
// and whose records stay as long as the sessions: until they are removed. With own it makes others for its clients, in the same folder.
func localHub(c config.Config, s *store.Store, me *ownership.Owner, o cli.RecordsOptions, own *ownSessions) (*hub.Hub, error) {
	l := hub.DefaultLimits()
	l.Life, l.Idle, l.Execution, l.Output, l.Code, l.Stream = 0, 0, time.Duration(c.Sandbox.Timeout), int64(c.Sandbox.MaxOutput), localCode, localStream
	all := hub.Options{
		Store: s, Owner: me, Command: o.Command, Sessions: ondisk.Store{Dir: c.Folders.Sessions}, Private: true, Models: o.Models, ToolServers: o.Tools, About: aboutModels(c), Log: o.Log, Limits: l, Turns: cli.TurnLimits(c),
		Base: ondisk.Base{Engine: c.Sandbox.Engine, Packages: c.Packages.Set, Limits: ondisk.LimitsOf(sandbox.Limits{Memory: int64(c.Sandbox.Memory), CPUs: c.Sandbox.CPUs})},
		Room: func() (memory.Room, error) { return memory.Room{Total: 1 << 62, Available: 1 << 62}, nil }, // one session, whose limit the user chose
	}
	all.Instructions = (&auth.Accounts{Store: s}).InstructionsOf
	if own != nil {
		own.base = all.Base
		if me != nil {
			own.home = me.Home
		}
		all.Prepare, all.Unsaved, all.SessionMemory, all.Room, all.Limits.SaveAfter = own.prepare, !c.Saves(), sessionMemory(c), machine().Look, ownSaved
	}
	return hub.New(all)
}

// restoreRecords reads a backup into the database and the folder that the settings name, which must have nothing in them.
func restoreRecords(ctx context.Context, c config.Config, r io.Reader) error {
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return err
	}
	return errors.Join(restore(ctx, s, c, r), s.Close())
}
