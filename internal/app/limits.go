package app

import (
	"time"

	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/httpd"
	"cove/internal/hub"
)

// hubLimits are the settings' bounds of what users hold and use up. 0 is no limit here and there.
func hubLimits(c config.Config) hub.Limits {
	l := hub.DefaultLimits()
	l.Sessions, l.Memory, l.Executions, l.Queue = c.MaxSessions, mostMemory(c), c.MaxExecutions, c.MaxQueue
	l.Project = cli.ProjectQuota(c)
	l.Key = hub.Quota{Sessions: c.KeySessions, Executions: c.KeyExecutions, CPUSeconds: c.KeyCPU, Tokens: c.KeyTokens}
	l.Idle, l.Life, l.Execution = time.Duration(c.SessionIdle), time.Duration(c.SessionLife), time.Duration(c.Timeout)
	l.Output, l.File = int64(c.ServerOutput), int64(c.MaxUpload)
	return l
}

// mostMemory is what a session may ask for; never less than it gets without asking.
func mostMemory(c config.Config) int64 {
	if c.MaxMemory == 0 {
		return 0
	}
	return int64(max(c.MaxMemory, c.Memory))
}

// frontLimits are the settings' bounds of what requests may take.
func frontLimits(c config.Config) httpd.Limits {
	l := httpd.DefaultLimits().AtOnce(c.RequestsAtOnce)
	l.KeyRate, l.ProjectRate = c.RequestsPerSecond, c.ProjectRequests
	l.Upload, l.Memory, l.Grace = int64(c.MaxUpload)+1<<20, requestMemory(), time.Duration(c.DrainTimeout)+tellEnd
	return l
}
