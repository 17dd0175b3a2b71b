package gvisor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/volume"
)

// No quota of the host's holds everywhere, so that volumes are watched. To count one is work: it is done when the disk has become so much fuller that the volume may be beyond its bound, and
// now and then. What a sandbox writes until it is ended is beyond the bound; one that holds a twentieth more than it may is given to no sandbox.
const (
	volumeInterval = 250 * time.Millisecond
	volumeAtLeast  = time.Minute
)

// watchedVolume is a volume as it was counted last.
type watchedVolume struct {
	sandbox.VolumeMount
	taken       volume.Taken
	at          time.Time
	pause       time.Duration // until it may be counted again: a tenth of the time goes into that at most
	free, files uint64        // of its disk
}

func (v *watchedVolume) count() (err error) {
	if err := v.look(&v.free, &v.files); err != nil {
		return err
	}
	began := time.Now()
	v.taken, err = volume.Measure(v.Folder)
	v.at = time.Now()
	v.pause = 10 * v.at.Sub(began)
	return err
}

func (v *watchedVolume) look(free, files *uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(v.Folder, &st); err != nil {
		return fmt.Errorf("look at a volume's disk: %w", err)
	}
	*free, *files = st.Bfree*uint64(st.Bsize), st.Ffree //nolint:gosec // a block's size
	return nil
}

// due says whether the volume may hold more than it may by now.
func (v *watchedVolume) due() bool {
	var free, files uint64
	if time.Since(v.at) < v.pause {
		return false
	}
	if v.look(&free, &files) != nil || time.Since(v.at) > volumeAtLeast {
		return true
	}
	left := uint64(max(v.Most-v.taken.Bytes, 0))                    //nolint:gosec // not below 0
	leftFiles := uint64(max(volume.MostEntries-v.taken.Entries, 0)) //nolint:gosec // the same
	grown := func(before, now, room uint64) bool { return before > now && before-now > room/2 }
	return v.Most > 0 && grown(v.free, free, left) || grown(v.files, files, leftFiles)
}

func (v *watchedVolume) fault() error {
	what := fmt.Sprintf("%d MiB", v.Most>>20)
	if v.Most <= 0 || v.taken.Bytes <= v.Most {
		what = fmt.Sprintf("%d files and folders", volume.MostEntries)
	}
	return problem.New(problem.VolumeFull, fmt.Sprintf("a volume of the session holds more than it may, which is %s", what)).
		WithHint("delete files in it, or the volume; the operator can raise limits.volume")
}

// countVolumes counts the volumes of a new sandbox. One that is far beyond its bound is refused.
func countVolumes(all []sandbox.VolumeMount) (watched []*watchedVolume, err error) {
	for _, m := range all {
		v := &watchedVolume{VolumeMount: m}
		if err := v.count(); err != nil {
			return nil, err
		}
		if v.taken.Above(v.Most + v.Most/20) {
			return nil, v.fault()
		}
		watched = append(watched, v)
	}
	return watched, nil
}

// watchVolumes ends the sandbox when a volume of it has come to hold more than it may. One that did before can be made smaller.
func (s *running) watchVolumes(all []*watchedVolume) {
	tick := time.NewTicker(volumeInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		for _, v := range all {
			if !v.due() {
				continue
			}
			before := v.taken
			if v.count() != nil || !v.taken.Above(v.Most) || v.taken.Bytes <= before.Bytes && v.taken.Entries <= before.Entries && !v.taken.TooDeep {
				continue
			}
			full := v.fault()
			s.full.Store(&full)
			_ = unix.Kill(s.sentry, unix.SIGKILL)
			return
		}
	}
}
