package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

type (
	// Usage is what was used in one day.
	Usage = hub.Usage
	// ProjectUsage is what a project has used in some days.
	ProjectUsage struct {
		Project      string  `json:"project"`
		Executions   int64   `json:"executions"`
		WallSeconds  float64 `json:"wall_seconds"`
		CPUSeconds   float64 `json:"cpu_seconds"`
		Turns        int64   `json:"turns"`
		InputTokens  int64   `json:"input_tokens"`
		OutputTokens int64   `json:"output_tokens"`
		Cost         float64 `json:"cost,omitempty" doc:"Of the tokens, by the prices of the time; models without prices are not in it"`
		Currency     string  `json:"currency,omitempty" doc:"Of the cost"`
		UploadBytes  int64   `json:"upload_bytes"`
	}
	// AnswerDay is how the answers of one model went in one day.
	AnswerDay = hub.AnswerDay
	// AuditRow is a row of the audit log.
	AuditRow = audit.Row

	// DaysQuery says which days are asked for.
	DaysQuery struct {
		From string `query:"from" format:"date" doc:"2026-11-21; seven days ago when left out" example:"2026-11-21"`
		To   string `query:"to" format:"date" doc:"Today when left out" example:"2026-11-21"`
	}
	// ProjectQuery says which project is asked about; "": the caller's.
	ProjectQuery struct {
		Project string `query:"project" maxLength:"200" doc:"Id or name of another project, which needs server:manage"`
	}
	usageQuery struct {
		DaysQuery
		ProjectQuery
		Key string `query:"key" maxLength:"64" doc:"Only of this key"`
		All bool   `query:"all" doc:"Of all projects together, which needs server:manage"`
	}
	answersQuery struct {
		DaysQuery
		ProjectQuery
		All bool `query:"all" doc:"Of all projects together, which needs server:manage"`
	}
	auditQuery struct {
		ProjectQuery
		After   string    `query:"after" maxLength:"64" doc:"The next of the page before"`
		Limit   int       `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		All     bool      `query:"all" doc:"Of all projects, which needs server:manage"`
		User    string    `query:"user" maxLength:"64" doc:"Only of this user, by id"`
		Key     string    `query:"key" maxLength:"64" doc:"Only of this key, by id"`
		Action  string    `query:"action" maxLength:"64" doc:"Only this action, or all that begin so: session.create, or session" example:"session"`
		Target  string    `query:"target" maxLength:"200" doc:"Only on this, by id"`
		Outcome string    `query:"outcome" maxLength:"64" doc:"ok, refused for all that is not ok, or the code of a problem"`
		From    time.Time `query:"from" doc:"Only from this time on"`
		To      time.Time `query:"to" doc:"Only before this time"`
	}
)

// addLedgers adds the operations for usage and for the audit log.
func (s *server) addLedgers() {
	add(s, operation{id: "usage.get", method: http.MethodGet, path: "/usage", tag: "usage", action: auth.UsageRead, summary: "See what was used, by day", about: "Days are UTC.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/usage?from=2026-11-01&to=2026-11-30"`}, s.usage)
	add(s, operation{id: "usage.projects", method: http.MethodGet, path: "/usage/projects", tag: "usage", action: auth.ServerManage, summary: "See what each project has used",
		about: "In some days together; those with the most processor time first, 1,000 at most.", example: `curl -H "Authorization: Bearer $KEY" "$COVE/usage/projects?from=2026-11-01&to=2026-11-30"`},
		func(ctx context.Context, who auth.Principal, in *DaysQuery) (List[ProjectUsage], error) {
			out, err := s.o.Hub.UsageByProject(ctx, who, s.firstDay(in.From), s.lastDay(in.To))
			return List[ProjectUsage]{Items: each(out, func(u hub.ProjectUsage) ProjectUsage {
				return ProjectUsage{Project: u.Project, Executions: u.Executions, WallSeconds: u.WallSeconds, CPUSeconds: u.CPUSeconds, Turns: u.Turns,
					InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost, Currency: u.Currency, UploadBytes: u.UploadBytes}
			})}, err
		})
	add(s, operation{id: "usage.models", method: http.MethodGet, path: "/usage/models", tag: "usage", action: auth.UsageRead, summary: "See how answers went, by day and model",
		about:   "Turns that ended, how many of them were completed, repaired and failed, what was installed, and how long they took: figures without content, which stay when conversations are deleted. The latest day first.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/usage/models?from=2026-11-01&to=2026-11-30"`},
		func(ctx context.Context, who auth.Principal, in *answersQuery) (List[hub.AnswerDay], error) {
			who, err := s.in(ctx, who, in.Project)
			if err != nil {
				return List[hub.AnswerDay]{}, err
			}
			out, err := s.o.Hub.Answers(ctx, who, in.All, s.firstDay(in.From), s.lastDay(in.To))
			return List[hub.AnswerDay]{Items: each(out, func(d hub.AnswerDay) hub.AnswerDay { return d })}, err
		})
	add(s, operation{id: "audit.list", method: http.MethodGet, path: "/audit", tag: "audit", action: auth.AuditRead, summary: "See who did what", about: "A row for every change that was requested, also for a refused one; the newest first.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/audit?limit=20&action=session&outcome=ok&from=2026-11-01T00:00:00Z"`},
		func(ctx context.Context, who auth.Principal, in *auditQuery) (List[audit.Row], error) {
			who, err := s.in(ctx, who, in.Project)
			if err != nil {
				return List[audit.Row]{}, err
			}
			rows, err := s.o.Accounts.Rows(ctx, who, in.All, audit.Query{User: in.User, Key: in.Key, Action: in.Action, Target: in.Target, Outcome: in.Outcome, From: in.From, To: in.To,
				Before: in.After, Limit: in.Limit})
			out := List[audit.Row]{Items: each(rows, func(r audit.Row) audit.Row { r.At = r.At.UTC(); return r })}
			if len(rows) == in.Limit && in.Limit > 0 {
				out.Next = rows[len(rows)-1].ID
			}
			return out, err
		})
}

// in is the caller in another project, by id or name, which only those see who may manage the server; "" is the caller's own.
func (s *server) in(ctx context.Context, who auth.Principal, project string) (auth.Principal, error) {
	if project == "" {
		return who, nil
	}
	p, err := s.o.Accounts.Project(ctx, who, project)
	who.Project = p.ID
	return who, err
}

func (s *server) firstDay(asked string) string {
	return cmp.Or(asked, s.o.Now().UTC().AddDate(0, 0, -6).Format(time.DateOnly))
}

func (s *server) lastDay(asked string) string {
	return cmp.Or(asked, s.o.Now().UTC().Format(time.DateOnly))
}

func (s *server) usage(ctx context.Context, who auth.Principal, in *usageQuery) (List[hub.Usage], error) {
	from, to := s.firstDay(in.From), s.lastDay(in.To)
	who, err := s.in(ctx, who, in.Project)
	if err != nil {
		return List[hub.Usage]{}, err
	}
	var out []hub.Usage
	if in.All {
		out, err = s.o.Hub.UsageOfAll(ctx, who, from, to)
	} else {
		out, err = s.o.Hub.Usage(ctx, who, in.Key, from, to)
	}
	return List[hub.Usage]{Items: each(out, func(u hub.Usage) hub.Usage { return u })}, err
}
