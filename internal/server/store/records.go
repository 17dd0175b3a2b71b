package store

import (
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// The columns of every record, in the order in which they are written. The types are in columns.go.

func sessionFields(s *hub.Session) []field {
	return []field{
		{"id", textOf(&s.ID)}, {"project", textOf(&s.Project)}, {"user_id", textOf(&s.User)}, {"key_id", textOf(&s.Key)},
		content(field{"name", textOf(&s.Name)}), clue(field{"name_key", derived{func() any { return nameKey(s.Name) }}}), content(field{"metadata", documentOf(&s.Metadata)}),
		{"state", textOf(&s.State)}, {"gone", derived{func() any { return bit(s.State == hub.SessionDeleted) }}}, content(field{"reason", textOf(&s.Reason)}),
		{"created", moment{&s.Created}}, {"used", moment{&s.Used}}, {"expires", moment{&s.Expires}}, {"idle", span{&s.Idle}},
		{"packages", textOf(&s.Packages)}, {"memory", countOf(&s.Memory)}, {"cpus", decimal{&s.CPUs}}, {"executions", countOf(&s.Executions)},
		{"disk", countOf(&s.Disk)}, {"saved", moment{&s.Saved}}, content(field{"rollback", documentOf(&s.Rollback)}), content(field{"network", documentOf(&s.Network)}), content(field{"secrets", documentOf(&s.Secrets)}), {"system", countOf(&s.System)},
		{"volumes", documentOf(&s.Volumes)}, content(field{"image", documentOf(&s.Image)}), {"origin", documentOf(&s.Origin)},
		{"owner", textOf(&s.Owner)}, {"home", textOf(&s.Home)},
	}
}

func executionFields(e *hub.Execution) []field {
	return append([]field{
		{"id", textOf(&e.ID)}, {"project", textOf(&e.Project)}, {"user_id", textOf(&e.User)}, {"key_id", textOf(&e.Key)},
		{"session_id", textOf(&e.Session)}, {"turn_id", textOf(&e.Turn)}, {"step", countOf(&e.Step)}, content(field{"code", textOf(&e.Code)}),
		{"created", moment{&e.Created}}, {"owner", textOf(&e.Owner)},
		{"edited", flag{&e.Edited}}, {"detached", flag{&e.Detached}}, content(field{"cautions", documentOf(&e.Cautions)}),
	}, executionEnd(e)...)
}

// executionEnd is what the end of an execution writes.
func executionEnd(e *hub.Execution) []field {
	return []field{
		{"kernel", textOf(&e.Kernel)}, {"state", textOf(&e.State)}, {"unfinished", derived{func() any { return bit(!e.State.Final()) }}},
		{"exit_code", countOf(&e.ExitCode)}, content(field{"message", textOf(&e.Message)}), content(field{"lost", textOf(&e.Lost)}), {"started", moment{&e.Started}},
		{"finished", moment{&e.Finished}}, {"wall", span{&e.Wall}}, {"cpu", span{&e.CPU}}, {"events", countOf(&e.Events)},
		{"dropped", countOf(&e.Dropped)}, {"redacted", documentOf(&e.Redacted)},
	}
}

func eventFields(e *stream.Event) []field {
	return []field{
		{"stream", textOf(&e.Stream)}, {"seq", countOf(&e.Seq)}, {"execution", textOf(&e.Part)}, {"step", countOf(&e.Step)},
		{"at", moment{&e.At}}, content(field{"body", blob{&e.Body}}),
	}
}

func conversationFields(c *hub.Conversation) []field {
	return []field{
		{"id", textOf(&c.ID)}, {"project", textOf(&c.Project)}, {"user_id", textOf(&c.User)}, {"session_id", textOf(&c.Session)},
		content(field{"title", textOf(&c.Title)}), {"model", textOf(&c.Model)}, content(field{"metadata", documentOf(&c.Metadata)}), {"created", moment{&c.Created}},
		{"used", moment{&c.Used}}, {"turns", countOf(&c.Turns)}, {"source", textOf(&c.Source)},
		{"approval", textOf(&c.Approval)}, {"origin", documentOf(&c.Origin)},
	}
}

func turnFields(t *hub.Turn) []field {
	return append([]field{
		{"id", textOf(&t.ID)}, {"project", textOf(&t.Project)}, {"user_id", textOf(&t.User)}, {"key_id", textOf(&t.Key)},
		{"conversation", textOf(&t.Conversation)}, {"parent", textOf(&t.Parent)}, content(field{"prompt", textOf(&t.Prompt)}), {"created", moment{&t.Created}},
		content(field{"surface", jsonTextOf(&t.Foreign)}), {"hidden", flag{&t.Hidden}}, {"owner", textOf(&t.Owner)},
		content(field{"files", documentOf(&t.Files)}), {"origin", documentOf(&t.Origin)},
		content(field{"rating", documentOf(&t.Rating)}), {"rated", derived{func() any { return bit(t.Rating != nil) }}},
		{"marks", documentOf(&t.Marks)},
	}, turnEnd(t)...)
}

// turnEnd is what the end of a turn writes.
func turnEnd(t *hub.Turn) []field {
	return []field{
		{"session_id", textOf(&t.Session)}, {"state", textOf(&t.State)}, {"unfinished", derived{func() any { return bit(!t.State.Final()) }}},
		{"model", textOf(&t.Model)}, content(field{"answer", textOf(&t.Answer)}), content(field{"reason", textOf(&t.Reason)}), content(field{"problem", jsonTextOf(&t.Problem)}),
		content(field{"messages", documentOf(&t.Messages)}), content(field{"calls", documentOf(&t.Calls)}), {"input_tokens", tokens{&t.Usage.InputTokens}},
		{"output_tokens", tokens{&t.Usage.OutputTokens}}, {"cached_tokens", tokens{&t.Usage.CachedTokens}},
		{"reasoning_tokens", tokens{&t.Usage.ReasoningTokens}}, {"tokens_estimated", flag{&t.Usage.Estimated}}, {"steps", countOf(&t.Steps)}, {"finished", moment{&t.Finished}},
		{"events", countOf(&t.Events)}, content(field{"waiting", documentOf(&t.Waiting)}),
		{"cost", millionths{&t.Cost.Amount}}, {"currency", textOf(&t.Cost.Currency)},
		{"context_used", tokens{&t.Context.Used}}, {"context_size", tokens{&t.Context.Size}}, content(field{"tries", documentOf(&t.Tries)}),
	}
}

func fileFields(f *hub.File) []field {
	return []field{
		{"id", textOf(&f.ID)}, {"project", textOf(&f.Project)}, {"user_id", textOf(&f.User)}, content(field{"name", textOf(&f.Name)}),
		{"size", countOf(&f.Size)}, {"sha256", textOf(&f.SHA256)}, {"purpose", textOf(&f.Purpose)}, {"created", moment{&f.Created}},
		{"expires", moment{&f.Expires}}, {"home", textOf(&f.Home)},
	}
}

func usageFields(u *hub.Usage) []field {
	return []field{
		{"day", textOf(&u.Day)}, {"executions", countOf(&u.Executions)}, {"wall_seconds", decimal{&u.WallSeconds}},
		{"cpu_seconds", decimal{&u.CPUSeconds}}, {"turns", countOf(&u.Turns)}, {"input_tokens", tokens{&u.InputTokens}},
		{"output_tokens", tokens{&u.OutputTokens}}, {"upload_bytes", countOf(&u.UploadBytes)},
		{"cost", millionths{&u.Cost}}, {"currency", textOf(&u.Currency)},
	}
}

func projectUsageFields(u *hub.ProjectUsage) []field {
	return append([]field{{"project", textOf(&u.Project)}}, usageFields(&u.Usage)[1:]...)
}

func keyFields(k *auth.Key) []field {
	return []field{
		{"id", textOf(&k.ID)}, {"project", textOf(&k.Project)}, {"user_id", textOf(&k.User)}, {"name", textOf(&k.Name)}, {"hash", blob{&k.Hash}},
		{"last4", textOf(&k.Last4)}, {"scopes", documentOf(&k.Scopes)}, {"created", moment{&k.Created}}, {"expires", moment{&k.Expires}},
		{"used", moment{&k.Used}}, {"revoked", moment{&k.Revoked}}, {"quota", jsonTextOf(&k.Quota)}, {"subject", textOf(&k.Subject)},
	}
}

func userFields(u *auth.User) []field {
	return []field{{"id", textOf(&u.ID)}, {"name", textOf(&u.Name)}, {"admin", flag{&u.Admin}}, {"created", moment{&u.Created}}}
}

func projectFields(p *auth.Project) []field {
	return []field{{"id", textOf(&p.ID)}, {"name", textOf(&p.Name)}, {"created", moment{&p.Created}}, {"quota", jsonTextOf(&p.Quota)}, content(field{"instructions", textOf(&p.Instructions)})}
}

func memberFields(m *auth.Membership) []field {
	return []field{{"project", textOf(&m.Project)}, {"user_id", textOf(&m.User)}, {"role", textOf(&m.Role)}}
}

func auditFields(r *audit.Row) []field {
	return []field{
		{"id", textOf(&r.ID)}, {"at", moment{&r.At}}, {"project", textOf(&r.Project)}, {"user_id", textOf(&r.User)}, {"key_id", textOf(&r.Key)},
		{"action", textOf(&r.Action)}, {"target", textOf(&r.Target)}, {"outcome", textOf(&r.Outcome)}, content(field{"detail", textOf(&r.Detail)}),
		{"request", textOf(&r.Request)}, {"ip", textOf(&r.IP)}, {"agent", textOf(&r.Agent)},
	}
}
