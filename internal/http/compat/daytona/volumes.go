package daytona

import (
	"context"
	"fmt"
	"net/http"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Volumes are folders of a project that sandboxes share.
type Volumes interface {
	AddVolume(ctx context.Context, who auth.Principal, name string) (hub.Volume, error)
	Volumes(ctx context.Context, who auth.Principal) ([]hub.Volume, error)
	Volume(ctx context.Context, who auth.Principal, name string) (hub.Volume, error)
	DeleteVolume(ctx context.Context, who auth.Principal, id string) error
}

// mount is a volume as a request for a sandbox has it, and as sandboxes show it.
type mount struct {
	Volume string `json:"volumeId"` // or its name
	Path   string `json:"mountPath"`
	Sub    string `json:"subpath,omitempty"`
}

// volumeID is the id under which clients know a volume.
func volumeID(id string) string { return ident.Body(id) }

// volumeOf returns the id of the volume behind a client's, or the name that it is.
func volumeOf(id string) string {
	if own := ident.Volume + "_" + id; ident.Valid(ident.Volume, own) {
		return own
	}
	return id
}

func mountsOf(all []mount) (out []hub.VolumeMount) {
	for _, m := range all {
		out = append(out, hub.VolumeMount{Volume: volumeOf(m.Volume), Path: m.Path, Sub: m.Sub})
	}
	return out
}

func shownMounts(all []hub.VolumeMount) []mount {
	out := []mount{}
	for _, m := range all {
		out = append(out, mount{volumeID(m.Volume), m.Path, m.Sub})
	}
	return out
}

func shownVolume(v hub.Volume) map[string]any {
	return map[string]any{
		"id": volumeID(v.ID), "name": v.Name, "organizationId": v.Project, "state": "ready", "createdAt": stamp(v.Created), "updatedAt": stamp(v.Created), "lastUsedAt": nil, "errorReason": nil,
	}
}

// noVolume is the problem of a volume that is not there, as clients read it.
func noVolume(err error, name string) error {
	if problem.Has(err, problem.VolumeNotFound) {
		return &fault{http.StatusNotFound, fmt.Sprintf("Volume with ID or name %s not found", bounded(name))}
	}
	return err
}

func (s *Server) createVolume(c *call) error {
	var in struct{ Name string }
	if err := c.read(&in); err != nil {
		return err
	}
	v, err := s.Hub.AddVolume(c.Context(), c.who, in.Name)
	if err == nil {
		reply(c.w, http.StatusOK, shownVolume(v))
	}
	return err
}

func (s *Server) listVolumes(c *call) error {
	all, err := s.Hub.Volumes(c.Context(), c.who)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for _, v := range all {
		out = append(out, shownVolume(v))
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

func (s *Server) showVolume(c *call) error {
	v, err := s.Hub.Volume(c.Context(), c.who, volumeOf(c.PathValue("id")))
	if err == nil {
		reply(c.w, http.StatusOK, shownVolume(v))
	}
	return noVolume(err, c.PathValue("id"))
}

func (s *Server) deleteVolume(c *call) error {
	err := s.Hub.DeleteVolume(c.Context(), c.who, volumeOf(c.PathValue("id")))
	if err == nil {
		c.w.WriteHeader(http.StatusOK)
	}
	return noVolume(err, c.PathValue("id"))
}
