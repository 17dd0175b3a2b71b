package builder

import (
	"context"
	"path"
	"strconv"
	"strings"

	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

// copyScript copies sources to a place: $1 is that, $2 the mode or "", $3 says with 1 that it is a folder, and what follows are the sources. A folder's content goes there, a
// file goes into a folder or becomes the file.
const copyScript = makeFolders + `to=$1 mode=$2 into=$3; shift 3
if [ -d "$to" ]; then into=1; fi
if [ "$into" = 1 ]; then make "$to"; else make "$(dirname "$to")"; fi
for from in "$@"; do
	[ -z "$owner" ] || chown -hR "$owner" "$from"
	[ -z "$mode" ] || { [ -L "$from" ] || chmod -R "$mode" "$from"; }
	if [ -d "$from" ] && [ ! -L "$from" ]; then
		make "$to"; cp -a "$from/." "$to/"
	elif [ "$into" = 1 ]; then
		cp -a "$from" "$to/"
	else
		cp -aT "$from" "$to"
	fi
done
`

// copy unpacks the archive of a step into a folder of its own, as user and therefore with no more than its rights, and copies from there what the step names.
func (b *build) copy(ctx context.Context, s Step) error {
	to, owner, err := b.destination(ctx, s)
	if err != nil {
		return err
	}
	content, err := b.Archive(ctx, s.Archive)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	stage := "/tmp/.cove-build-" + strconv.Itoa(b.step)
	var all unpacked
	err = b.Hub.UseFiles(ctx, b.Who, b.Session, hub.FilesUse{Action: "session.file.write", Paths: []string{stage}}, func(ctx context.Context, f guestlink.Files) error {
		all, err = unpack(ctx, content, stage, f)
		return err
	})
	if err == nil {
		err = b.place(ctx, s, all, stage, to, owner)
	}
	// After a failure too: the log then says what failed first.
	if removed := b.script(context.WithoutCancel(ctx), "remove the archive", `rm -rf "$1"`, "", stage); err == nil {
		err = removed
	}
	return err
}

// place copies what a step names from where it was unpacked.
func (b *build) place(ctx context.Context, s Step, all unpacked, stage, to, owner string) error {
	var from []string
	for _, source := range s.Sources {
		source, err := b.expand(ctx, source)
		if err != nil {
			return err
		}
		found, err := all.match(source)
		if err != nil {
			return err
		}
		for _, name := range found {
			from = append(from, path.Join(stage, name))
		}
	}
	into := "0"
	if len(from) > 1 || strings.HasSuffix(to, "/") || strings.HasSuffix(to, "/.") {
		into = "1"
	}
	return b.script(ctx, s.shown(), copyScript, owner, append([]string{path.Clean(to), s.Mode, into}, from...)...)
}

// destination is where a copy goes, and whose it becomes.
func (b *build) destination(ctx context.Context, s Step) (to, owner string, err error) {
	if to, err = b.expand(ctx, s.To); err != nil {
		return "", "", err
	}
	if !path.IsAbs(to) {
		folder := strings.HasSuffix(to, "/") || to == "." || to == "./"
		if to = path.Join(b.Dir, to); folder {
			to += "/"
		}
	}
	owner = b.User
	if s.Owner != "" {
		if owner, err = b.userOf(ctx, s.Owner); err != nil {
			return "", "", err
		}
	}
	return to, owner, nil
}
