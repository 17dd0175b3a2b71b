package app

import (
	"context"
	"io"
	"path/filepath"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/seal"
	"cove/internal/server/hub"
	"cove/internal/server/store"
)

// ChosenModel is what a server with these settings asks when a client names a model.
func ChosenModel(ctx context.Context, c config.Config, name string) (string, error) {
	choice, err := (&models{cfg: c}).choose(ctx, name)
	return choice.String(), err
}

// Models are what a server with these settings lets clients ask.
func Models(c config.Config) hub.Models { return &models{cfg: c} }

// ModelsWith are what a server with these settings and connections lets clients ask.
func ModelsWith(c config.Config, connections hub.ConnectionStore) interface {
	hub.Models
	hub.Connector
} {
	return &models{cfg: c, store: connections}
}

// LockServer takes a server's folder until release is called.
func LockServer(dir, address string) (release func(), err error) {
	l, err := lockServer(dir)
	if err != nil {
		return nil, err
	}
	l.sign(address)
	return l.release, nil
}

// Served returns the address of the server that has the settings' folder.
func Served(c config.Config) string { return served(c) }

// Backup writes an archive of a database and the folder of contents.
func Backup(ctx context.Context, s *store.Store, blobs string, w io.Writer) error {
	return backup(ctx, s, foldersOf(filepath.Dir(blobs)), w)
}

// Restore reads an archive into a database and a server's folder.
func Restore(ctx context.Context, s *store.Store, folder string, r io.Reader) error {
	return restore(ctx, s, foldersOf(folder), r)
}

// RestoreWith is Restore with an encryption key.
func RestoreWith(ctx context.Context, s *store.Store, folder, key string, r io.Reader) error {
	c := foldersOf(folder)
	c.Encryption.Key = key
	return restore(ctx, s, c, r)
}

// Verify restores an archive for a try, with an encryption key or "".
func Verify(ctx context.Context, key string, r io.Reader) (cli.Verified, error) {
	var c config.Config
	c.Encryption.Key = key
	return verifyBackup(ctx, c, r)
}

// foldersOf are the settings of a server whose folder is that, which is all that it has.
func foldersOf(folder string) config.Config {
	return config.Config{Folders: config.Folders{Data: folder, Server: folder, Sessions: filepath.Join(folder, "sessions")}}
}

// ServerSecret reads a server's secret, or makes one.
func ServerSecret(path string) ([]byte, error) { return serverSecret(path) }

// SalvageWith has a program write the files of a snapshot to use.
func SalvageWith(ctx context.Context, program string, use func(io.Reader) error) error {
	return salvageWith(ctx, config.Config{}, program, cli.Salvage{}, use)
}

// CallersImages are the images that a server with these settings lets its callers begin from.
func CallersImages(c config.Config) (hub.Images, error) { return newCallersImages(c) }

// DiskSealer is what the files of a server with these settings are sealed with.
func DiskSealer(c config.Config) (*seal.Sealer, error) { return diskSealer(c) }
