package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/code/advice"
	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// historyFlags are the flags of commands that leave something in the history.
type historyFlags struct {
	Continue  bool `help:"Go on with the conversation that was used last, or with the one whose id comes first: --continue cnv_... QUESTION."`
	NoHistory bool `help:"Keep nothing of this in the history."`
}

// talkFlags are the flags of the commands that ask a model.
type talkFlags struct {
	Model string `placeholder:"PROVIDER/NAME" help:"openai/..., anthropic/..., ollama/... or replay:FILE. Without it: COVE_MODEL, the config file, then what the environment offers."`
	fileFlags
	sessionFlags
	sandboxFlags
	networkFlags
	installFlags
	displayFlags
	envFlags
	toolFlags
	serverFlags
	historyFlags
	tryFlags
	Kernels  int  `placeholder:"N" help:"Let the model have programs of one answer run at the same time, in up to N kernels besides the main one (at most 8)."`
	MaxSteps int  `default:"${max_steps}" placeholder:"N" help:"How often the model may run code for one question (default: ${max_steps})."`
	AskFirst bool `name:"ask" help:"Show each program of the model's before it runs, and run it when you say so."`
	Check    bool `help:"Look at each program of the model's when it has run, for mistakes and slow forms; the model is told of them too."`
}

// settings are those of the program with the flags on top. What can be wrong with flags alone is found.
func (f talkFlags) settings(p *Program) (config.Config, error) {
	cfg, err := f.config(p)
	if err != nil {
		return cfg, err
	}
	f.install(&cfg)
	if f.MaxSteps < 1 {
		return cfg, problem.New(problem.Usage, "--max-steps must be at least 1")
	}
	if err := f.checkTries(); err != nil {
		return cfg, err
	}
	if _, tty := terminal.Descriptor(p.In); f.AskFirst && !tty {
		return cfg, problem.New(problem.Usage, "--ask needs a terminal to ask on, and standard input is not a terminal").WithHint("leave --ask out, or bring data with -f instead of a pipe")
	}
	cfg.Turn.MaxSteps, cfg.Store.History = f.MaxSteps, cfg.Store.History && !f.NoHistory
	return cfg, f.check(cfg)
}

// offered is what the code of an answer has besides its sandbox.
type offered struct {
	tools, ask []string
	kernels    int
}

func (f talkFlags) offered() offered { return offered{f.Tools, f.AskTools, f.Kernels} }

// question takes the id of the conversation to go on with, "" for the last, away from the words.
func (c *askCmd) question() (goOnWith string, words []string, err error) {
	if !c.Continue || len(c.Prompt) == 0 || !regexp.MustCompile(`^(cnv|trn|exe)_\w*$`).MatchString(c.Prompt[0]) {
		return "", c.Prompt, nil
	}
	id := c.Prompt[0]
	if !ident.Valid(ident.Conversation, id) && !ident.Valid(ident.Turn, id) {
		return "", nil, problem.New(problem.IDInvalid, id+" is not the id of a conversation").WithHint("`cove history` lists conversations")
	}
	return id, c.Prompt[1:], nil
}

// filesAmongWords takes the files away that stand before the words of a question: after -f a shell puts all that fit an unquoted pattern there.
func (c *askCmd) filesAmongWords(p *Program, words []string) ([]string, error) {
	n := 0
	for n < len(words)-1 && isFile(words[n]) {
		n++
	}
	switch {
	case n == 0 && (len(words) != 1 || !isFile(words[0])):
		return words, nil
	case n == 0:
		return nil, problem.New(problem.Usage, oneLine(words[0])+" is a file and no question").WithHint(fmt.Sprintf(`ask about it: cove ask -f %s "What is in it?"`, oneLine(words[0])))
	case len(c.File) == 0:
		return nil, problem.New(problem.Usage, oneLine(words[0])+" is a file, and without -f it would be a part of the question").WithHint("put -f before it: cove ask -f " + oneLine(words[0]) + " ...")
	}
	if !c.Quiet {
		notef(p.Err, "%s too, as if -f were before each", oneLine(strings.Join(words[:n], ", ")))
	}
	c.File = append(c.File, words[:n]...)
	return words[n:], nil
}

// isFile says whether a word of a question is the path of a file: one that is there and has an ending or a folder in its name.
func isFile(word string) bool {
	if strings.ContainsAny(word, " \n") || !strings.ContainsAny(word, "./") {
		return false
	}
	info, err := os.Stat(word)
	return err == nil && info.Mode().IsRegular()
}

// lookTime bounds one script of a look at the model's code.
const lookTime = 30 * time.Second

// talking opens what answers questions, has use talk to it and ends it.
type talking struct {
	p   *Program
	cfg config.Config
	talkFlags
	goOnWith string
	command  string
	outlives bool // what is talked goes on when the interruption that it was opened with is over

	base, key string      // the server, or
	model     model.Model // what is asked here
	choice    choose.Choice
}

