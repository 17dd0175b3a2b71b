package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
	"cove/internal/server/hub"
)

// chatHelp is what may be entered beside questions, and what it does.
var chatHelp = [][2]string{
	{"/edit", "write the next question in your editor (EDITOR), from the last one"},
	{"/retry", "ask the last question again, as if it had not been answered"},
	{"/undo", "take the last question and its answer back; files and variables stay as they are"},
	{"/run CODE", "run Python in the same session yourself"},
	{"/file PATH ...", "put files or folders into the workspace"},
	{"/files", "list the files of the workspace"},
	{"/get FILE", "copy a file of the workspace into the out folder"},
	{"/save FILE", "write the conversation to FILE.ipynb, FILE.md or FILE.py"},
	{"/model NAME", "ask another model from now on"},
	{"/models", "list the models that there are"},
	{"/usage", "say what this conversation has used"},
	{"/new", "begin a new conversation"},
	{"/quit", "leave; so does Ctrl-D"},
	{`"""`, `begins and ends a text of several lines; a \ at the end of a line goes on in the next`},
	{"Ctrl-C", "stops an answer, not the conversation"},
}

// chatCommands are the words that begin with a slash.
func chatCommands() []string {
	var all []string
	for _, row := range chatHelp {
		if word, _, _ := strings.Cut(row[0], " "); strings.HasPrefix(word, "/") {
			all = append(all, word)
		}
	}
	return append(all, "/help")
}

func tellChatHelp(w io.Writer) error {
	h := newHelpText(w)
	longest := 0
	for _, row := range chatHelp {
		longest = max(longest, len(row[0]))
	}
	for _, row := range chatHelp {
		h.row(row[0], longest, 2, lang.Help(row[1]))
	}
	_, err := io.WriteString(w, h.String())
	return err
}

// completeChat returns what may stand in the place of what is before the cursor, from start on: commands, and the files of those that take one.
func completeChat(_ context.Context, text string, cursor int) (matches []string, start int) {
	before := string([]rune(text)[:cursor])
	word, rest, more := strings.Cut(before, " ")
	if !strings.HasPrefix(word, "/") || strings.Contains(before, "\n") {
		return nil, 0
	}
	if !more {
		for _, c := range chatCommands() {
			if strings.HasPrefix(c, word) {
				matches = append(matches, c+" ")
			}
		}
		sort.Strings(matches)
		return matches, 0
	}
	if word != "/file" && word != "/save" {
		return nil, 0
	}
	have := rest[strings.LastIndexByte(rest, ' ')+1:]
	found, _ := filepath.Glob(escapedGlob(have) + "*")
	for _, name := range found {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			name += "/"
		}
		if name == oneLine(name) {
			matches = append(matches, name)
		}
	}
	return matches, cursor - len([]rune(have))
}

// escapedGlob is a name as a pattern that it alone fits.
func escapedGlob(name string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(name)
}

// command does what begins with a slash. ask is a question that comes of it, and leave says that the conversation is over.
func (c *chat) command(ctx context.Context, line string) (ask string, leave bool, err error) {
	i := c.p.interruptible(ctx)
	defer i.stop()
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/help", "/?":
		err = tellChatHelp(c.p.Out)
	case "/quit", "/exit", "/q":
		return "", true, nil
	case "/files":
		err = c.files(i.soft)
	case "/file":
		err = c.file(i.soft, strings.Fields(rest))
	case "/get":
		err = c.get(i.soft, rest)
	case "/save":
		err = c.save(rest)
	case "/new":
		c.doc = notebook.Document{}
		c.with.Renew()
		notef(c.p.Err, "a new conversation; the files and variables are still there")
	case "/model":
		err = c.use(i.soft, rest)
	case "/models":
		err = c.models(i.soft)
	case "/usage":
		_, err = fmt.Fprintln(c.p.Out, lang.Text(spentText(c.used.usage, c.used.cost, c.used.took)))
	case "/run":
		err = c.run(i, rest)
	case "/undo":
		if ask, err = c.back(i.soft); err == nil {
			notef(c.p.Err, "taken back: %s", oneLine(hub.TitleOf(ask)))
		}
		ask = ""
	case "/retry":
		ask, err = c.back(i.soft)
	case "/edit":
		ask, err = c.edited(i.soft, rest)
	default:
		err = problem.New(problem.Usage, "there is no "+oneLine(word)).WithHint("/help lists what there is")
	}
	return ask, false, err
}

// usedUp is what a conversation has used so far.
type usedUp struct {
	usage model.Usage
	cost  model.Cost
	took  time.Duration
}

