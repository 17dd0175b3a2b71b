package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// The fields that texts are of.
const (
	fieldPrompt = "prompt"
	fieldAnswer = "answer"
	fieldCode   = "code"
	fieldOutput = "output"
)

const (
	// longestText is how much of a text is searched.
	longestText = 64 << 10
	// longestBody is beyond which an event is a picture or the like.
	longestBody = 256 << 10
	// longestQuery bounds what is looked for, and longestSearch for how long: the beginning of a word may be that of every text's.
	longestQuery  = 1_000
	longestSearch = 8 * time.Second
)

// place is a text that is searched, and where it is.
type place struct {
	id                                              int64
	project, conversation, turn, execution, session string
	at                                              time.Time
	field, text                                     string
	words                                           []string
}

func placeFields(p *place) []field {
	return []field{
		{"id", countOf(&p.id)}, {"project", textOf(&p.project)}, {"at", moment{&p.at}}, {"conversation", textOf(&p.conversation)},
		{"turn_id", textOf(&p.turn)}, {"execution", textOf(&p.execution)}, {"session_id", textOf(&p.session)}, {"field", textOf(&p.field)},
		content(field{"content", textOf(&p.text)}),
	}
}

// indexed prepares places for addTexts: a transaction that writes makes others wait, so the words are found before it.
func indexed(places []place) []place {
	var out []place
	for _, p := range places {
		p.text = cut(clean(p.text), longestText)
		p.words = index(p.text)
		slices.Sort(p.words) // neighbours in the index are written together
		if len(p.words) > 0 {
			p.id = rand.Int64()
			out = append(out, p)
		}
	}
	return out
}

// turnTexts is a text of a turn. Hidden turns are not found, and neither are tries: the turn that has them has the text of the one that was chosen.
func turnTexts(t hub.Turn, p place) []place {
	if t.Hidden || t.IsTry() {
		return nil
	}
	p.project, p.conversation, p.turn, p.session = t.Project, t.Conversation, t.ID, t.Session
	return indexed([]place{p})
}

// executionTexts are the code of an execution and, unless it is a step of a turn, what it printed, by the events that are stored and the last
// ones. What a step printed is in its turn's stream, which is whole at the turn's end; see outputTexts.
func (s *Store) executionTexts(ctx context.Context, e hub.Execution, last []stream.Event) ([]place, error) {
	p := place{project: e.Project, turn: e.Turn, execution: e.ID, session: e.Session, at: e.Created}
	var printed strings.Builder
	if e.Turn != "" || len(last) == 0 || last[0].Seq > 1 { // else the last events are all that there are
		err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
			printed.Reset()
			if e.Turn == "" {
				return collect(ctx, q, e.ID, e.ID, &printed)
			}
			t, err := one(ctx, q, turnFields, "FROM turns WHERE id = $1", e.Turn)
			if err != nil {
				return found(err, problem.TurnNotFound)
			}
			if p.conversation = t.Conversation; t.Hidden {
				p.project = ""
			}
			return nil
		})
		if err != nil && !problem.Has(err, problem.TurnNotFound) || p.project == "" { // one whose turn was deleted meanwhile is still found
			return nil, err
		}
	}
	if e.Turn == "" {
		for _, event := range last {
			printEvent(&printed, event.Body)
		}
	}
	code, output := p, p
	code.field, code.text = fieldCode, e.Code
	output.field, output.text = fieldOutput, printed.String()
	return indexed([]place{code, output}), nil
}

// outputTexts are what the steps of a turn printed, by the events that are stored and the last ones.
func (s *Store) outputTexts(ctx context.Context, t hub.Turn, last []stream.Event) (places []place, err error) {
	if t.Hidden {
		return nil, nil
	}
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		places = nil
		steps, err := many(ctx, q, executionFields, "FROM executions WHERE turn_id = $1 ORDER BY created, id", t.ID)
		if err != nil {
			return err
		}
		for _, e := range steps {
			var printed strings.Builder
			if err := collect(ctx, q, t.ID, e.ID, &printed); err != nil {
				return err
			}
			for _, event := range last {
				if event.Part == e.ID {
					printEvent(&printed, event.Body)
				}
			}
			places = append(places, place{project: t.Project, conversation: t.Conversation, turn: t.ID, execution: e.ID, session: e.Session,
				at: e.Created, field: fieldOutput, text: printed.String()})
		}
		return nil
	})
	return indexed(places), err
}

// collect reads what an execution printed until it is enough.
func collect(ctx context.Context, q queryer, stream, execution string, into *strings.Builder) error {
	rows, err := q.QueryContext(ctx, "SELECT body FROM events WHERE stream = $1 AND execution = $2 AND LENGTH(body) <= "+strconv.Itoa(longestBody)+" ORDER BY seq",
		stream, execution)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() && into.Len() < longestText {
		var body []byte
		e := content(field{"body", blob{&body}})
		if err := rows.Scan(targets(bind(q, []field{e}))...); err != nil {
			return err
		}
		printEvent(into, body)
	}
	return rows.Err()
}

