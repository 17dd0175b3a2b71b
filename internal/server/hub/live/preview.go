package live

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
)

const (
	// previewTime bounds a look at a file, with the time that others who look at files of the session take first.
	previewTime = 40 * time.Second
	// copiesOfPreview is how much memory reading a preview takes, as a multiple of its length.
	copiesOfPreview = 4
)

// Preview looks at a file of a session's workspace. A process in the sandbox reads it, also while code runs. Needs auth.FilesRead. Problems: file_not_found, is_folder,
// not_shown.
func (m *Manager) Preview(ctx context.Context, who auth.Principal, session string, look workspace.Look) (e workspace.Entry, p workspace.Preview, err error) {
	if err := who.Require(auth.FilesRead); err != nil {
		return e, p, err
	}
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	if err := bodybudget.Recall(ctx, copiesOfPreview*workspace.LargestPreview); err != nil {
		return e, p, err
	}
	err = m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error {
		if e, err = l.Stat(ctx, look.Path); err != nil {
			return err
		}
		if e.Folder {
			return problem.New(problem.IsFolder, "that is a folder").WithHint("list the folder, and look at one of its files")
		}
		p, err = l.Preview(ctx, look)
		return err
	})
	return e, p, err
}
