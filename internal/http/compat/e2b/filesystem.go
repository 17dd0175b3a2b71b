package e2b

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"cove/internal/core/problem"
	"cove/internal/http/compat/e2b/envd"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

// attribute begins the names of the extended attributes that have a client's metadata of a file, after the "user." that all have.
const attribute = "e2b."

// folderSize is that of a folder, in bytes, as file systems on disks say it: cove counts none for folders, and clients take 0 for nothing.
const folderSize = 4096

// files is the agent's service for files.
type files struct{ s *server }

var _ envd.FilesystemHandler = files{}

// place is a sandbox and a path in it.
func (f files) place(ctx context.Context, p string) (sandbox, string, error) {
	b := sandboxOf(ctx)
	user, err := b.userOf(header(ctx))
	if err != nil {
		return sandbox{}, "", err
	}
	b.user = user
	full, err := absolute(user, p)
	return b, full, err
}

// look uses files without changing them, change with.
func (f files) look(ctx context.Context, b sandbox, p string, use func(ctx context.Context, f guestlink.Files) error) error {
	return rpcFault(f.s.Hub.UseFiles(ctx, b.who, b.id, hub.FilesUse{Paths: []string{p}, Root: f.s.asRoot(b.user)}, use))
}

func (f files) change(ctx context.Context, b sandbox, action string, use func(ctx context.Context, f guestlink.Files) error, paths ...string) error {
	return rpcFault(f.s.Hub.UseFiles(ctx, b.who, b.id, hub.FilesUse{Action: action, Paths: paths, Root: f.s.asRoot(b.user)}, use))
}

// infoOf is an entry in the agent's words: a symbolic link has the type of what it leads to.
func infoOf(n filesystem.Entry) *envd.EntryInfo {
	kind := n.Kind
	out := &envd.EntryInfo{
		Name: path.Base(n.Full), Path: n.Full, Size: n.Size, Mode: n.Mode & 0o777, Permissions: n.Symbolic(), Owner: n.Owner, Group: n.Group, ModifiedTime: timestamppb.New(n.Modified),
		Metadata: metadataOf(n),
	}
	if n.Kind == filesystem.Link {
		kind = n.To
		if n.Resolved != "" {
			out.SymlinkTarget = &n.Resolved
		}
	}
	switch kind {
	case filesystem.File:
		out.Type = envd.FileType_FILE_TYPE_FILE
	case filesystem.Folder:
		out.Type = envd.FileType_FILE_TYPE_DIRECTORY
		out.Size = max(out.Size, folderSize)
	case filesystem.Link:
		out.Type = envd.FileType_FILE_TYPE_SYMLINK
	}
	return out
}

// metadataOf is what of a file's attributes a client has set.
func metadataOf(n filesystem.Entry) map[string]string {
	var out map[string]string
	for name, value := range n.Attributes {
		if key, ok := strings.CutPrefix(name, attribute); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// Stat describes a file, folder or link.
func (f files) Stat(ctx context.Context, in *envd.StatRequest) (*envd.StatResponse, error) {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return nil, err
	}
	out := &envd.StatResponse{}
	err = f.look(ctx, b, p, func(ctx context.Context, use guestlink.Files) error {
		n, err := use.StatPath(ctx, p, true)
		out.Entry = infoOf(n)
		return err
	})
	return out, err
}

// ListDir lists a folder, down to a depth.
func (f files) ListDir(ctx context.Context, in *envd.ListDirRequest) (*envd.ListDirResponse, error) {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return nil, err
	}
	out := &envd.ListDirResponse{}
	err = f.look(ctx, b, p, func(ctx context.Context, use guestlink.Files) error {
		n, err := use.StatPath(ctx, p, false)
		if err != nil {
			return err
		}
		if n.Kind != filesystem.Folder {
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path is not a directory: %s", p))
		}
		depth := min(max(int(in.GetDepth()), 1), filesystem.DeepestList)
		all, more, _, err := use.ListPath(ctx, p, depth)
		if err == nil && more {
			err = connect.NewError(connect.CodeResourceExhausted, errors.New("the folder has more entries than one listing holds; list its folders one by one"))
		}
		for _, n := range all {
			out.Entries = append(out.Entries, infoOf(n))
		}
		return err
	})
	return out, err
}

// MakeDir makes a folder and those on the way to it.
func (f files) MakeDir(ctx context.Context, in *envd.MakeDirRequest) (*envd.MakeDirResponse, error) {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return nil, err
	}
	out := &envd.MakeDirResponse{}
	if made, err := f.s.makeFolder(ctx, b, b.user, p); made || err != nil && !problem.Has(err, problem.FileExists) {
		if err != nil {
			return nil, rpcFault(err)
		}
		return out, f.look(ctx, b, p, func(ctx context.Context, use guestlink.Files) error {
			n, err := use.StatPath(ctx, p, false)
			out.Entry = infoOf(n)
			return err
		})
	}
	err = f.change(ctx, b, "session.folder.make", func(ctx context.Context, use guestlink.Files) error {
		n, err := use.MakePath(ctx, p, filesystem.Set{}, true)
		if problem.Has(err, problem.FileExists) {
			if old, statErr := use.StatPath(ctx, p, false); statErr == nil && old.Kind != filesystem.Folder {
				return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path already exists but it is not a directory: %s", p))
			}
			return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", p))
		}
		out.Entry = infoOf(n)
		return err
	}, p)
	return out, err
}

// Move gives a file or folder another name, and makes the folders on the way to it.
func (f files) Move(ctx context.Context, in *envd.MoveRequest) (*envd.MoveResponse, error) {
	b, from, err := f.place(ctx, in.GetSource())
	if err != nil {
		return nil, err
	}
	_, to, err := f.place(ctx, in.GetDestination())
	if err != nil {
		return nil, err
	}
	out := &envd.MoveResponse{}
	err = f.change(ctx, b, "session.file.move", func(ctx context.Context, use guestlink.Files) error {
		if _, err := use.StatPath(ctx, from, true); err != nil {
			return err
		}
		if _, err := use.MakePath(ctx, path.Dir(to), filesystem.Set{}, false); err != nil {
			return err
		}
		n, err := use.MovePath(ctx, filesystem.Copy{From: from, To: to, Replace: true})
		out.Entry = infoOf(n)
		return err
	}, from, to)
	return out, err
}

// Remove removes a file, or a folder with all that is in it. That it is not there is fine.
func (f files) Remove(ctx context.Context, in *envd.RemoveRequest) (*envd.RemoveResponse, error) {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return nil, err
	}
	return &envd.RemoveResponse{}, f.change(ctx, b, "session.file.remove", func(ctx context.Context, use guestlink.Files) error {
		err := use.RemovePath(ctx, p, true)
		if problem.Has(err, problem.FileNotFound) {
			return nil
		}
		return err
	}, p)
}
