package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"cove/internal/machine/keeper"
)

// launchKeeper starts this program with args in the background and waits until it keeps a session in memory.
func launchKeeper(ctx context.Context, args []string, log string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find cove's own file: %w", err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = os.Environ()
	// It works in another folder.
	if file := os.Getenv("COVE_CONFIG"); file != "" && !filepath.IsAbs(file) {
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		cmd.Env = append(cmd.Env, "COVE_CONFIG="+file)
	}
	return keeper.Launch(ctx, cmd, log)
}
