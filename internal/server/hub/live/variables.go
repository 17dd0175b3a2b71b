package live

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// lookTime bounds a look at variables: the interpreter can do nothing else meanwhile.
const lookTime = 20 * time.Second

// Variables returns the variables of a kernel, without modules, functions and classes, and without what is redacted. Needs auth.SessionsRead. A problem with code "session_busy" says that the kernel
// runs code.
func (m *Manager) Variables(ctx context.Context, who auth.Principal, session, name string) (v kernel.Variables, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsRead, session, name, func(ctx context.Context, l Live) error {
		v, err = l.Variables(ctx, name)
		v = RedactVariables(m.RedactionIn(ctx, who.Project, who.Key, session), v)
		return err
	})
	return v, err
}

// Table returns a piece of a table, as Variables does. Problems: variable_unknown, not_a_table.
func (m *Manager) Table(ctx context.Context, who auth.Principal, session, name string, q kernel.TableQuery) (t kernel.Table, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsRead, session, name, func(ctx context.Context, l Live) error {
		t, err = l.Table(ctx, name, q)
		t = redactTable(m.RedactionIn(ctx, who.Project, who.Key, session), t)
		return err
	})
	return t, err
}

// Profile describes a column of a table, as Variables does. Problems: variable_unknown, not_a_table.
func (m *Manager) Profile(ctx context.Context, who auth.Principal, session, name, table string, column int) (p kernel.Profile, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsRead, session, name, func(ctx context.Context, l Live) error {
		p, err = l.Profile(ctx, name, table, column)
		p = redactProfile(m.RedactionIn(ctx, who.Project, who.Key, session), p)
		return err
	})
	return p, err
}

// Complete returns the completions of code at cursor (in characters) in a kernel and the span that they replace, as Variables does, but it needs auth.SessionsExecute:
// to look may import a module and call methods of the session's objects.
func (m *Manager) Complete(ctx context.Context, who auth.Principal, session, name, code string, cursor int) (matches []string, start, end int, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsExecute, session, name, func(ctx context.Context, l Live) error {
		matches, start, end, err = l.Complete(ctx, name, code, cursor)
		return err
	})
	return matches, start, end, err
}

// IsComplete says whether code is "complete", "incomplete" or "invalid", as Variables does.
func (m *Manager) IsComplete(ctx context.Context, who auth.Principal, session, name, code string) (status string, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsRead, session, name, func(ctx context.Context, l Live) error {
		status, err = l.IsComplete(ctx, name, code)
		return err
	})
	return status, err
}

// Describe says what the name at cursor (in characters) of code stands for in a kernel, "" where that is nothing known, as Complete does.
func (m *Manager) Describe(ctx context.Context, who auth.Principal, session, name, code string, cursor int) (text string, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsExecute, session, name, func(ctx context.Context, l Live) error {
		text, err = l.Describe(ctx, name, code, cursor)
		text, _ = m.RedactionIn(ctx, who.Project, who.Key, session).String(text)
		return err
	})
	return text, err
}

// inspectKernel looks at a kernel that runs nothing.
func (m *Manager) inspectKernel(ctx context.Context, who auth.Principal, action auth.Action, session, name string, look func(context.Context, Live) error) error {
	if err := who.Require(action); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error {
		if m.describeKernel(session, name).Busy {
			return problem.New(problem.SessionBusy, "the kernel runs code").WithHint("look again when the code has ended")
		}
		return look(ctx, l)
	})
}
