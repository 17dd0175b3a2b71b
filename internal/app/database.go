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

	"cove/internal/auth"
	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/problem"
	"cove/internal/store"
)

// openStore opens the database that the settings name, and makes an SQLite one that is missing.
func openStore(ctx context.Context, c config.Config, log *slog.Logger) (*store.Store, error) {
	if file := c.SQLite(); file != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, unwritableFolder(filepath.Dir(file), err)
		}
	}
	return store.Open(ctx, store.Options{Database: c.DatabaseAddress(), Log: log})
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

// openRecords opens the database for a command. The local project and its owner are made with it.
func openRecords(ctx context.Context, c config.Config) (*cli.Records, error) {
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	if err := foundLocal(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	accounts := &auth.Accounts{Store: s, Audit: s}
	blobs := filepath.Join(c.Folders.Server, "files")
	return &cli.Records{
		Store: s, Accounts: accounts, Audit: s,
		Backup: func(ctx context.Context, w io.Writer) error { return backup(ctx, s, blobs, w) },
		Close: func() error {
			accounts.Wait()
			return s.Close()
		},
	}, nil
}

// restoreRecords reads a backup into the database and the folder that the settings name, which must have nothing in them.
func restoreRecords(ctx context.Context, c config.Config, r io.Reader) error {
	s, err := openStore(ctx, c, nil)
	if err != nil {
		return err
	}
	return errors.Join(restore(ctx, s, c.Folders.Server, r), s.Close())
}

// foundLocal makes the user and the project of this machine in a new database, and no key: nobody would see it.
func foundLocal(ctx context.Context, s auth.Store) error {
	who, now := auth.Local(), time.Now().UTC()
	if role, err := s.Role(ctx, who.Project, who.User); err != nil || role == auth.Owner {
		return err
	}
	if _, err := s.User(ctx, who.User); problem.Is(err, problem.NotFound) {
		err = s.AddUser(ctx, auth.User{ID: who.User, Name: "local", Admin: true, Created: now})
		if err != nil && problem.Of(err).Code != "user_exists" {
			return err
		}
	}
	if _, err := s.Project(ctx, who.Project); problem.Is(err, problem.NotFound) {
		err = s.AddProject(ctx, auth.Project{ID: who.Project, Name: "local", Created: now})
		if err != nil && problem.Of(err).Code != "project_exists" {
			return err
		}
	}
	return s.SetMember(ctx, auth.Membership{Project: who.Project, User: who.User, Role: auth.Owner})
}
