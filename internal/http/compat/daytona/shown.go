package daytona

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"time"
)

// shown is a sandbox as clients read it: Python's take nothing that is missing, and no number that is not whole.
func (s *Server) shown(r *http.Request, b sandbox) map[string]any {
	rec, l := b.record, s.lifeOf(b)
	wanted := l.state
	switch l.state {
	case paused:
		wanted = stopped
	case buildingState:
		wanted = started
	}
	out := map[string]any{
		"id": sandboxID(b.id), "organizationId": b.session.Project, "name": cmp.Or(rec.Name, sandboxID(b.id)), "user": sandboxUser, "env": nonNil(rec.Env), "labels": nonNil(rec.Labels), "public": rec.Public,
		"networkBlockAll": rec.BlockAll, "kvm": false, "target": rec.Target, "cpu": max(1, int64(math.Ceil(b.session.CPUs))), "gpu": int64(0), "memory": gibibytes(b.session.Memory), "disk": gibibytes(s.Disk),
		"state": l.state, "desiredState": wanted, "backupState": "None", "recoverable": false, "autoStopInterval": rec.AutoStop, "autoPauseInterval": rec.AutoPause, "autoArchiveInterval": rec.AutoArchive,
		"autoDeleteInterval": rec.AutoDelete, "volumes": shownMounts(b.session.Volumes), "createdAt": stamp(rec.Created), "updatedAt": stamp(rec.Changed), "lastActivityAt": stamp(s.usedLast(b)), "sandboxClass": "container",
		"daemonVersion": s.Version, "runnerId": "cove", "toolboxProxyUrl": toolboxURL(r), "spot": false,
	}
	if !rec.Dies.IsZero() {
		out["autoDestroyAt"] = stamp(rec.Dies)
	}
	for name, value := range map[string]string{"errorReason": s.failure(b.id, rec), "snapshot": rec.Snapshot, "networkAllowList": rec.Networks, "domainAllowList": rec.Domains} {
		if value != "" {
			out[name] = value
		}
	}
	if rec.Build != "" {
		out["buildInfo"] = map[string]any{"dockerfileContent": rec.Build, "createdAt": stamp(rec.Created), "updatedAt": stamp(rec.Changed), "snapshotRef": ownSnapshot}
	}
	s.forOldClients(b, out)
	return out
}

// forOldClients adds what clients before 0.21 read.
func (s *Server) forOldClients(b sandbox, out map[string]any) {
	rec := b.record
	about, err := json.Marshal(map[string]any{
		"state": out["state"], "nodeDomain": "", "region": rec.Target, "class": "small", "updatedAt": out["updatedAt"], "lastSnapshot": nil, "resources": map[string]any{"cpu": out["cpu"], "memory": out["memory"], "disk": out["disk"], "gpu": 0},
	})
	if err != nil {
		return
	}
	out["info"] = map[string]any{"created": out["createdAt"], "name": out["name"], "providerMetadata": string(about)}
	out["snapshotState"] = "None"
	if rec.Image != "" {
		out["image"] = rec.Image
	}
}

// usedLast is when a sandbox was used last, as far as is known.
func (s *Server) usedLast(b sandbox) time.Time {
	used := b.record.Seen
	for _, t := range []time.Time{b.session.Used, s.clocks.Seen(b.id)} {
		if t.After(used) {
			used = t
		}
	}
	return used
}
