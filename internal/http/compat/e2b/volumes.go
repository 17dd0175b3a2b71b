package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Volumes are folders of a project that sandboxes share.
type Volumes interface {
	AddVolume(ctx context.Context, who auth.Principal, name string) (hub.Volume, error)
	Volumes(ctx context.Context, who auth.Principal) ([]hub.Volume, error)
	Volume(ctx context.Context, who auth.Principal, name string) (hub.Volume, error)
	DeleteVolume(ctx context.Context, who auth.Principal, id string) error
	UseVolume(ctx context.Context, who auth.Principal, id, path string, changes bool, use func(c *volume.Content) error) error
	MayGrow(ctx context.Context, who auth.Principal, id string, most int64) (int64, error)
}

// mount is a volume of a sandbox: clients call it by its name.
type mount struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func mountsOf(all []mount) (out []hub.VolumeMount) {
	for _, m := range all {
		out = append(out, hub.VolumeMount{Volume: m.Name, Path: m.Path})
	}
	return out
}

// mounts are the volumes of a sandbox, as clients read them.
func (s *server) mounts(ctx context.Context, who auth.Principal, row hub.Session) (out []mount) {
	if len(row.Volumes) == 0 {
		return nil
	}
	all, err := s.Hub.Volumes(ctx, who)
	if err != nil { // of a key that reads no files
		return nil
	}
	for _, m := range row.Volumes {
		for _, v := range all {
			if v.ID == m.Volume {
				out = append(out, mount{v.Name, m.Path})
			}
		}
	}
	return out
}

func volumeRoutes() []route {
	read, write := []auth.Action{auth.FilesRead}, []auth.Action{auth.FilesRead, auth.FilesWrite}
	return []route{
		{"POST /volumes", write, (*server).createVolume},
		{"GET /volumes", read, (*server).listVolumes},
		{"GET /volumes/{id}", read, (*server).showVolume},
		{"DELETE /volumes/{id}", write, (*server).deleteVolume},
		{"GET /volumecontent/{id}/path", read, (*server).volumeEntry},
		{"PATCH /volumecontent/{id}/path", write, (*server).changeVolumeEntry},
		{"DELETE /volumecontent/{id}/path", write, (*server).removeVolumeEntry},
		{"GET /volumecontent/{id}/dir", read, (*server).listVolume},
		{"POST /volumecontent/{id}/dir", write, (*server).makeVolumeFolder},
		{"GET /volumecontent/{id}/file", read, (*server).readVolumeFile},
		{volumeUpload, write, (*server).writeVolumeFile},
	}
}

// volumeUpload takes a file.
const volumeUpload = "PUT /volumecontent/{id}/file"

// volumeOf returns the id of the volume behind a client's, or the name that it is.
func volumeOf(id string) string {
	if own := ident.Volume + "_" + id; ident.Valid(ident.Volume, own) {
		return own
	}
	return id
}

func noVolume(err error, id string) error {
	if problem.Has(err, problem.VolumeNotFound) {
		return &fault{http.StatusNotFound, fmt.Sprintf("Volume '%.100s' not found", id)}
	}
	return err
}

// shownVolume is a volume with the token for its content, which is the key with which its client asks: it may do no more with that.
func (c *call) shownVolume(v hub.Volume) (map[string]any, error) {
	key := c.Header.Get("X-Api-Key")
	if scheme, text, _ := strings.Cut(c.Header.Get("Authorization"), " "); key == "" && strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(text)
	}
	if key == "" {
		return nil, invalid("a volume is asked for with a key")
	}
	return map[string]any{"volumeID": ident.Body(v.ID), "name": v.Name, "token": key}, nil
}

func (s *server) createVolume(c *call) error {
	var in struct{ Name string }
	if err := c.read(&in); err != nil {
		return err
	}
	v, err := s.Hub.AddVolume(c.Context(), c.who, in.Name)
	if err != nil {
		return err
	}
	out, err := c.shownVolume(v)
	if err == nil {
		reply(c.w, http.StatusCreated, out)
	}
	return err
}