// reach finds the server to ask, or the model to ask from here.
func (t *talking) reach(ctx context.Context) (err error) {
	if t.base, t.key, err = t.remote(t.cfg); err != nil || t.base != "" {
		return err
	}
	live := t.p.signs(t.Quiet)
	live.Await(lang.Text("looking for a model"))
	choice, err := choose.Model(ctx, t.cfg, t.asked())
	live.Over()
	if err != nil {
		return err
	}
	if choice.Because != "" && !t.Quiet {
		notef(t.p.Err, "using %s, because %s", oneLine(choice.String()), lang.Text(choice.Because))
	}
	t.choice = choice
	t.model, err = t.p.NewModel(choice)
	return err
}

// mayAsk says whether the user can be asked about code: because that was wanted, or because a conversation on a server may want it.
func (t *talking) mayAsk() bool {
	_, tty := terminal.Descriptor(t.p.In)
	return t.AskFirst || t.base != "" && tty
}

// talk opens what was reached.
func (t *talking) talk(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (int, error) {
	if t.base != "" {
		return t.remotely(i, inputs, out, use)
	}
	if t.Tries != nil {
		return t.inTries(i, inputs, out, use)
	}
	return t.locally(i, inputs, out, use)
}

// locally asks in this process: in the session that is named, in the one that the conversation has, or in a new one.
func (t *talking) locally(i *interruption, inputs []input, out *outFolder, use func(talker) (int, error)) (code int, err error) {
	var tools hub.ToolServers
	if len(t.Tools) > 0 {
		servers, err := t.open(t.p, t.cfg)
		if err != nil {
			return 0, err
		}
		defer servers.Close()
		tools = servers
	}
	records := t.p.openHub(i.soft, t.cfg, t.model, RecordsOptions{Command: t.command, Tools: tools})
	defer records.close()
	o := opening{cfg: t.cfg, flags: t.sandboxFlags, network: t.networkFlags, session: t.sessionFlags, command: t.command, hub: records}
	o.kept = t.p.newKept(o)
	var g *goingOn
	if t.Continue {
		if g, err = t.resumed(i.soft, records); err != nil {
			return 0, err
		}
		t.p.goOn(g, &o)
		if !t.Quiet {
			g.greet(t.p.Err)
		}
	}
	s, err := t.p.open(i.soft, o, inputs, out)
	if err != nil {
		return 0, err
	}
	defer func() {
		if i.leave.Err() != nil && t.outlives { // it was about the beginning
			i = t.p.interruptible(context.Background())
			defer i.stop()
		}
		s.settle(i.hard, &code, &err)
	}()
	if err := t.set(i.soft, s.direct(), t.p.Getenv); err != nil {
		return 0, err
	}
	l := &localTalker{choice: t.choice, p: t.p, cfg: t.cfg, session: s, meta: o.session.meta(inputs, g), offers: t.offered()}
	l.asks = &callAsker{toolAsker: t.asker(t.p), approve: func(ctx context.Context, execution string, number int, w tool.Word) error {
		_, err := records.records.Hub.ApproveCall(ctx, auth.Local(), execution, number, w)
		return err
	}}
	if g != nil {
		l.conversation, l.parent = g.conversation.ID, g.parent
	}
	if t.Check {
		steps := t.checks()
		defer steps.Close()
		l.look = func(ctx context.Context, _ int, code string) advice.Report { return steps.Look(ctx, code) }
	}
	return use(l)
}

// checks looks at the model's code in a sandbox of its own, which is started when there is some.
func (t *talking) checks() *advice.Steps {
	return &advice.Steps{Timeout: lookTime, Open: func(ctx context.Context) (advice.Session, func(), error) {
		live, err := t.p.Open(ctx, t.cfg, io.Discard)
		if err != nil {
			return nil, nil, err
		}
		return live, func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			_ = live.Close(ctx) // what could not be removed is swept by the next command
		}, nil
	}}
}

// resumed is the conversation to go on with.
func (t *talking) resumed(ctx context.Context, records *localHub) (*goingOn, error) {
	past, err := records.wait(ctx)
	if err != nil {
		return nil, err
	}
	return continued(ctx, localPast{past}, t.goOnWith)
}

// longestMeta is what the hub takes as the text of one entry of metadata, in characters.
const longestMeta = 512

// meta is what the conversation remembers.
func (f sessionFlags) meta(inputs []input, g *goingOn) map[string]string {
	meta := map[string]string{}
	if f.Session != "" {
		meta[metaSession] = f.Session
	}
	var names []string
	if g != nil {
		names = fileNames(g.conversation)
	}
	for _, in := range inputs {
		if name := strings.ReplaceAll(in.name, "\n", " "); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := ""
	for _, n := range names {
		next := strings.TrimPrefix(text+"\n"+n, "\n")
		if utf8.RuneCountInString(next) > longestMeta {
			break
		}
		text = next
	}
	if text != "" {
		meta[metaFiles] = text
	}
	return meta
}
