package app

import (
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/http/api"
	"cove/internal/http/front"
	"cove/internal/server/hub"
)

// hubLimits are the settings' bounds of what users hold and use up. 0 is no limit here and there.
func hubLimits(c config.Config) hub.Limits {
	l := hub.DefaultLimits()
	l.Sessions, l.Memory, l.Executions, l.Queue = c.Limits.Sessions, mostMemory(c), c.Limits.Executions, c.Limits.Queue
	l.Project = cli.ProjectQuota(c)
	l.Key = hub.Quota{Sessions: c.Quota.Key.Sessions, Executions: c.Quota.Key.Executions, CPUSeconds: c.Quota.Key.CPUSeconds, Tokens: c.Quota.Key.Tokens}
	l.Idle, l.Life, l.Execution = time.Duration(c.Session.Idle), time.Duration(c.Session.Life), time.Duration(c.Sandbox.Timeout)
	l.Output, l.File = int64(c.Limits.Output), int64(c.Limits.Upload)
	l.Volume = int64(c.Limits.Volume)
	l.Fetches, l.Fetch = c.Images.Fetches, time.Duration(c.Images.Timeout)
	l.Approval = time.Duration(c.Turn.ApprovalWait)
	l.Results = time.Duration(c.Turn.ResultsWait)
	l.Points, l.PointRoom = c.Session.Points, int64(c.Session.PointsDisk)
	return l
}

// standardQuota is what a project may use that has no quota of its own, as the API tells it.
func standardQuota(c config.Config) api.Quota {
	q := cli.ProjectQuota(c)
	return api.Quota{Sessions: q.Sessions, Executions: q.Executions, CPUSeconds: q.CPUSeconds, Disk: q.Disk, Tokens: q.Tokens}
}

// mostMemory is what a session may ask for; never less than it gets without asking.
func mostMemory(c config.Config) int64 {
	if c.Limits.SessionMemory == 0 {
		return 0
	}
	return int64(max(c.Limits.SessionMemory, c.Sandbox.Memory))
}

// programTime is how long a program of Dify's may run; 0: as long as Dify waits for it.
func programTime(c config.Config) time.Duration {
	if limit := time.Duration(c.Sandbox.Timeout); limit < 45*time.Second {
		return limit
	}
	return 0
}

// frontLimits are the settings' bounds of what requests may take.
func frontLimits(c config.Config) front.Limits {
	l := front.DefaultLimits().AtOnce(c.Limits.RequestsAtOnce)
	l.KeyRate, l.ProjectRate = c.Limits.RequestsPerSecond, c.Limits.ProjectRequestsPerSecond
	l.Upload, l.Memory, l.Grace = int64(c.Limits.Upload)+1<<20, requestMemory(), time.Duration(c.Serve.DrainTimeout)+tellEnd
	return l
}

// systemOf is how much root of a session may change in each part of its system; 0: no session has a root.
func systemOf(c config.Config) int64 {
	if !c.Sandbox.Root {
		return 0
	}
	return int64(c.Sandbox.System)
}
