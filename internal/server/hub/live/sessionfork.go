package live

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
func (m *Manager) ForkSession(ctx context.Context, who auth.Principal, id string, n NewSession) (record.Session, error) {
	row, err := record.Session{}, who.Require(auth.SessionsWrite)
	if err == nil {
		row, err = m.ForkSessionRow(ctx, who, id, n)
	}
	m.work.WriteAudit(ctx, who, "session.fork", cmp.Or(row.ID, id), "of "+id, err)
	if err != nil {
		return record.Session{}, err
	}
	m.sessionSeen(ctx, sessionForked, row.ID, row.Project, slog.String("of", id))
	return m.FindSession(ctx, who, row.ID)
}

// ForkSessionRow is ForkSession without the row in the audit log.
func (m *Manager) ForkSessionRow(ctx context.Context, who auth.Principal, id string, n NewSession) (record.Session, error) {
	source, err := m.FindSession(ctx, who, id)
	if err != nil {
		return record.Session{}, err
	}
	abandoned, err := m.work.CheckHere(ctx, source)
	if abandoned {
		source, err = m.settleAbandoned(ctx, source)
	}
	if err != nil {
		return record.Session{}, err
	}
	if !m.CanSave() {
		return record.Session{}, m.unsavable()
	}
	if n.Packages != "" && n.Packages != source.Packages {
		return record.Session{}, record.InvalidSession("a fork has the packages of the session that it is made from")
	}
	if n.Image != "" && (source.Image == nil || n.Image != source.Image.Reference) {
		return record.Session{}, problem.New(problem.SessionImage, "a fork has the system of the session that it is made from, and no other image").WithHint("leave image out, or make a new session")
	}
	if len(n.Volumes) > 0 {
		return record.Session{}, problem.New(problem.VolumeInvalid, "a fork has the volumes of the session that it is made from, and no others").WithHint("make a new session with the volumes")
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
	row := m.newRow(who, n)
	row.State, row.Executions, row.Owner, row.System, row.Volumes, row.Image = record.SessionPaused, source.Executions, "", source.System, source.Volumes, source.Image
	row.Origin = &record.SessionOrigin{Session: id, Undo: n.Undo}
	err = row.Check(m.o.Base.Packages)
	if row.Network == source.Network {
		row.Secrets = source.Secrets
	} else if err == nil {
		if err = m.networkFor(ctx, who, row.Network); err == nil {
			err = row.KeepSecrets(row.Network)
		}
	}
	if err == nil && row.CPUs != source.CPUs {
		err = m.cpusFor(row)
	}
	if err == nil && row.Memory != source.Memory {
		err = m.memoryFor(row)
	}
	if err = errors.Join(err, m.meter.MayStore(ctx, who.Project, who.Key, 0)); err != nil {
		return record.Session{}, err
	}
	work, end, err := m.BeginWork(ctx)
	if err != nil {
		return record.Session{}, err
	}
	defer end()
	forking, over := telemetry.Step(work, telemetry.StageFork, slog.String("session", row.ID), slog.String("of", id))
	err = m.PauseWhenUnused(telemetry.Carry(ctx, forking), who.Project, id, func() error { return m.copySession(forking, id, n.Point, &row) })
	over(err)
	for _, file := range n.Files {
		if err == nil {
			_, err = m.PutFile(work, who, row.ID, file, "")
		}
	}
	if err != nil {
		m.work.RunInBackground(func(ctx context.Context) { m.RemoveUnmade(ctx, row) })
	}
	return row, err
}

// copySession forks on the disk, and records the fork then: a crash in between leaves a session without a record, which recovery removes. The caller sees to it
// that nothing else uses the session meanwhile.
func (m *Manager) copySession(ctx context.Context, from, point string, row *record.Session) error {
	source, err := m.o.Sessions.Show(ctx, from)
	if err != nil {
		return WithoutCommands(err)
	}
	counted, err := m.library.ClaimRoom(ctx, row.Project, row.Key, withoutPoints(source))
	if err != nil {
		return err
	}
	defer counted()
	info, err := m.o.Sessions.Fork(ctx, from, row.ID, m.o.Command, point)
	if err != nil {
		return WithoutCommands(err)
	}
	origin, err := m.work.Store.Session(ctx, row.Project, from)
	if err != nil {
		return err
	}
	row.Rollback, row.Saved, row.Executions = origin.Rollback, info.Head.Saved, info.Head.Executions // the fork never had what its origin lost
	if row.Origin.At = m.work.Now().UTC(); point != "" {
		row.Origin.At = info.Head.Saved.UTC()
	}
	if info.Head.Snapshot != "" {
		row.Disk = info.Disk
	}
	return m.work.Store.AddSession(ctx, *row)
}
