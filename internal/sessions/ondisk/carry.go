package ondisk

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/snapshot"
	"cove/internal/sessions/session"
)

// When a head does not fit any more, as after an upgrade that brings another release of gVisor, its session starts anew: with the files that another cove reads
// from the head (see Ground.Salvage), with those variables that can be pickled, and with its packages; then it is saved at once. The former head is kept as the
// way back, whatever the depth of undo, until the session is removed: the cove that made it can return to it.

// unfit says whether err is about a head that does not fit.
func unfit(err error) bool { return problem.Has(err, problem.SnapshotUnfit) }

// carriable says whether the files of a head that does not fit can be read.
func (s *LeasedSession) carriable(err error) bool {
	return unfit(err) && s.kept == nil && s.ground.Salvage != nil && !s.opts.Trial
}

// carriedOver is what was carried over.
type carriedOver struct {
	files     int
	bytes     int64
	left      []string // the files that were not
	pickles   string   // the file of the workspace in which the variables are; "": none came
	variables session.Taken
}

// carry starts the session anew with the files of its head, and with those of its variables that can be pickled.
func (s *LeasedSession) carry(ctx context.Context, head *snapshot.Snapshot) (Live, error) {
	live, got, err := s.carryInto(ctx, head, true)
	if err == nil && lostBy(live) {
		// Restoring the variables cost the sandbox, and with it the files.
		s.notice(fmt.Sprintf("session %s: its variables could not be carried over: the sandbox was lost with them", s.name))
		_ = live.Close(context.WithoutCancel(ctx))
		live, got, err = s.carryInto(ctx, head, false)
	}
	if err != nil {
		return nil, s.uncarried(head, err)
	}
	made := head.Manifest.Made
	s.carried = &made
	s.renewal = s.sayRenewed(head, got)
	s.notice(fmt.Sprintf("session %s %s. Its former state is kept (%d MiB): %s", s.name, s.renewal, head.Size()>>20, s.wayBack(head.Manifest)))
	return live, nil
}

func lostBy(live Live) bool {
	select {
	case <-live.Lost():
		return true
	default:
		return false
	}
}

// carryInto starts the session and puts into it what was carried over.
func (s *LeasedSession) carryInto(ctx context.Context, head *snapshot.Snapshot, variables bool) (live Live, got carriedOver, err error) {
	err = s.ground.Salvage(ctx, head, func(archive io.Reader) error {
		// Only now that the archive has begun: most of what can fail fails before that, and costs no start then.
		if live, err = s.begin(ctx); err != nil {
			return err
		}
		got, err = unpack(ctx, live, archive, variables)
		return err
	})
	if err == nil {
		got.variables = s.takeVariables(ctx, live, got)
	} else if live != nil {
		err = errors.Join(err, live.Close(context.WithoutCancel(ctx)))
	}
	return live, got, err
}

// takeVariables restores the variables that were carried over. When that fails, the session still has the files.
func (s *LeasedSession) takeVariables(ctx context.Context, live Live, got carriedOver) session.Taken {
	into, ok := live.(VariableTaker)
	if !ok || got.pickles == "" {
		return session.Taken{}
	}
	taken, err := into.TakeVariables(ctx, got.pickles)
	if err != nil {
		s.notice(fmt.Sprintf("session %s: its variables could not be carried over: %s", s.name, problem.Of(err).Message))
	}
	return taken
}

// arrive saves a session that was carried over, so that it is done only once.
func (s *LeasedSession) arrive(ctx context.Context) error {
	s.mu.Lock()
	s.at = s.at.on(filesChange)
	s.mu.Unlock()
	if err := s.saveHead(ctx, true); err != nil {
		return fmt.Errorf("save the session with the files that were carried over: %w", err)
	}
	return nil
}

// begin starts the session from the beginning, with its packages. Its former kernels are not started.
func (s *LeasedSession) begin(ctx context.Context) (Live, error) {
	s.rec.Kernels = nil
	ground, err := s.opts.Prepare(ctx, s.rec.Base)
	if err != nil {
		return nil, err
	}
	s.ground = ground
	return ground.Start(ctx, nil, true)
}

