package daytona

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/auth"
	"cove/internal/builder"
	"cove/internal/hub"
	"cove/internal/problem"
)

// An image is built from the lines of a Dockerfile, which is how clients say what they want (the class Image): a session in which the steps ran, that sandboxes are forked from.
const (
	kindImage    = "image"
	kindBuilding = "building" // until it is one

	imageLife   = 7 * 24 * time.Hour // an image is built anew afterwards
	longestLoad = 30 * time.Minute   // of one step
)

// needless are commands that clients write into an image by themselves (Image.debian_slim), and that make nothing which a session does not have.
var needless = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(apt-get update|apt-get install -y gcc gfortran build-essential|pip install --upgrade pip|echo 'debconf debconf/frontend select Noninteractive' \| debconf-set-selections)$`)
})

// image is the name of an image as a Dockerfile has it.
func image(name string) buildInfo { return buildInfo{Dockerfile: "FROM " + name} }

// unbuildable says which line of an image is at fault.
func (b buildInfo) unbuildable(f *builder.Fault) error {
	lines := strings.Split(b.Dockerfile, "\n")
	if f.Line < 1 || f.Line > len(lines) {
		return invalid("the image cannot be built: " + f.Message)
	}
	return invalid(fmt.Sprintf("line %d of the image, %q, is not possible: %s", f.Line, bounded(strings.TrimSpace(lines[f.Line-1])), f.Message))
}

// recipe reads what a client wants to have built. Problems name the line.
func (b buildInfo) recipe() (builder.Recipe, error) {
	if len(b.Contexts) > 0 {
		return builder.Recipe{}, invalid("buildInfo.contextHashes: " + missing["object-storage"])
	}
	r, err := builder.ParseDockerfile(b.Dockerfile, nil)
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		return r, b.unbuildable(f)
	}
	if err != nil {
		return r, err
	}
	r.Steps = slices.DeleteFunc(r.Steps, func(s builder.Step) bool { return s.Kind == builder.Run && needless().MatchString(s.Command) })
	for _, s := range r.Steps {
		if s.Kind == builder.Copy {
			return r, b.unbuildable(&builder.Fault{Line: s.Line, Message: missing["object-storage"]})
		}
	}
	return r, nil
}

// imageOf returns the image that a client wants, which is built where the caller has none that is the same; that of cove's base needs no building. The request waits for it.
func (s *Server) imageOf(ctx context.Context, who auth.Principal, b buildInfo, cpu, memory int64) (basis, error) {
	recipe, err := b.recipe()
	if err != nil || len(recipe.Steps) == 0 && recipe.Start == "" {
		return basis{}, err
	}
	name := recipe.Final(fmt.Sprintf("root %v, %d CPUs, %d GiB", s.Root, cpu, memory))
	row, err := s.named(ctx, who, kindImage, name)
	if err == nil {
		r, _ := recordOf(row, kindImage)
		return basis{row.ID, r}, nil
	}
	if !problem.Is(err, problem.NotFound) {
		return basis{}, err
	}
	now := time.Now().UTC()
	r := record{Name: name, Created: now, Changed: now, Seen: now, AutoDelete: -1}
	n := hub.NewSession{CPUs: float64(cpu), Memory: memory << 30, Root: s.Root, Life: 4 * longestLoad, Idle: 4 * longestLoad}
	if n.Metadata, err = r.entries(kindBuilding, nil); err != nil {
		return basis{}, err
	}
	if n.Network, err = s.Hub.WidestNetwork(ctx, who); err != nil {
		return basis{}, err
	}
	if row, err = s.Hub.CreateSession(ctx, who, n); err != nil {
		return basis{}, err
	}
	if r, err = s.build(ctx, who, row, r, recipe); err != nil {
		s.discard(ctx, who, row.ID)
	}
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		err = b.unbuildable(f)
	}
	return basis{row.ID, r}, err
}

// build makes a session into an image.
func (s *Server) build(ctx context.Context, who auth.Principal, row hub.Session, r record, recipe builder.Recipe) (record, error) {
	setting, err := builder.Build(ctx, builder.Options{Hub: s.Hub, Who: who, Session: row.ID, Root: s.Root, Recipe: recipe, StepTime: longestLoad})
	if err != nil {
		return r, err
	}
	if _, err = s.Hub.PauseSession(ctx, who, row.ID); err != nil {
		return r, err
	}
	r.Env, r.Dir = setting.Env, setting.Dir
	all, err := r.entries(kindImage, row.Metadata)
	if err != nil {
		return r, err
	}
	life := imageLife
	_, err = s.Hub.ChangeSession(ctx, who, row.ID, hub.SessionChange{Metadata: all, Life: &life})
	return r, err
}