func (s *server) listVolumes(c *call) error {
	all, err := s.Hub.Volumes(c.Context(), c.who)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for _, v := range all {
		out = append(out, map[string]any{"volumeID": ident.Body(v.ID), "name": v.Name})
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

func (s *server) showVolume(c *call) error {
	v, err := s.Hub.Volume(c.Context(), c.who, volumeOf(c.PathValue("id")))
	if err != nil {
		return noVolume(err, c.PathValue("id"))
	}
	out, err := c.shownVolume(v)
	if err == nil {
		reply(c.w, http.StatusOK, out)
	}
	return err
}

func (s *server) deleteVolume(c *call) error {
	err := s.Hub.DeleteVolume(c.Context(), c.who, volumeOf(c.PathValue("id")))
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return noVolume(err, c.PathValue("id"))
}

// volumePath is the path that a request is about, below the volume.
func (c *call) volumePath() (string, error) {
	said := c.URL.Query().Get("path")
	name := strings.TrimPrefix(path.Clean("/"+said), "/")
	if name == "" {
		name = "."
	}
	if len(name) > 4096 || !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", invalid("path is no path in a volume")
	}
	return name, nil
}

// volumeMode is the mode that a request asks for. Files in volumes are the user's of sandboxes alone.
func (c *call) volumeMode(otherwise fs.FileMode) (fs.FileMode, error) {
	q := c.URL.Query()
	for _, name := range []string{"uid", "gid"} {
		if text := q.Get(name); text != "" && text != sandboxUID {
			return 0, invalid(name + ": what is in a volume belongs to the user of sandboxes, " + sandboxUID)
		}
	}
	if text := q.Get("mode"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > 0o777 {
			return 0, invalid("mode is the number of permission bits, from 0 to 511")
		}
		otherwise = fs.FileMode(n)
	}
	return otherwise, nil
}

// sandboxUID is the number of the user of sandboxes.
const sandboxUID = "1000"

// inVolume calls use with a volume's content and the path of a request.
func (s *server) inVolume(c *call, changes bool, use func(content *volume.Content, name string) error) error {
	name, err := c.volumePath()
	if err != nil {
		return err
	}
	if changes && name == "." {
		return invalid("path: that is the volume itself")
	}
	err = s.Hub.UseVolume(c.Context(), c.who, volumeOf(c.PathValue("id")), name, changes, func(content *volume.Content) error { return use(content, name) })
	return volumeFault(noVolume(err, c.PathValue("id")), name)
}

// volumeFault says in words what went wrong with a path.
func volumeFault(err error, name string) error {
	if _, own := errors.AsType[*fault](err); own || err == nil || problem.Of(err) != nil && problem.Of(err).Kind != problem.Internal {
		return err
	}
	_, atPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fault{http.StatusNotFound, fmt.Sprintf("path '/%.200s' not found", name)}
	case errors.Is(err, fs.ErrExist):
		return &fault{http.StatusConflict, fmt.Sprintf("path '/%.200s' exists already", name)}
	case errors.Is(err, volume.ErrTooMuch):
		return &fault{http.StatusRequestEntityTooLarge, "that is more than the volume may hold, than a file may have, or than can be listed"}
	case atPath:
		return invalid(fmt.Sprintf("path '/%.200s' is not what the operation is for, or leads out of the volume", name))
	}
	return err
}

// volumeStat is an entry as clients read it.
func volumeStat(e volume.Entry) map[string]any {
	kind := "unknown"
	switch mode := e.Info.Mode(); {
	case mode.IsRegular():
		kind = "file"
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeSymlink != 0:
		kind = "symlink"
	}
	user := 0
	if e.Own {
		user = 1000
	}
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	where := "/" + strings.TrimPrefix(e.Path, ".")
	out := map[string]any{
		"name": path.Base(where), "type": kind, "path": where, "size": e.Info.Size(), "mode": uint32(e.Info.Mode().Perm()), "uid": user, "gid": user,
		"atime": stamp(e.Accessed), "mtime": stamp(e.Modified), "ctime": stamp(e.Changed),
	}
	if e.Target != "" {
		out["target"] = e.Target
	}
	return out
}

