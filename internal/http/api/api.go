// Package api is cove's own HTTP interface below /api/v1: REST with JSON, and server-sent events for what happens while code runs or a
// model answers. It translates to package hub and back, and holds no state but the answers to repeated requests. The OpenAPI document
// and the page for people are made from the same declarations as the routes.
package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"cove/internal/llm/tool"
	"cove/internal/machine/egress"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

// Prefix is where the interface is mounted.
const Prefix = "/api/v1"

// Hub is what the interface needs of package hub, which documents the methods.
type Hub interface {
	Sessions
	SessionStates
	Kernels
	Variables
	Typing
	Widgets
	Processes
	Ports
	Networks
	FileSystems
	Links
	Executions
	Checks
	Files
	Uploads
	Packages
	Conversations
	Turns
	Questions
	Shares
	Connections
	History
}

// FileSystems are those of a hub's sessions.
type FileSystems interface {
	UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error
	WatchFiles(ctx context.Context, who auth.Principal, session, path string, all bool) (iter.Seq2[filesystem.Event, error], error)
}

// Sessions are a hub's sessions.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	Session(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	SessionsInUse(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	ChangeSession(ctx context.Context, who auth.Principal, id string, c hub.SessionChange) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
}

// SessionStates pause, resume, fork and undo a hub's sessions, and acknowledge their rollbacks.
type SessionStates interface {
	PauseSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	ResumeSession(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
	ForkSession(ctx context.Context, who auth.Principal, id string, n hub.NewSession) (hub.Session, error)
	Points(ctx context.Context, who auth.Principal, id string) ([]hub.Point, error)
	KeepPoint(ctx context.Context, who auth.Principal, id string) (hub.Point, error)
	ReturnSession(ctx context.Context, who auth.Principal, id, point string) (hub.Session, error)
	AcknowledgeRollback(ctx context.Context, who auth.Principal, id string) (hub.Session, error)
}

// Kernels are the interpreters of a hub's sessions.
type Kernels interface {
	Kernels(ctx context.Context, who auth.Principal, session string) ([]hub.Kernel, error)
	StartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	RestartKernel(ctx context.Context, who auth.Principal, session, name string) (hub.Kernel, error)
	StopKernel(ctx context.Context, who auth.Principal, session, name string) error
}

// Variables are what the kernels of sessions hold.
type Variables interface {
	Variables(ctx context.Context, who auth.Principal, session, kernel string) (kernel.Variables, error)
	Table(ctx context.Context, who auth.Principal, session, kernel string, q kernel.TableQuery) (kernel.Table, error)
	Profile(ctx context.Context, who auth.Principal, session, kernel, table string, column int) (kernel.Profile, error)
	Preview(ctx context.Context, who auth.Principal, session string, look workspace.Look) (workspace.Entry, workspace.Preview, error)
}

// Widgets are the widgets of a hub's sessions.
type Widgets interface {
	Widgets(ctx context.Context, who auth.Principal, session, kernel string) (kernel.WidgetStates, error)
	MoveWidget(ctx context.Context, who auth.Principal, session, kernel string, m hub.WidgetMove) (hub.Execution, error)
}

// Typing is what kernels say of code that somebody types.
type Typing interface {
	Complete(ctx context.Context, who auth.Principal, session, kernel, code string, cursor int) (matches []string, start, end int, err error)
	Describe(ctx context.Context, who auth.Principal, session, kernel, code string, cursor int) (string, error)
	IsComplete(ctx context.Context, who auth.Principal, session, kernel, code string) (string, error)
}

// Processes are the processes of a hub's sessions.
type Processes interface {
	StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, error)
	Processes(ctx context.Context, who auth.Principal, session string) ([]process.Info, error)
	Process(ctx context.Context, who auth.Principal, session, id string) (process.Info, error)
	TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (int64, error)
	ResizeProcess(ctx context.Context, who auth.Principal, session, id string, size process.Size) error
	SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error
	ProcessFollowers
}

// ProcessFollowers read what processes emit.
type ProcessFollowers interface {
	RunProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, iter.Seq2[process.Event, error], error)
	FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error)
}

// Ports are the ports of a hub's sessions.
type Ports interface {
	Ports(ctx context.Context, who auth.Principal, session string) ([]process.Port, error)
	UsePort(ctx context.Context, who auth.Principal, session string, port int, use func(ctx context.Context, s guestlink.Stream) error) error
}

// Networks are what the programs of a hub's sessions connect to.
type Networks interface {
	NetworkConnections(ctx context.Context, who auth.Principal, session string) ([]egress.Event, error)
}

// Checks look at code.
type Checks interface {
	Check(ctx context.Context, who auth.Principal, n hub.NewCheck) (hub.Checked, error)
}

