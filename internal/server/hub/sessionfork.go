package hub

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// ForkSession makes a session that goes on from the present state of id, or from one of its points, with its variables and files. It waits for running code. Needs auth.SessionsWrite.
func (h *Hub) ForkSession(ctx context.Context, who auth.Principal, id string, n NewSession) (Session, error) {
	row, err := Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		row, err = h.forkSession(ctx, who, id, n)
	}
	h.work.WriteAudit(ctx, who, "session.fork", cmp.Or(row.ID, id), "of "+id, err)
	if err != nil {
		return Session{}, err
	}
	h.sessionSeen(ctx, sessionForked, row.ID, row.Project, slog.String("of", id))
	return h.row(ctx, who, row.ID)
}

func (h *Hub) forkSession(ctx context.Context, who auth.Principal, id string, n NewSession) (Session, error) {
	source, err := h.row(ctx, who, id)
	if err != nil {
		return Session{}, err
	}
	abandoned, err := h.work.CheckHere(ctx, source)
	if abandoned {
		source, err = h.settleAbandoned(ctx, source)
	}
	if err != nil {
		return Session{}, err
	}
	if !h.saves() {
		return Session{}, h.unsavable()
	}
	if n.Packages != "" && n.Packages != source.Packages {
		return Session{}, record.InvalidSession("a fork has the packages of the session that it is made from")
	}
	if n.Image != "" && (source.Image == nil || n.Image != source.Image.Reference) {
		return Session{}, problem.New(problem.SessionImage, "a fork has the system of the session that it is made from, and no other image").WithHint("leave image out, or make a new session")
	}
	if len(n.Volumes) > 0 {
		return Session{}, problem.New(problem.VolumeInvalid, "a fork has the volumes of the session that it is made from, and no others").WithHint("make a new session with the volumes")
	}
	n.Packages = source.Packages
	if n.Memory == 0 {
		n.Memory = source.Memory
	}
	if n.CPUs == 0 {
		n.CPUs = source.CPUs
	}
	if n.Network == nil {
		n.Network = source.Network
	}
	row := h.newRow(who, n)
	row.State, row.Executions, row.Owner, row.System, row.Volumes, row.Image = SessionPaused, source.Executions, "", source.System, source.Volumes, source.Image
	row.Origin = &SessionOrigin{Session: id, Undo: n.undo}
	err = row.Check(h.o.Base.Packages)
	if row.Network == source.Network {
		row.Secrets = source.Secrets
	} else if err == nil {
		if err = h.networkFor(ctx, who, row.Network); err == nil {
			err = row.KeepSecrets(row.Network)
		}
	}
	if err == nil && row.CPUs != source.CPUs {
		err = h.cpusFor(row)
	}
	if err == nil && row.Memory != source.Memory {
		err = h.memoryFor(row)
	}
	if err = errors.Join(err, h.MayStore(ctx, who.Project, who.Key, 0)); err != nil {
		return Session{}, err
	}
	work, end, err := h.begin(ctx)
	if err != nil {
		return Session{}, err
	}
	defer end()
	forking, over := telemetry.Step(work, telemetry.StageFork, slog.String("session", row.ID), slog.String("of", id))
	err = h.pause(telemetry.Carry(ctx, forking), who.Project, id, func() error { return h.copySession(forking, id, n.Point, &row) })
	over(err)
	for _, file := range n.Files {
		if err == nil {
			_, err = h.PutFile(work, who, row.ID, file, "")
		}
	}
	if err != nil {
		h.work.RunInBackground(func(ctx context.Context) { h.unmake(ctx, row) })
	}
	return row, err
}

// copySession forks on the disk, and records the fork then: a crash in between leaves a session without a record, which recovery removes. The caller sees to it
// that nothing else uses the session meanwhile.
func (h *Hub) copySession(ctx context.Context, from, point string, row *Session) error {
	source, err := h.o.Sessions.Show(ctx, from)
	if err != nil {
		return withoutCommands(err)
	}
	counted, err := h.ClaimRoom(ctx, row.Project, row.Key, withoutPoints(source))
	if err != nil {
		return err
	}
	defer counted()
	info, err := h.o.Sessions.Fork(ctx, from, row.ID, h.o.Command, point)
	if err != nil {
		return withoutCommands(err)
	}
	origin, err := h.work.Store.Session(ctx, row.Project, from)
	if err != nil {
		return err
	}
	row.Rollback, row.Saved, row.Executions = origin.Rollback, info.Head.Saved, info.Head.Executions // the fork never had what its origin lost
	if row.Origin.At = h.work.Now().UTC(); point != "" {
		row.Origin.At = info.Head.Saved.UTC()
	}
	if info.Head.Snapshot != "" {
		row.Disk = info.Disk
	}
	return h.work.Store.AddSession(ctx, *row)
}
