package app

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"cove/internal/core/config"
	"cove/internal/core/telemetry"
	"cove/internal/llm/toolserver"
)

// newToolServers returns the tool servers of the settings, of which none is started yet. There may be none.
func newToolServers(c config.Config, log *slog.Logger, seen *telemetry.Telemetry, version string) (*toolserver.Servers, error) {
	path, required := c.ToolsFile()
	var all []toolserver.Config
	if _, err := os.Stat(path); required || !errors.Is(err, fs.ErrNotExist) {
		if all, err = toolserver.Read(path, os.Getenv); err != nil {
			return nil, err
		}
	}
	return toolserver.New(toolserver.Options{Servers: all, Getenv: os.Getenv, Log: log, Telemetry: seen, Version: version}), nil
}
