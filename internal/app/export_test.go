package app

import (
	"context"

	"cove/internal/config"
	"cove/internal/hub"
)

// ChosenModel is what a server with these settings asks when a client names a model.
func ChosenModel(ctx context.Context, c config.Config, name string) (string, error) {
	choice, err := (&models{cfg: c}).choose(ctx, name)
	return choice.String(), err
}

// Models are what a server with these settings lets clients ask.
func Models(c config.Config) hub.Models { return &models{cfg: c} }

// LockServer takes a server's folder until release is called.
func LockServer(dir, address string) (release func(), err error) {
	l, err := lockServer(dir)
	if err != nil {
		return nil, err
	}
	l.sign(address)
	return l.release, nil
}
