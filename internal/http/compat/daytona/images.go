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

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
)

// An image is built from the lines of a Dockerfile, which is how clients say what they want (the class Image): a session in which the steps ran, that sandboxes are forked from.
const (
	kindImage = "image"

	imageLife    = 7 * 24 * time.Hour // an image is built anew afterwards
	longestStep  = 30 * time.Minute
	longestBuild = 2 * time.Hour
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
func (b buildInfo) recipe(may builder.May) (builder.Recipe, error) {
	if err := checkContexts(b.Contexts); err != nil {
		return builder.Recipe{}, err
	}
	r, err := builder.ParseDockerfile(b.Dockerfile, nil, may)
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		return r, b.unbuildable(f)
	}
	if err != nil {
		return r, err
	}
	r.Steps = slices.DeleteFunc(r.Steps, func(s builder.Step) bool {
		return !r.Fetched && s.Kind == builder.Run && needless().MatchString(s.Command)
	})
	for i, s := range r.Steps {
		if s.Kind != builder.Copy {
			continue
		}
		if len(b.Contexts) == 0 {
			return r, b.unbuildable(&builder.Fault{Line: s.Line, Message: "the files that it copies were not uploaded (contextHashes); add_local_file, add_local_dir and from_dockerfile upload them"})
		}
		r.Steps[i].Archive = strings.Join(b.Contexts, ",")
	}
	return r, nil
}

// unbuilt is an image that has to be built before there can be a sandbox of it.
type unbuilt struct {
	name   string
	info   buildInfo
	recipe builder.Recipe
}

// fetched is the image that its session begins from itself; "": cove's own session stands for it.
func (u unbuilt) fetched() string {
	if !u.recipe.Fetched {
		return ""
	}
	return u.recipe.Image
}

// imageOf returns the image that a client wants, or what to build where the caller has none that is the same; that of cove's base needs no building.
func (s *Server) imageOf(ctx context.Context, who auth.Principal, b buildInfo, cpu, memory int64) (basis, error) {
	recipe, err := b.recipe(s.Hub.MayBeginFrom)
	if err != nil || len(recipe.Steps) == 0 && recipe.Start == "" && !recipe.Fetched {
		return basis{}, err
	}
	name := recipe.Final(fmt.Sprintf("root %v, %d CPUs, %d GiB", s.Root, cpu, memory))
	row, err := s.named(ctx, who, kindImage, name)
	if err == nil {
		r, _ := recordOf(row, kindImage)
		return basis{id: row.ID, record: r}, nil
	}
	if !problem.Is(err, problem.NotFound) {
		return basis{}, err
	}
	if err := s.uploaded(ctx, who, b.Contexts); err != nil {
		return basis{}, err
	}
	return basis{unbuilt: &unbuilt{name, b, recipe}}, nil
}