// told answers with an entry.
func (c *call) told(code int, e volume.Entry, err error) error {
	if err == nil {
		reply(c.w, code, volumeStat(e))
	}
	return err
}

func (s *server) volumeEntry(c *call) error {
	return s.inVolume(c, false, func(content *volume.Content, name string) error {
		e, err := content.Stat(name)
		return c.told(http.StatusOK, e, err)
	})
}

func (s *server) changeVolumeEntry(c *call) error {
	var in struct{ UID, GID, Mode *int64 }
	if err := c.read(&in); err != nil {
		return err
	}
	for _, n := range []*int64{in.UID, in.GID} {
		if n != nil && strconv.FormatInt(*n, 10) != sandboxUID {
			return invalid("uid, gid: what is in a volume belongs to the user of sandboxes, " + sandboxUID)
		}
	}
	if in.Mode != nil && (*in.Mode < 0 || *in.Mode > 0o777) {
		return invalid("mode is the number of permission bits, from 0 to 511")
	}
	return s.inVolume(c, true, func(content *volume.Content, name string) error {
		e, err := content.Stat(name)
		if err == nil && in.Mode != nil {
			e, err = content.SetMode(name, fs.FileMode(*in.Mode)) //nolint:gosec // it was looked at
		}
		return c.told(http.StatusOK, e, err)
	})
}

func (s *server) removeVolumeEntry(c *call) error {
	return s.inVolume(c, true, func(content *volume.Content, name string) error {
		err := content.Remove(name)
		if err == nil {
			c.w.WriteHeader(http.StatusNoContent)
		}
		return err
	})
}

func (s *server) listVolume(c *call) error {
	depth := 1
	if text := c.URL.Query().Get("depth"); text != "" {
		var err error
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 || depth > 100 {
			return invalid("depth is a number from 1 to 100")
		}
	}
	return s.inVolume(c, false, func(content *volume.Content, name string) error {
		all, err := content.List(name, depth)
		if err != nil {
			return err
		}
		out := []map[string]any{}
		for _, e := range all {
			out = append(out, volumeStat(e))
		}
		reply(c.w, http.StatusOK, out)
		return nil
	})
}

func (s *server) makeVolumeFolder(c *call) error {
	mode, err := c.volumeMode(0o755)
	if err != nil {
		return err
	}
	return s.inVolume(c, true, func(content *volume.Content, name string) error {
		e, err := content.MakeFolder(name, mode, c.URL.Query().Get("force") == "true")
		return c.told(http.StatusCreated, e, err)
	})
}

func (s *server) readVolumeFile(c *call) error {
	return s.inVolume(c, false, func(content *volume.Content, name string) error {
		f, size, err := content.Read(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		c.w.Header().Set("Content-Type", "application/octet-stream")
		c.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		c.w.WriteHeader(http.StatusOK)
		_, _ = io.CopyN(c.w, f, size) // nobody can be told
		return nil
	})
}

// writeVolumeFile takes a file, in the place of one that is there.
func (s *server) writeVolumeFile(c *call) error {
	mode, err := c.volumeMode(0o644)
	if err != nil {
		return err
	}
	most, err := s.Hub.MayGrow(c.Context(), c.who, volumeOf(c.PathValue("id")), math.MaxInt64-1)
	if err != nil {
		return noVolume(err, c.PathValue("id"))
	}
	return s.inVolume(c, true, func(content *volume.Content, name string) error {
		e, err := content.Write(name, c.Body, mode, c.URL.Query().Get("force") != "false", most)
		return c.told(http.StatusCreated, e, err)
	})
}
