// Command evaluate says how often the package names is right: it resolves the primary module of every distribution of a truth that
// the table was not made from, and prints what was right, wrong and not answered, and the misses.
//
// Right is an answer whose first candidate is the distribution or one of the reviewed group of builds, forks and new names of it
// (data/interchangeable.txt). The primary module is chosen by wheelfiles.Primary and nothing is left out afterwards; what never counts as truth is said at
// each reader: distributions outside of the list of popular projects, and those without a module of their own.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"strings"

	"cove/internal/python/deps/names"
	"cove/tools/names/wheelfiles"
)

// truth is what a distribution is known to provide.
type truth struct {
	dist    string
	modules []string
}

func main() {
	debian := flag.String("debian", "", "Debian's lists of contents, separated by commas; apt-file's are found by themselves")
	wheels := flag.String("wheels", "", "folder with wheels or with unpacked or installed ones, at any depth")
	python := flag.String("python", "3.13", "version of Python to ask for")
	heldout := flag.Bool("heldout-misses", false, "print the misses of the held-out half of Debian's as well; never look at them before the last change to the table")
	sample := flag.Int("sample", 0, "print that many lines of the held-out half (distribution, primary module) instead: the gate of the package's tests")
	flag.Parse()
	if err := run(*debian, *wheels, *python, *heldout, *sample); err != nil {
		fmt.Fprintln(os.Stderr, "evaluate:", err)
		os.Exit(1)
	}
}

func run(debian, wheels, python string, heldout bool, sample int) error {
	lists := debianLists(debian)
	if len(lists) == 0 && wheels == "" {
		return fmt.Errorf("there is no truth: run apt-file update on Debian, or name a folder with -wheels")
	}
	if len(lists) > 0 {
		all, err := fromDebian(lists, shared)
		if err != nil {
			return err
		}
		dev, held := halves(all)
		if sample > 0 {
			printSample(held, sample)
			return nil
		}
		report("Debian, the half for tuning", dev, python, true)
		report("Debian, the half held out", held, python, heldout)
	}
	if wheels != "" {
		all, err := fromWheels(wheels, shared)
		if err != nil {
			return err
		}
		report("wheels in "+wheels, all, python, true)
	}
	return nil
}

func shared(dotted string) bool {
	is, _ := names.Namespace(dotted)
	return is
}

// halves splits by a hash of the name, so that a distribution is always in the same half.
func halves(all []truth) (dev, held []truth) {
	for _, t := range all {
		h := fnv.New32a()
		h.Write([]byte("cove" + t.dist))
		if h.Sum32()>>7&1 == 0 {
			dev = append(dev, t)
		} else {
			held = append(held, t)
		}
	}
	return dev, held
}

type outcome struct {
	truth
	rank    int
	primary string
	answer  names.Answer
}

func (o outcome) verdict() string {
	if o.answer.Status != names.Found {
		return "none"
	}
	if o.answer.Distribution == o.dist {
		return "right"
	}
	for _, other := range names.Interchangeable(o.dist) {
		if other == o.answer.Distribution {
			return "right"
		}
	}
	return "wrong"
}

// judge asks for the primary module of every distribution of the list, the popular ones first.
func judge(all []truth, python string) []outcome {
	var outcomes []outcome
	for _, t := range all {
		primary := wheelfiles.Primary(t.dist, t.modules)
		if rank := names.Rank(t.dist); rank > 0 && primary != "" && !strings.HasPrefix(primary, "_") {
			outcomes = append(outcomes, outcome{t, rank, primary, names.Resolve(primary, python)})
		}
	}
	sort.Slice(outcomes, func(i, j int) bool { return outcomes[i].rank < outcomes[j].rank })
	return outcomes
}

func report(title string, all []truth, python string, misses bool) {
	outcomes := judge(all, python)
	fmt.Printf("%s\n  %-10s %6s %8s %8s %8s %22s\n", title, "", "dists", "right", "wrong", "none", "wrong / none (count)")
	for _, tier := range []int{1000, 5000, 15000} {
		count := map[string]int{}
		for _, o := range outcomes {
			if o.rank <= tier {
				count[o.verdict()]++
			}
		}
		total := count["right"] + count["wrong"] + count["none"]
		share := func(what string) float64 { return 100 * float64(count[what]) / float64(max(total, 1)) }
		fmt.Printf("  top %-6d %6d %7.2f%% %7.2f%% %7.2f%% %15d / %d\n", tier, total, share("right"), share("wrong"), share("none"), count["wrong"], count["none"])
	}
	for _, o := range outcomes {
		if v := o.verdict(); misses && v != "right" {
			said := o.answer.Distribution
			if said == "" {
				said = string(o.answer.Status)
			}
			fmt.Printf("    %-5s %5d %-30s import %-30s -> %s (%s)\n", v, o.rank, o.dist, o.primary, said, o.answer.Reason)
		}
	}
}

func printSample(all []truth, n int) {
	var lines []string
	for _, t := range all {
		primary := wheelfiles.Primary(t.dist, t.modules)
		if names.Rank(t.dist) > 0 && primary != "" && !strings.HasPrefix(primary, "_") {
			h := fnv.New32a()
			h.Write([]byte("sample" + t.dist))
			lines = append(lines, fmt.Sprintf("%08x\t%s\t%s", h.Sum32(), t.dist, primary))
		}
	}
	sort.Strings(lines)
	for _, line := range lines[:min(n, len(lines))] {
		_, rest, _ := strings.Cut(line, "\t")
		fmt.Println(rest)
	}
}