// Executions are a hub's executions.
type Executions interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	Execution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Executions(ctx context.Context, who auth.Principal, f hub.ExecutionFilter, p hub.Page) (hub.Listing[hub.Execution], error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	ToolServers(ctx context.Context, who auth.Principal) ([]tool.Server, error)
	ExecutionReplies
}

// ExecutionReplies are what people say to executions that wait for them.
type ExecutionReplies interface {
	ApproveCall(ctx context.Context, who auth.Principal, execution string, number int, w tool.Word) (hub.Execution, error)
	AnswerInput(ctx context.Context, who auth.Principal, execution string, number int, r hub.InputReply) (hub.Execution, error)
}

// Files are a hub's stored files, and the workspaces of its sessions.
type Files interface {
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
	AddFile(ctx context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error)
	File(ctx context.Context, who auth.Principal, id string) (hub.File, error)
	Files(ctx context.Context, who auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error)
	OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error)
	DeleteFile(ctx context.Context, who auth.Principal, id string) error
	PutFile(ctx context.Context, who auth.Principal, session, file, path string) (workspace.Entry, error)
}

// Uploads are the files of a hub that come in pieces.
type Uploads interface {
	BeginUpload(ctx context.Context, who auth.Principal, n hub.NewUpload) (hub.Upload, error)
	Upload(ctx context.Context, who auth.Principal, id string) (hub.Upload, error)
	AppendUpload(ctx context.Context, who auth.Principal, id string, p hub.Piece) (hub.Upload, error)
	DropUpload(ctx context.Context, who auth.Principal, id string) error
}

// Packages are the Python packages of a hub's sessions.
type Packages interface {
	Install(ctx context.Context, who auth.Principal, session string, requirements []string, told func(installation.Progress)) (installation.Provision, error)
	Packages(ctx context.Context, who auth.Principal, session string) (python string, packages map[string]string, err error)
}

// Conversations are a hub's conversations.
type Conversations interface {
	CreateConversation(ctx context.Context, who auth.Principal, n hub.NewConversation) (hub.Conversation, error)
	Conversation(ctx context.Context, who auth.Principal, id string) (hub.Conversation, error)
	Conversations(ctx context.Context, who auth.Principal, f hub.ConversationFilter, p hub.Page) (hub.Listing[hub.Conversation], error)
	ChangeConversation(ctx context.Context, who auth.Principal, id string, c hub.ConversationChange) (hub.Conversation, error)
	ForkConversation(ctx context.Context, who auth.Principal, id string, n hub.NewFork) (hub.Conversation, error)
	DeleteConversation(ctx context.Context, who auth.Principal, id string) error
}

// Questions wait in the queues of a hub's conversations.
type Questions interface {
	PutQuestion(ctx context.Context, who auth.Principal, n hub.NewTurn) (hub.Question, error)
	Questions(ctx context.Context, who auth.Principal, conversation string) ([]hub.Question, error)
	ChangeQuestion(ctx context.Context, who auth.Principal, conversation, id string, c hub.QuestionChange) (hub.Question, error)
	DeleteQuestion(ctx context.Context, who auth.Principal, conversation, id string) error
}

// Turns are the turns of a hub's conversations.
type Turns interface {
	StartTurn(ctx context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error)
	Turn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	Turns(ctx context.Context, who auth.Principal, conversation string, p hub.Page) (hub.Listing[hub.Turn], error)
	Branch(ctx context.Context, who auth.Principal, turn string) ([]hub.Turn, error)
	FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
	Changes(ctx context.Context, who auth.Principal) (iter.Seq2[hub.Change, error], error)
	TurnControl
}

