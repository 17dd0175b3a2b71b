package cli

import (
	"context"
	"fmt"
	"strings"

	"cove/internal/core/config"
	"cove/internal/sessions/ondisk"
)

// checkSessions says how many of the saved sessions can be continued by this cove. Before an upgrade that is asked of the new one.
func checkSessions(ctx context.Context, p *Program, cfg config.Config) check {
	c := check{Name: "sessions", Status: good, Detail: "this engine cannot save sessions"}
	if p.Outlook == nil || !cfg.Saves() {
		return c
	}
	local, server, err := p.Outlook(ctx, cfg)
	if err != nil {
		return fromError("sessions", warned, err)
	}
	c.Sessions = map[string]ondisk.Survey{"command_line": local, "server": server}
	var says, fixes []string
	for _, one := range []struct {
		whose string
		ondisk.Survey
	}{{"the command line's", local}, {"the server's", server}} {
		if one.Sessions == 0 {
			continue
		}
		text, fix := outlookOf(one.Survey)
		says = append(says, one.whose+": "+text)
		if one.CarriedOver+one.Unreadable+one.Broken > 0 {
			c.Status = warned
		}
		if fix != "" {
			fixes = append(fixes, fix)
		}
	}
	if c.Detail = strings.Join(says, "; "); c.Detail == "" {
		c.Detail = "none is saved"
	}
	c.Fix = strings.Join(fixes, "\n")
	return c
}

// outlookOf says in words what a survey found, and what can be done.
func outlookOf(s ondisk.Survey) (text, fix string) {
	parts := []string{fmt.Sprintf("%d of %d saved sessions can be continued by this cove", s.GoOn, s.Sessions-s.New)}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(s.CarriedOver, "start anew with their files, packages and what can be pickled of their variables")
	add(s.Unreadable, "cannot be opened by it")
	add(s.Broken, "are broken")
	text = strings.Join(parts, ", ")
	if s.WaysBack > 0 {
		text += fmt.Sprintf("; %d keep what they were before an upgrade (%s in %s)", s.WaysBack, humanSize(s.WaysBackSize), s.Folder)
	}
	if s.CarriedOver+s.Unreadable > 0 {
		var by []string
		for _, maker := range s.MakersSorted() {
			by = append(by, fmt.Sprintf("%s (%d)", maker, s.Makers[maker]))
		}
		fix = "nothing is lost: saved sessions are not changed, and the version of cove that saved them can restore them: " + strings.Join(by, ", ")
	}
	return text, fix
}
