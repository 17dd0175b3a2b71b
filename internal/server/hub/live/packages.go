package live

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/server/auth"
)

// Bounds of what a caller may have installed.
const (
	mostRequired    = 100 // requirements of one call
	longestRequired = 500
)

// PutFile copies a stored file into a session's workspace under path ("" is its name). Needs auth.FilesWrite.
func (m *Manager) PutFile(ctx context.Context, who auth.Principal, session, file, path string) (info workspace.Entry, err error) {
	defer func() { m.work.WriteAudit(ctx, who, "session.file.put", session, file+" "+path, err) }()
	if err := who.Require(auth.FilesWrite); err != nil {
		return workspace.Entry{}, err
	}
	f, err := m.library.FindFile(ctx, who, file)
	if err != nil {
		return workspace.Entry{}, err
	}
	content, err := m.library.OpenContent(ctx, f)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer func() { _ = content.Close() }()
	if path == "" {
		path = f.Name
	}
	err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
		info, err = l.Write(ctx, path, content)
		return err
	})
	return info, err
}

// Install makes packages (PEP 508) importable in a session. Needs auth.PackagesInstall.
func (m *Manager) Install(ctx context.Context, who auth.Principal, session string, requirements []string, told func(installation.Progress)) (p installation.Provision, err error) {
	defer func() { m.work.WriteAudit(ctx, who, "packages.install", session, strings.Join(requirements, " "), err) }()
	if err := who.Require(auth.PackagesInstall); err != nil {
		return p, err
	}
	wanted, err := parsed(requirements)
	if err != nil {
		return p, err
	}
	err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
		p, err = l.Install(ctx, wanted, told)
		return err
	})
	return p, err
}

func parsed(requirements []string) ([]require.Requirement, error) {
	if n := len(requirements); n == 0 || n > mostRequired {
		return nil, problem.New(problem.PackageName, fmt.Sprintf("ask for 1 to %d packages", mostRequired))
	}
	var wanted []require.Requirement
	for _, text := range requirements {
		if len(text) > longestRequired {
			return nil, problem.New(problem.PackageName, fmt.Sprintf("%.40q is too long for a requirement", text))
		}
		r, err := require.Parse(text)
		if err != nil {
			return nil, problem.New(problem.PackageName, fmt.Sprintf("%.80q is not a requirement that can be installed: %v", text, err)).
				WithHint("write a package's name, with versions if needed, such as polars or pandas>=2,<3")
		}
		wanted = append(wanted, r)
	}
	return wanted, nil
}

// Packages returns the version of a session's Python and of its packages by name. Needs auth.SessionsRead.
func (m *Manager) Packages(ctx context.Context, who auth.Principal, session string) (python string, packages map[string]string, err error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return "", nil, err
	}
	err = m.PeekSession(ctx, who, session, func(_ context.Context, l Live) error {
		var own map[string]string
		python, own = l.Python()
		packages = maps.Clone(own)
		if packages == nil {
			packages = map[string]string{}
		}
		maps.Copy(packages, l.Installed().Packages)
		return nil
	})
	return python, packages, err
}
