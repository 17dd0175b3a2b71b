package dify

import (
	"context"
	"maps"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

type dependency struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// listDependencies says which packages programs in Python have, and also answers a request to read that anew.
func (s *server) listDependencies(c *call) error {
	if err := onlyPython(c.URL.Query().Get("language")); err != nil {
		return err
	}
	return s.inSession(c, hub.NewSession{}, func(begin context.Context, session string) error {
		_, packages, err := s.Hub.Packages(begin, c.who, session)
		if err != nil {
			return inTime(begin, err)
		}
		all := []dependency{}
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			all = append(all, dependency{name, packages[name]})
		}
		return c.reply(map[string]any{"dependencies": all})
	})
}

// updateDependencies has nothing to do: sessions have the packages that the operator has chosen.
func (s *server) updateDependencies(c *call) error {
	return c.reply(struct{}{})
}

func onlyPython(name string) error {
	l, err := languageOf(name)
	if err == nil && !l.python {
		err = problem.New(problem.InvalidRequest, "there is no list of the packages of "+name).WithHint("there is one for python3").WithCause(errLanguage)
	}
	return err
}