func (u *usedUp) add(usage model.Usage, cost model.Cost, took time.Duration) {
	u.usage, u.took = u.usage.Plus(usage), u.took+took
	if cost.Currency != "" {
		u.cost = model.Cost{Amount: u.cost.Amount + cost.Amount, Currency: cost.Currency}
	}
}

// back takes the last question back and returns it.
func (c *chat) back(ctx context.Context) (string, error) {
	prompt, err := c.with.Back(ctx)
	if n := len(c.doc.Turns); err == nil && n > 0 {
		c.doc.Turns = c.doc.Turns[:n-1]
	}
	return prompt, err
}

func (c *chat) edited(ctx context.Context, text string) (string, error) {
	if n := len(c.doc.Turns); text == "" && n > 0 {
		text = c.doc.Turns[n-1].Prompt
	}
	text, err := c.p.edited(ctx, text, "question.md")
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return "", err
	}
	fmt.Fprintln(c.p.Err, "› "+strings.ReplaceAll(oneLine(strings.ReplaceAll(text, "\n", "\x00")), "\x00", "\n  "))
	return c.remember([]string{text}), nil
}

func (c *chat) file(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return problem.New(problem.Usage, "which file?").WithHint("/file sales.csv")
	}
	inputs, skipped, err := collect(paths, workspaceLimit())
	if err != nil {
		return err
	}
	c.p.tellSkipped(skipped)
	if err := c.with.Put(ctx, inputs); err != nil {
		return err
	}
	for _, in := range inputs {
		c.out.inputs = append(c.out.inputs, in.info)
	}
	_, err = lang.Fprintf(c.p.Out, "%s in the workspace; the next question may be about them\n", count(len(inputs), "file"))
	return err
}

func (c *chat) models(ctx context.Context) error {
	c.p.signs(c.quiet).Await(lang.Text("asking for models"))
	defer c.p.live.Over()
	list, err := c.with.Models(ctx)
	if err != nil {
		return err
	}
	c.p.live.Over()
	return c.p.tellModels(list, c.with.Model())
}

// run runs code of the person's own, as the REPL does.
func (c *chat) run(i *interruption, code string) error {
	if code == "" {
		return problem.New(problem.Usage, "which code?").WithHint("/run df.head()")
	}
	v := &runView{p: c.p, out: c.out, quiet: c.quiet, plotly: c.p.plotly(c.cfg), live: c.p.signs(c.quiet), images: c.images}
	defer c.with.Guard(i.hard)()
	before := len(c.out.saved)
	s := c.with.Runner()
	err := v.execute(i, s, kernel.Request{Code: code, Timeout: time.Duration(c.cfg.Sandbox.Timeout), OutputLimit: int64(c.cfg.Sandbox.MaxOutput)})
	if v.done.Lost != kernel.LostSession {
		c.out.files(i.hard, s, v.files)
	}
	c.out.release()
	for _, s := range c.out.saved[min(before, len(c.out.saved)):] {
		lang.Fprintf(c.p.Err, "saved %s  %s\n", s.Path, humanSize(s.Size))
	}
	c.out.tellLosses(c.p.Err)
	v.explain()
	return err
}

func (c *chat) files(ctx context.Context) error {
	files, err := c.with.List(ctx)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		notef(c.p.Err, "the workspace has no files")
	}
	for _, f := range files {
		fmt.Fprintf(c.p.Out, "%10s  %s\n", humanSize(f.Size), oneLine(f.Path))
	}
	return nil
}

func (c *chat) get(ctx context.Context, name string) error {
	if name == "" {
		return problem.New(problem.Usage, "which file?").WithHint("/files lists them")
	}
	before := len(c.out.saved)
	if err := c.out.file(ctx, c.with, name); err != nil {
		return err
	}
	for _, s := range c.out.saved[min(before, len(c.out.saved)-1):] {
		fmt.Fprintf(c.p.Out, "%s  %s\n", s.Path, humanSize(s.Size))
	}
	return nil
}

func (c *chat) save(name string) error {
	if name == "" {
		return problem.New(problem.Usage, "under which name?").WithHint("/save sales.ipynb")
	}
	write, name, err := notebookWriter(name)
	if err != nil {
		return err
	}
	if len(c.doc.Turns) > 0 {
		c.doc.Title = hub.TitleOf(c.doc.Turns[0].Prompt)
	}
	if _, err := writeWhole(name, 0o666, func(w io.Writer) error { return write(w, c.doc) }); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.p.Out, name)
	return err
}

func (c *chat) use(ctx context.Context, name string) error {
	if name == "" {
		return problem.New(problem.Usage, "which model?").WithHint("/model openai/gpt-5.5")
	}
	used, err := c.with.Use(ctx, name)
	if err != nil {
		return err
	}
	notef(c.p.Err, "asking %s from now on", oneLine(used))
	return nil
}