// printEvent adds what people read of an event.
func printEvent(into *strings.Builder, body []byte) {
	if into.Len() < longestText && len(body) <= longestBody {
		into.WriteString(transcript.TextOf(body))
	}
}

// addTexts puts places into the index.
func addTexts(ctx context.Context, q queryer, places []place) error {
	for _, p := range places {
		if err := insert(ctx, q, "documents", placeFields(&p), ""); err != nil {
			return err
		}
		if sealerOf(q) != nil {
			continue // words would tell what texts are about
		}
		for part := range slices.Chunk(p.words, 2*rowsAtOnce) {
			rows := make([][]any, len(part))
			for i, key := range part {
				rows[i] = []any{p.id, []byte(key), p.project}
			}
			if err := insertRows(ctx, q, "words (document, word, project)", rows, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// Search implements hub.Searcher. Problems: bad_query, search_too_broad.
func (s *Store) Search(ctx context.Context, project, query string, p hub.Page) (hub.Listing[hub.Found], error) {
	var none hub.Listing[hub.Found]
	limit, err := pageLimit(p)
	if err != nil {
		return none, err
	}
	ctx = operation(ctx, opSearch)
	looked := ask(cut(clean(query), longestQuery))
	if len(looked.whole) == 0 && looked.start == "" {
		return none, problem.New(problem.BadQuery, "the query has no word in it").WithHint("search for words or numbers")
	}
	short, cancel := context.WithTimeout(ctx, s.searching)
	defer cancel()
	places, err := s.places(short, project, looked, p, limit)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return none, problem.New(problem.SearchTooBroad, "the search took too long").WithHint("search for longer or rarer words")
	}
	if err != nil {
		return none, err
	}
	var out hub.Listing[hub.Found]
	if len(places) > limit {
		places = places[:limit]
		out.Next = cursor("documents", micros(places[limit-1].at), strconv.FormatInt(places[limit-1].id, 10))
	}
	for _, at := range places {
		snippet := looked.snippet
		if at.field == fieldAnswer {
			snippet = looked.answerSnippet
		}
		out.Items = append(out.Items, hub.Found{
			Conversation: at.conversation, Turn: at.turn, Execution: at.execution, Session: at.session, At: at.at, Field: at.field,
			Snippet: snippet(at.text),
		})
	}
	return out, nil
}

// places are those of a page, and one more. Where texts are sealed there is no index: they are read, one after the other.
func (s *Store) places(ctx context.Context, project string, looked question, p hub.Page, limit int) ([]place, error) {
	if s.sealer == nil {
		from, args, err := searchQuery(project, looked, p, limit)
		if err != nil {
			return nil, err
		}
		return all(ctx, s, placeFields, from, args...)
	}
	var out []place
	for {
		from, args, err := searchQuery(project, question{}, p, readAtOnce-1)
		if err != nil {
			return nil, err
		}
		some, err := all(ctx, s, placeFields, from, args...)
		if err != nil {
			return nil, err
		}
		for _, at := range some {
			if looked.found(at.text) {
				if out = append(out, at); len(out) > limit {
					return out, nil
				}
			}
		}
		if len(some) < readAtOnce {
			return out, nil
		}
		last := some[len(some)-1]
		p.After = cursor("documents", micros(last.at), strconv.FormatInt(last.id, 10))
	}
}

// readAtOnce is how many texts are read at once to be searched.
const readAtOnce = 100

// found says whether a text has what is looked for, by the words that an index would have of it.
func (q question) found(text string) bool {
	words := map[string]bool{}
	begins := q.start == ""
	for _, word := range index(text) {
		words[word] = true
		begins = begins || strings.HasPrefix(word, q.start)
	}
	for _, word := range q.whole {
		if !words[word] {
			return false
		}
	}
	return begins
}

func searchQuery(project string, looked question, p hub.Page, limit int) (string, []any, error) {
	var f filter
	f.add("project = ?", project)
	for _, key := range looked.whole {
		f.add("id IN (SELECT document FROM words WHERE project = ? AND word = ?)", project, []byte(key))
	}
	if looked.start != "" {
		key := []byte(looked.start)
		f.add("id IN (SELECT document FROM words WHERE project = ? AND word >= ? AND word < ?)", project, key, after(key))
	}
	sign, direction := "<", " DESC"
	if p.Oldest {
		sign, direction = ">", ""
	}
	if p.After != "" {
		at, text, err := readCursor("documents", p.After)
		if err != nil {
			return "", nil, err
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", nil, badCursor()
		}
		f.add("(at, id) "+sign+" (?, ?)", at, id)
	}
	return "FROM documents" + f.where() + " ORDER BY at" + direction + ", id" + direction + " LIMIT " + strconv.Itoa(limit+1), f.args, nil
}