// TurnControl is what is done to a turn that began.
type TurnControl interface {
	ApproveTurn(ctx context.Context, who auth.Principal, id string, w hub.Word) (hub.Turn, error)
	CancelTurn(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	DeleteTurn(ctx context.Context, who auth.Principal, id string) error
	Ratings
	Marks
}

// Marks are what people did after turns of a hub.
type Marks interface {
	UndoTurns(ctx context.Context, who auth.Principal, id, from string) (hub.Turn, error)
	RedoTurns(ctx context.Context, who auth.Principal, id string) (hub.Turn, error)
	NoteRerun(ctx context.Context, who auth.Principal, id string, step int, execution string) (hub.Turn, error)
}

// Ratings are what people say of a hub's answers.
type Ratings interface {
	RateTurn(ctx context.Context, who auth.Principal, id string, r *hub.Rating) (hub.Turn, error)
	RatedTurns(ctx context.Context, who auth.Principal, p hub.Page) (hub.Listing[hub.Turn], error)
}

// Connections are the services of models that a hub's admins connect.
type Connections interface {
	Connections(ctx context.Context, who auth.Principal) ([]hub.Connection, error)
	SetConnection(ctx context.Context, who auth.Principal, c hub.ConnectionChange) (hub.Connection, error)
	DeleteConnection(ctx context.Context, who auth.Principal, provider string) error
	TryConnection(ctx context.Context, who auth.Principal, c hub.ConnectionChange) (hub.Trial, error)
}

// History searches a hub's past, and returns its usage and its models.
type History interface {
	Search(ctx context.Context, who auth.Principal, query string, p hub.Page) (hub.Listing[hub.Found], error)
	Models(ctx context.Context, who auth.Principal) ([]hub.ModelInfo, error)
	Usage(ctx context.Context, who auth.Principal, key, first, last string) ([]hub.Usage, error)
	UsageOfAll(ctx context.Context, who auth.Principal, first, last string) ([]hub.Usage, error)
	UsageByProject(ctx context.Context, who auth.Principal, first, last string) ([]hub.ProjectUsage, error)
	Answers(ctx context.Context, who auth.Principal, all bool, first, last string) ([]hub.AnswerDay, error)
}

// Options are what an interface is made of.
type Options struct {
	Hub      Hub
	Accounts Accounts
	Audit    audit.Log // nil: no rows are written, and none can be read
	Version  string    // of the program
	// Ready says whether the server can serve; nil: it always can. Requests without a key may cause it to be called.
	Ready     func(ctx context.Context) error
	Log       *slog.Logger
	MaxFile   int64 // bytes of one uploaded file; 0: 512 MiB
	NoSharing bool  // conversations cannot be shared by links
	NoScripts bool  // the page does not run HTML with scripts that code made
	// ProjectQuota is what a project may use that has no quota of its own.
	ProjectQuota Quota
	// Ports is where ports of sessions have names of their own; nil: nowhere.
	Ports func() ports.Address
	// Heartbeat is how long a stream of events may be silent; 0: 10 seconds.
	Heartbeat time.Duration
	Now       func() time.Time // nil: time.Now
}

// maxJSON bounds a JSON body, in bytes.
const maxJSON = 4 << 20

// server is the interface, while it is built and while it serves.
type server struct {
	o       Options
	mux     *http.ServeMux
	api     huma.API
	once    *answers
	showing chan struct{} // a place for each document that is sent to who has no key
	linked  chan struct{} // and for each file that is read or written by a link
	routes  []Route
}

// New returns the interface: a handler of everything below Prefix. It takes the caller from the request's context (auth.From); the server that mounts the
// handler has to put it there.
func New(o Options) http.Handler {
	s := build(o)
	s.addDocuments()
	return http.HandlerFunc(s.serve)
}

// build declares every operation.
func build(o Options) *server {
	s := &server{o: withDefaults(o), mux: http.NewServeMux(), showing: make(chan struct{}, sharedAtOnce), linked: make(chan struct{}, linkedAtOnce)}
	s.once = newAnswers(s.o.Now)
	s.api = huma.NewAPI(s.config(), &adapter{Adapter: humago.NewAdapter(s.mux, Prefix), s: s})
	s.addHealth()
	s.addSessions()
	s.addKernels()
	s.addVariables()
	s.addTyping()
	s.addWidgets()
	s.addProcesses()
	s.addPorts()
	s.addNetwork()
	s.addPreview()
	s.addExecutions()
	s.addToolServers()
	s.addChecks()
	s.addBatches()
	s.addTree()
	s.addFileSystem()
	s.addSessionLinks()
	s.addTreeContent()
	s.addFiles()
	s.addUploads()
	s.addPackages()
	s.addConversations()
	s.addTurns()
	s.addQuestions()
	s.addChanges()
	s.addShares()
	s.addExport()
	s.addSearch()
	s.addConnections()
	s.addKeys()
	s.addBrowsers()
	s.addUsers()
	s.addInvitations()
	s.addProjects()
	s.addLedgers()
	s.polish()
	s.links()
	return s
}

func withDefaults(o Options) Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxFile <= 0 {
		o.MaxFile = 512 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.Ports == nil {
		o.Ports = func() ports.Address { return ports.Address{} }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// serve has the mux answer, and replaces the mux's own answer by a problem where no route matches.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	refused := &headOnly{header: http.Header{}}
	h.ServeHTTP(refused, r)
	if allow := refused.header.Get("Allow"); refused.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allow)
		s.write(w, r, noMethod(r.Method, allow))
		return
	}
	s.write(w, r, noRoute())
}

// headOnly records the status and the header that a handler would answer with.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header         { return h.header }
func (h *headOnly) Write(p []byte) (int, error) { return len(p), nil }
func (h *headOnly) WriteHeader(status int)      { h.status = status }
