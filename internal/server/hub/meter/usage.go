package meter

import (
	"context"
	"fmt"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Answers returns how the project's turns went on the days from first to last (2026-11-21), by model. Without last it is today, without first 30 days up to last. Needs auth.UsageRead;
// with all, which is of all projects, auth.ServerManage.
func (m *Meter) Answers(ctx context.Context, who auth.Principal, all bool, first, last string) ([]record.AnswerDay, error) {
	need, project := auth.UsageRead, who.Project
	if all {
		need, project = auth.ServerManage, ""
	}
	if err := who.Require(need); err != nil {
		return nil, err
	}
	first, last, err := m.checkDays(first, last)
	if err != nil {
		return nil, err
	}
	days, err := m.work.Store.Answers(ctx, project, first, last)
	for n := range days {
		days[n] = days[n].Timed()
	}
	return days, err
}

// Bounds of what a caller may ask about usage.
const (
	longestUsage     = 400 // days
	mostProjectsUsed = 1000
)

// Usage returns what was used on the days from first to last (2026-11-21), by the project or by one of its keys. Without last it is today, without
// first 30 days up to last. Needs auth.UsageRead.
func (m *Meter) Usage(ctx context.Context, who auth.Principal, key, first, last string) ([]record.Usage, error) {
	if err := who.Require(auth.UsageRead); err != nil {
		return nil, err
	}
	first, last, err := m.checkDays(first, last)
	if err != nil {
		return nil, err
	}
	return m.work.Store.Usage(ctx, who.Project, key, first, last)
}

// UsageOfAll returns what all projects have used together in the same days. Needs auth.ServerManage.
func (m *Meter) UsageOfAll(ctx context.Context, who auth.Principal, first, last string) ([]record.Usage, error) {
	if err := who.Require(auth.ServerManage); err != nil {
		return nil, err
	}
	first, last, err := m.checkDays(first, last)
	if err != nil {
		return nil, err
	}
	return m.work.Store.UsageOfAll(ctx, first, last)
}

// UsageByProject returns what each project has used in the same days together, those with the most processor time first, 1,000 at most. Needs auth.ServerManage.
func (m *Meter) UsageByProject(ctx context.Context, who auth.Principal, first, last string) ([]record.ProjectUsage, error) {
	if err := who.Require(auth.ServerManage); err != nil {
		return nil, err
	}
	first, last, err := m.checkDays(first, last)
	if err != nil {
		return nil, err
	}
	return m.work.Store.UsageByProject(ctx, first, last, mostProjectsUsed)
}

// checkDays checks two days (UTC), of which the second is today and the first 29 days before it when they are left out.
func (m *Meter) checkDays(first, last string) (from, to string, err error) {
	until, since := m.work.Now().UTC(), time.Time{}
	if last != "" {
		until, err = time.Parse(time.DateOnly, last)
	}
	since = until.AddDate(0, 0, -29)
	if first != "" && err == nil {
		since, err = time.Parse(time.DateOnly, first)
	}
	if err != nil || until.Sub(since) > longestUsage*24*time.Hour {
		return "", "", problem.New(problem.InvalidDay, fmt.Sprintf("ask for at most %d days, written like 2026-11-21", longestUsage))
	}
	return since.Format(time.DateOnly), until.Format(time.DateOnly), nil
}
