package hub

import (
	"context"

	"cove/internal/server/auth"
)

// Answers returns how the project's turns went on the days from first to last (2026-11-21), by model. Without last it is today, without first 30 days up to last. Needs auth.UsageRead;
// with all, which is of all projects, auth.ServerManage.
func (h *Hub) Answers(ctx context.Context, who auth.Principal, all bool, first, last string) ([]AnswerDay, error) {
	need, project := auth.UsageRead, who.Project
	if all {
		need, project = auth.ServerManage, ""
	}
	if err := who.Require(need); err != nil {
		return nil, err
	}
	first, last, err := h.days(first, last)
	if err != nil {
		return nil, err
	}
	days, err := h.work.Store.Answers(ctx, project, first, last)
	for n := range days {
		days[n] = days[n].Timed()
	}
	return days, err
}