// unpack puts an archive's files into a workspace, and the one with the variables if that is wanted.
func unpack(ctx context.Context, live Live, archive io.Reader, variables bool) (carriedOver, error) {
	var got carriedOver
	into, ok := live.(Changes)
	if !ok {
		return got, errors.New("files cannot be put into this session's workspace")
	}
	whole := false
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) && whole {
			return got, nil
		}
		if errors.Is(err, io.EOF) {
			return got, errors.New("the archive of the files ends too early")
		}
		if err != nil {
			return got, fmt.Errorf("read the files: %w", err)
		}
		switch name := path.Clean(h.Name); h.Typeflag {
		case tar.TypeXGlobalHeader:
			whole = true
			got.left = append(got.left, leftOf(h)...)
		case tar.TypeDir:
			err = into.MakeFolder(ctx, name)
		case tar.TypeReg:
			pickles := h.PAXRecords[session.VariablesRecord] != ""
			if pickles && !variables {
				continue
			}
			if _, err = into.Write(ctx, name, in); pickles {
				got.pickles = name
				break
			}
			got.files, got.bytes = got.files+1, got.bytes+h.Size
		}
		if err != nil && problem.Of(err).Kind == problem.Invalid { // only code can give a file such a name
			got.left, err = append(got.left, h.Name), nil
		}
		if err != nil {
			return got, fmt.Errorf("put %.300q back: %w", h.Name, err)
		}
	}
}

func leftOf(h *tar.Header) (paths []string) {
	var left session.Left
	if json.Unmarshal([]byte(h.PAXRecords[session.LeftRecord]), &left) != nil {
		return nil
	}
	if paths = left.Paths; left.More > 0 {
		paths = append(paths, fmt.Sprintf("%d others", left.More))
	}
	return paths
}

// How many things a notice names, and how much of each name, in bytes.
const (
	mostLeft     = 10
	longestNamed = 200
)

// Renewed says in a sentence without a subject that opening the session started it anew, and with what; "" where it goes on.
func (s *LeasedSession) Renewed() string { return s.renewal }

func (s *LeasedSession) sayRenewed(head *snapshot.Snapshot, got carriedOver) string {
	with := []string{fmt.Sprintf("its %d files (%d KiB)", got.files, (got.bytes+1023)>>10)}
	if n := got.variables.Taken; n > 0 {
		with = append(with, fmt.Sprintf("%d of its variables", n))
	}
	if len(s.rec.Installed.Requirements) > 0 {
		with = append(with, "its packages")
	}
	text := fmt.Sprintf("was saved by %s and cannot be restored by this version: it starts anew with %s", head.Manifest.Made, strings.Join(with, " and "))
	switch v := got.variables; {
	case v.Taken == 0:
		text += "; not carried over are variables, imports"
	case len(v.Left) > 0:
		text += "; not carried over are the variables " + first(v.Left, v.More) + " (such as what is defined in the session)"
	default:
		text += "; not carried over are functions and classes"
	}
	text += ", further kernels, processes, /tmp, and links and permissions in the workspace"
	if s.rec.Limits.System > 0 {
		text += ", what root has changed of the system"
	}
	if len(got.left) > 0 {
		text += ", and what could not be read: " + first(got.left, 0)
	}
	return text
}

// first names the first of several things, which hostile code may have named, and says how many others there are.
func first(names []string, more int) string {
	n := min(mostLeft, len(names))
	var out []string
	for _, name := range names[:n] {
		out = append(out, strings.Trim(strconv.Quote(name[:min(len(name), longestNamed)]), `"`))
	}
	text := strings.Join(out, ", ")
	if more += len(names) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// wayBack says how the user can return to a snapshot.
func (s *LeasedSession) wayBack(m snapshot.Manifest) string {
	program := "cove"
	if s.ground.Kept != nil {
		if path, _ := s.ground.Kept(m.Key); path != "" {
			program = path
		}
	}
	return fmt.Sprintf("`%s session undo %s` with that cove goes back to it", program, s.name)
}

// uncarried says why the files of a head could not be read.
func (s *LeasedSession) uncarried(head *snapshot.Snapshot, err error) error {
	p := problem.Of(err)
	if p.Kind == problem.Canceled || errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.SnapshotUnfit, fmt.Sprintf("it was saved by %s, and its files could not be carried over: %s", head.Manifest.Made, p.Error())).
		WithHint(p.Hint)
}
